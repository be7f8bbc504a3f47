"""Service quotas of a pool's account: their statuses according to AWS's history of requests, and which to request now.

    TODO --asked for--> IN_PROGRESS --approved, or high enough already--> COMPLETED
      |                      +--denied, not approved--> DENIED
      +--------------------- +--no such quota here, an invalid request--> MANUAL_ACTION

The spec's quotas are expanded once into the status, for each enabled region. AWS's limits on open requests include the
vCPU requests of the initialisation (`quota.vcpu`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from domain.accounts.actions.service_quotas import RaiseQuotas
from domain.accounts.config import OperatorConfig
from domain.accounts.constants import QUOTA_REQUESTS, QUOTA_REQUESTS_OF_OPT_IN_REGION
from domain.accounts.observed import AccountWorld
from domain.accounts.quota_codes import SERVICE_OF, VCPUS
from domain.accounts.region_initialization import list_regions
from domain.accounts.resources import Account, AccountSpec, AccountStatus, ServiceQuota
from domain.accounts.state_conditions import probed_at, with_trouble
from domain.accounts.unrecorded_regions_and_quotas import ACCOUNT_WIDE, Quotas, quotas_of, with_news, with_quotas
from domain.decision import Action
from domain.model import Model

TODO = "TODO"
IN_PROGRESS = "IN_PROGRESS"
COMPLETED = "COMPLETED"
DENIED = "DENIED"
MANUAL_ACTION = "MANUAL_ACTION"
OPEN = frozenset({TODO, IN_PROGRESS})
# The quota's status by the request's status in AWS.
_OUTCOMES = {
    "PENDING": IN_PROGRESS,
    "CASE_OPENED": IN_PROGRESS,
    "APPROVED": COMPLETED,
    "CASE_CLOSED": COMPLETED,
    "DENIED": DENIED,
    "NOT_APPROVED": DENIED,
    "INVALID_REQUEST": MANUAL_ACTION,
}

DEFAULT = "default"  # in the spec: every region
MANUAL_CONDITION = "ServiceQuotasManualAction"
_MOST_NAMED = 5  # the number of quotas named in a message


class Raising(Model):
    """`open` names the quotas in TODO or IN_PROGRESS, `denied` those in DENIED, each as region/code."""

    status: AccountStatus
    actions: tuple[Action, ...] = ()
    open: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    regions_unknown: bool = False

    @property
    def done(self) -> bool:
        return not (self.open or self.actions)

    @property
    def awaited(self) -> str:
        if self.regions_unknown:
            return "the list of the account's regions"
        return counted_and_named(self.open) if self.open else ""


def wanted(spec: AccountSpec) -> bool:
    return bool(any(spec.regional_service_quotas.values()) or spec.global_service_quotas)


def raising(world: AccountWorld, *, through_denial: bool = False) -> Raising:
    account, known, config = world.account, world.known, world.config
    status = scrubbed(with_news(account.status, known.opt_in_news, known.quota_news), config)
    if _unexpanded(account.spec, status):
        if known.regions is None and account.spec.regional_service_quotas:
            return Raising(status=status, actions=(list_regions(world),), regions_unknown=True)
        status = expanded(account.spec, status, known.regions or (), config)
    current = quotas_of(status)
    denied = _named(current, {DENIED})
    actions = () if denied and not through_denial else batches(world, current)
    return Raising(status=status, actions=actions, open=_named(current, OPEN), denied=denied)


def expanded(spec: AccountSpec, status: AccountStatus, regions: Iterable[str], config: OperatorConfig) -> AccountStatus:
    wanted_codes = spec.regional_service_quotas
    quotas: Quotas = {
        region: _todo({**wanted_codes.get(DEFAULT, {}), **wanted_codes.get(region, {})})
        for region in sorted(regions)
        if region not in config.disabled_regions
    }
    quotas[ACCOUNT_WIDE] = _todo(spec.global_service_quotas)
    shown = quotas_of(status)
    regional = any(region != ACCOUNT_WIDE for region in shown)
    remaining = {region: codes for region, codes in shown.items() if regional or region == ACCOUNT_WIDE}
    fresh = {region: codes for region, codes in quotas.items() if codes and not (regional and region != ACCOUNT_WIDE)}
    return with_quotas(status, {**fresh, **remaining})


def denied_again(status: AccountStatus) -> AccountStatus:
    quotas = quotas_of(status)
    if not _named(quotas, {DENIED}):
        return status
    afresh = {"status": TODO}
    return with_quotas(
        status,
        {
            region: {code: q.model_copy(update=afresh) if q.status == DENIED else q for code, q in codes.items()}
            for region, codes in quotas.items()
        },
    )


def _todo(codes: dict[str, ServiceQuota]) -> dict[str, ServiceQuota]:
    """Unknown codes get MANUAL_ACTION, because a person must raise these quotas."""
    return {
        code: ServiceQuota(value=codes[code].value, status=TODO if code in SERVICE_OF else MANUAL_ACTION)
        for code in sorted(codes)
    }


def _unexpanded(spec: AccountSpec, status: AccountStatus) -> bool:
    regional = any(spec.regional_service_quotas.values()) and not status.regional_service_quotas
    return regional or (bool(spec.global_service_quotas) and not status.global_service_quotas)


def scrubbed(status: AccountStatus, config: OperatorConfig) -> AccountStatus:
    quotas = quotas_of(status)
    remaining = {region: codes for region, codes in quotas.items() if region not in config.disabled_regions}
    return status if len(remaining) == len(quotas) else with_quotas(status, remaining)


def batches(world: AccountWorld, current: Quotas) -> tuple[RaiseQuotas, ...]:
    """One action per region that has open or due requests. An action makes as many new requests as AWS allows."""
    account, config = world.account, world.config
    requested = _vcpus_beside(world, current)
    counts = [q.status for codes in current.values() for q in codes.values()]
    room = QUOTA_REQUESTS - counts.count(IN_PROGRESS) - len(requested)
    opt_in = {*config.opt_in_regions, *account.status.opt_in_regions}
    actions: list[RaiseQuotas] = []
    for region, codes in {**current, **{name: {} for name in requested if name not in current}}.items():
        under_way = {code: quota for code, quota in codes.items() if quota.status == IN_PROGRESS}
        most = QUOTA_REQUESTS_OF_OPT_IN_REGION if region in opt_in else QUOTA_REQUESTS
        places = max(0, min(room, most - len(under_way) - (region in requested)))
        new = dict([(code, quota) for code, quota in sorted(codes.items()) if quota.status == TODO][:places])
        room -= len(new)
        if under_way or new or (region in requested and TODO in counts):
            actions.append(_batch(world, region, {**under_way, **new}, vcpus_asked=region in requested))
    return tuple(actions)


def _vcpus_beside(world: AccountWorld, current: Quotas) -> tuple[str, ...]:
    return tuple(
        region
        for region in world.known.vcpus_asked
        if (quota := current.get(region, {}).get(VCPUS)) is None or quota.status != IN_PROGRESS
    )


def _batch(world: AccountWorld, region: str, quotas: dict[str, ServiceQuota], *, vcpus_asked: bool) -> RaiseQuotas:
    return RaiseQuotas(
        **world.member,
        region=region,
        quotas=quotas,
        since=_since(world.account),
        vcpus_asked=vcpus_asked and VCPUS not in quotas,
    )


def _since(account: Account) -> datetime | None:
    """When the Account last became PendingVerification, became Ready or was released; None if never. AWS's refusals
    before this time do not count.
    """
    moments = [probed_at(account.status.conditions, type_) for type_ in ("PendingVerification", "Ready", "Reused")]
    return max((moment for moment in moments if moment is not None), default=None)


class QuotaRequest(NamedTuple):
    code: str
    service: str
    value: float
    status: str
    created: datetime

    @property
    def outcome(self) -> str:
        """The quota's status after this request; empty if the quota must be requested again."""
        return _OUTCOMES.get(self.status, "")


