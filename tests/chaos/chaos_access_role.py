"""The ConfigMap's key with the ARN of the payer's role: its effects, and the turn in which they come about.

change: a person spoils the key and changes another one; Perdure writes the key again
change another: a person changes that other key again, while no worker runs
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from chaos_cluster import OPERATOR
from chaos_effects import AwsCall, Effect, KubeCall, Lifecycle
from chaos_lab import Lab
from chaos_proxy import Request

from domain.accounts.constants import CCS_ACCESS_KEY, CCS_ACCESS_ROLE, CONFIG_MAP
from domain.accounts.passes import RecordAccessRole

OTHER_KEY = "of-another-tool"
# Values by key; None where the key is removed.
Change = dict[str, str | None]


def _writes_the_key(request: Request) -> bool:
    return request.of("PATCH", "configmaps") and CCS_ACCESS_KEY in request.body.get("data", {})


def _effect(call: AwsCall | KubeCall) -> Effect:
    return Effect(Lifecycle.ORGANIZATION, RecordAccessRole.activity, call)


RECORDING: tuple[tuple[Effect, ...], ...] = (
    (_effect(AwsCall("iam", "GetRole", containing=CCS_ACCESS_ROLE)),),
    (_effect(KubeCall(f"PATCH-configmaps-{CCS_ACCESS_KEY}", _writes_the_key)),),
)


def access_role_effects() -> tuple[Effect, ...]:
    """All of them."""
    return tuple(effect for row in RECORDING for effect in row)


class AccessRole:
    """The turn, and what must be true after it."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._iam = lab.payer().client("iam", endpoint_url=lab.emulator.endpoint)
        self._before = _data(self._config_map())
        self._turns = 0
        self._since: dict[str, Any] = {}  # the ConfigMap before the turn
        self._persons: list[Change] = []
        self.arn = ""

    def begin(self) -> None:
        """The payer has the role from now on, and the key names it."""
        made = self._iam.create_role(RoleName=CCS_ACCESS_ROLE, AssumeRolePolicyDocument="{}")
        self.arn = made["Role"]["Arn"]
        self._lab.oracle.others = [self.violations]
        self.change()
        self._lab.agree()

    def end(self) -> None:
        """All is as it was."""
        self._lab.oracle.others = []
        self._iam.delete_role(RoleName=CCS_ACCESS_ROLE)
        self._write({key: self._before.get(key) for key in (CCS_ACCESS_KEY, OTHER_KEY)})
        self._lab.agree()

    def change(self) -> None:
        """Change the key to what is no role's ARN, and another key with it."""
        self._lab.oracle.forget()
        self._turns += 1
        self._since, self._persons = self._config_map(), []
        self._write({CCS_ACCESS_KEY: f"no role's, {self._turns}", OTHER_KEY: f"{self._turns}"})

    def change_another(self) -> None:
        """Change the other key again."""
        self._write({OTHER_KEY: f"{self._turns}, again"})

    def written(self) -> list[Change]:
        """What was changed in the ConfigMap since the turn began, without what persons have changed."""
        version = self._since["metadata"]["resourceVersion"]
        later = self._lab.cluster.versions("configmaps", OPERATOR, CONFIG_MAP, version)
        changes = [_difference(_data(old), _data(new)) for old, new in pairwise([self._since, *later])]
        return [change for change in changes if change not in self._persons]

    def violations(self) -> Iterator[str]:
        """Data that are not what persons and Perdure should have left."""
        wanted = {**self._before, CCS_ACCESS_KEY: self.arn, OTHER_KEY: self._persons[-1][OTHER_KEY]}
        if wrong := _difference(wanted, _data(self._config_map())):
            yield f"the ConfigMap has {wrong}, wanted { ({key: wanted.get(key) for key in wrong}) }"

    def _write(self, change: Change) -> None:
        self._persons.append(change)
        self._lab.cluster.patch("configmaps", OPERATOR, CONFIG_MAP, {"data": change})

    def _config_map(self) -> dict[str, Any]:
        found = self._lab.cluster.get("configmaps", OPERATOR, CONFIG_MAP)
        assert found is not None
        return found


def _data(config_map: dict[str, Any]) -> Change:
    return dict(config_map["data"])


def _difference(old: Change, new: Change) -> Change:
    return {key: new.get(key) for key in {**old, **new} if old.get(key) != new.get(key)}
