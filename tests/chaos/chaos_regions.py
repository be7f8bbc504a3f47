"""Every effect of opting in to regions, raising quotas and closing; and the turns in which they come about.

The pool's next account is made while regions are to be opted in to and quotas to be raised; a claim is given back while
released accounts are closed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from chaos_cluster import OPERATOR
from chaos_effects import AwsCall, Effect, KubeCall, Lifecycle, Message
from chaos_lab import EMULATED, Lab
from chaos_proxy import Request

OPTED = "af-south-1"
CODES = ("L-0EA8095F", "L-1216C47A")
QUOTAS = {"servicequotas": {"default": dict.fromkeys(CODES, "6000")}}
CONFIG_MAP = "aws-account-operator-configmap"
OPENING = {
    "feature.opt_in_regions": "true",
    "opt-in-regions": OPTED,
    "feature.validation_tag_account": "true",  # so that all Accounts are validated, of which none needs it
    "accountpool": json.dumps({"default": {"default": True, **QUOTAS}}),
}
CLOSING_KEYS = {"feature.close_on_release": "true", "close_account.dry_run": "false"}


def _effect(call: AwsCall | KubeCall, activity: str = "kube.patch") -> Effect:
    return Effect(Lifecycle.ACCOUNT, activity, call)


def _closing(call: AwsCall | KubeCall, activity: str = "kube.patch") -> Effect:
    # Not a release's: the payer makes the call, not the account that is released.
    return Effect(Lifecycle.CLAIM, activity, call)


def _status(request: Request) -> dict[str, object]:
    found = request.body.get("status") if request.of("PATCH", "accounts", "status") else None
    return found if isinstance(found, dict) else {}


def _state(state: str) -> KubeCall:
    return KubeCall(f"PATCH-accounts-status-{state}", lambda request: _status(request).get("state") == state)


def _progress(field: str) -> KubeCall:
    def matches(request: Request) -> bool:
        return bool(_status(request).get(field)) and "state" not in _status(request)

    return KubeCall(f"PATCH-accounts-status-{field}", matches)


def _is_note(request: Request) -> bool:
    noted = request.body.get("metadata", {}).get("annotations") or {}
    return request.of("PATCH", "accounts") and bool(noted.get("perdure.dev/closing-for"))


_LOOK_AT_ALL = KubeCall("GET-accounts", lambda r: r.of("GET", "accounts") and not r.of_one("GET", "accounts"))

OPTING: tuple[tuple[Effect, ...], ...] = (
    (Effect(Lifecycle.ACCOUNT, "accounts.ask_to_opt_in", Message("wake-organization")),),
    (Effect(Lifecycle.ORGANIZATION, "accounts.pass_validation", _LOOK_AT_ALL),),
    (_effect(_state("OptingInRegions")),),
    (_effect(AwsCall("account", "EnableRegion"), "aws.enable_regions"),),
    (_effect(_progress("optInRegions")),),
    (_effect(_state("OptInRegionsEnabled")),),
    (_effect(AwsCall("servicequotas", "RequestServiceQuotaIncrease"), "aws.raise_quotas"),),
    (_effect(_progress("regionalServiceQuotas")),),
)
CLOSING: tuple[tuple[Effect, ...], ...] = (
    (_closing(KubeCall("PATCH-accounts-closing-for", _is_note)),),
    (_closing(AwsCall("organizations", "CloseAccount"), "aws.close_account"),),
    (_closing(KubeCall("DELETE-accounts", lambda r: r.of("DELETE", "accounts")), "accounts.release"),),
)


def regions_effects() -> tuple[Effect, ...]:
    """All of them."""
    return tuple(effect for row in (*OPTING, *CLOSING) for effect in row)


class Regions:
    """The turns, and what must be true after them."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        found = lab.cluster.get("configmaps", OPERATOR, CONFIG_MAP)
        assert found is not None
        self._before = {key: found["data"].get(key) for key in (*OPENING, *CLOSING_KEYS)}

    def begin(self) -> None:
        """Regions are to be opted in to, and quotas to be raised, from now on."""
        self._lab.emulator.config(opt_in_regions=(OPTED,), region_enable_seconds=1, quota_pending_seconds=0.5)
        self._configure(OPENING)
        self._lab.oracle.others = [self.violations]
        self._lab.agree()

    def end(self) -> None:
        """All is as it was; accounts keep what they have."""
        self._lab.oracle.others = []
        self._configure(self._before)
        self._lab.emulator.config(**EMULATED, region_enable_seconds=0, quota_pending_seconds=0)

    def close(self) -> None:
        """Give an account back that is to be closed."""
        lab, tenant = self._lab, self._lab.tenant
        assert tenant is not None
        self._configure(CLOSING_KEYS)
        lab.target(Lifecycle.RELEASE)
        lab.oracle.forget()
        lab.expected.claims, lab.expected.gone = set(), {tenant.account}
        lab.tenant = None
        lab.cluster.delete("accountclaims", tenant.name, tenant.name)

    def keep(self) -> None:
        """Close no further accounts."""
        self._configure({key: self._before[key] for key in CLOSING_KEYS})

    def _configure(self, values: dict[str, str | None] | dict[str, str]) -> None:
        self._lab.cluster.patch("configmaps", OPERATOR, CONFIG_MAP, {"data": dict(values)})

    def violations(self) -> Iterator[str]:
        """Regions that are not enabled, quotas that are not raised, requests made twice."""
        for account in self._lab.cluster.list("accounts"):
            name, status = account["metadata"]["name"], account.get("status") or {}
            if (status.get("optInRegions") or {}).get(OPTED, {}).get("status") != "ENABLED":
                yield f"Account {name}: {OPTED} is not enabled"
            wanted = account["spec"].get("regionalServiceQuotas")
            shown = status.get("regionalServiceQuotas") or {}
            found = {quota["status"] for codes in shown.values() for quota in codes.values()}
            if wanted and not account["spec"].get("claimLink") and not status.get("reused") and found != {"COMPLETED"}:
                yield f"Account {name}: its quotas are {sorted(found) or 'not expanded'}"
        requests = self._lab.emulator.world().quota_requests
        requested = Counter((request.account, request.region, request.code) for request in requests)
        yield from (
            f"quota {code} of {account} in {region}: {n} requests"
            for (account, region, code), n in requested.items()
            if n > 1
        )