def outcomes(
    quotas: Mapping[str, ServiceQuota], history: Iterable[QuotaRequest], since: datetime | None
) -> dict[str, str]:
    """By quota, the outcome of the request that counts: an open one, else the newest for the wanted value. Refusals
    before `since` do not count.
    """
    found: dict[str, QuotaRequest] = {}
    for request in history:
        quota = quotas.get(request.code)
        if quota and request.service == SERVICE_OF.get(request.code) and _counts(request, quota.value, since):
            found[request.code] = max(found.get(request.code, request), request, key=_rank)
    return {code: request.outcome for code, request in found.items()}


def _counts(request: QuotaRequest, wanted: int, since: datetime | None) -> bool:
    if request.outcome == IN_PROGRESS:
        return True
    old = since is not None and request.created < since
    return request.value == wanted and not (old and request.outcome in {DENIED, MANUAL_ACTION})


def _rank(request: QuotaRequest) -> tuple[bool, datetime]:
    return request.outcome == IN_PROGRESS, request.created


def with_manual_actions(status: AccountStatus, now: datetime) -> AccountStatus:
    named = _named(quotas_of(status), {MANUAL_ACTION})
    message = f"{counted_and_named(named)} must be raised by hand" if named else ""
    conditions = with_trouble(status.conditions, MANUAL_CONDITION, MANUAL_ACTION, message, now)
    return status.model_copy(update={"conditions": conditions})


def counted_and_named(names: tuple[str, ...]) -> str:
    listed = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
    return f"{len(names)} service quota{'s' if len(names) > 1 else ''} ({listed})"


def _named(quotas: Quotas, statuses: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        f"{region or 'account'}/{code}"
        for region, codes in quotas.items()
        for code, quota in codes.items()
        if quota.status in statuses
    )
