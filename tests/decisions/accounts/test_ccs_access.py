"""The ConfigMap's key `CCS-Access-Arn`: when the role is looked up, and what follows from the answer."""

from __future__ import annotations

from typing import cast

import pytest
from account_objects import DATA, NOW
from temporalio.client import Client

from activities.accounts import organization
from activities.accounts.cache import Reader
from activities.accounts.organization import OrganizationActivities
from activities.aws.session import Sessions
from domain.accounts.ccs_access import AccessRole, CcsAccess, ConfigState, state_of
from domain.accounts.config import OperatorConfig, parse_config
from domain.accounts.constants import CCS_ACCESS_KEY
from domain.accounts.organization import ORGANIZATION, OrganizationMemory
from domain.accounts.passes import OrganizationWorld, RecordAccessRole, decide
from domain.decision import Action
from domain.runner import State
from engine.errors import Absent, ApiError, Denied, Invalid, Throttled

ARN = "arn:aws:iam::111111111111:role/RH-SRE-CCS-Access"


def state(**data: str) -> ConfigState:
    found = state_of(parse_config({**DATA, **data}))
    assert found is not None
    return found


def observed(config: ConfigState | None, last: CcsAccess | None = None) -> OrganizationWorld:
    known = OrganizationMemory(config=config, ccs_access=last or CcsAccess())
    return OrganizationWorld(key=ORGANIZATION, known=known)


def actions(world: OrganizationWorld) -> tuple[Action, ...]:
    return decide(world, NOW).actions


def after(world: OrganizationWorld, result: AccessRole) -> OrganizationWorld:
    (action,) = actions(world)
    return action.fold(world, result)


def test_a_new_lifecycle_compares_the_key_and_not_again() -> None:
    world = observed(state())
    assert actions(world) == (RecordAccessRole(config=state()),)
    assert actions(after(world, AccessRole(arn=ARN))) == ()


def test_the_next_pass_observes_the_own_write_and_compares_nothing() -> None:
    written = after(observed(state()), AccessRole(arn=ARN))
    assert actions(observed(state(**{CCS_ACCESS_KEY: ARN}), written.known.ccs_access)) == ()


@pytest.mark.parametrize("change", [{CCS_ACCESS_KEY: "other"}, {"account-limit": "7"}, {"accountpool": "{}"}])
def test_a_changed_config_map_is_compared_once(change: dict[str, str]) -> None:
    before = after(observed(state()), AccessRole(arn=ARN)).known.ccs_access
    world = observed(state(**{CCS_ACCESS_KEY: ARN, **change}), before)
    assert len(actions(world)) == 1
    assert actions(after(world, AccessRole(arn=ARN))) == ()


def test_without_a_config_map_nothing_is_compared() -> None:
    assert state_of(parse_config(None)) is None
    assert actions(observed(None)) == ()


def test_a_problem_is_shown_and_not_tried_again_until_the_config_map_changes() -> None:
    world = after(observed(state()), AccessRole(problem="there is no such role"))
    decision = decide(world, NOW)
    assert decision.actions == ()
    assert decision.why.endswith("key CCS-Access-Arn is not written: there is no such role")
    changed = observed(state(**{CCS_ACCESS_KEY: "again"}), world.known.ccs_access)
    assert "not written" not in decide(after(changed, AccessRole(arn=ARN)), NOW).why


def test_a_pass_that_ends_after_the_write_does_not_forget_it() -> None:
    begun = observed(state())
    written = after(begun, AccessRole(arn=ARN))
    seen = observed(state(**{CCS_ACCESS_KEY: ARN})).recall(written)
    assert actions(seen) == ()


def test_a_change_observed_during_the_action_is_compared_next() -> None:
    (action,) = actions(observed(state()))
    newer = observed(state(root="r-other"))
    assert actions(action.fold(newer, AccessRole(arn=ARN))) == (RecordAccessRole(config=state(root="r-other")),)


@pytest.mark.parametrize("hold", ["observe mode", "paused"])
def test_a_held_organization_only_plans_the_comparison(hold: str) -> None:
    world = observed(state()).model_copy(update={"hold": hold})
    _, step = State(world=world, dirty=False).step(decide, NOW)
    assert step.start == ()
    assert any(CCS_ACCESS_KEY in line for line in step.decision.summaries)


class Cluster:
    """The ConfigMap with this value of the key, and what is written to it; or how a write is refused."""

    def __init__(self, value: str = "", refusal: ApiError | None = None) -> None:
        self.value = value
        self.refusal = refusal
        self.written: list[dict[str, str]] = []

    async def config(self) -> OperatorConfig:
        return parse_config({**DATA, CCS_ACCESS_KEY: self.value})

    async def write_config(self, data: dict[str, str]) -> None:
        if self.refusal:
            raise self.refusal
        self.written.append(data)


async def carried_out(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, answer: str | ApiError = ARN) -> AccessRole:
    def role(_: Sessions) -> str:
        if isinstance(answer, ApiError):
            raise answer
        return answer

    monkeypatch.setattr(organization, "ccs_access_arn", role)
    activities = OrganizationActivities(cast("Reader", cluster), cast("Sessions", None), cast("Client", None))
    return await activities.record_access_role(RecordAccessRole(config=state()))


@pytest.mark.parametrize(
    ("value", "written"), [("", [{CCS_ACCESS_KEY: ARN}]), ("x", [{CCS_ACCESS_KEY: ARN}]), (ARN, [])]
)
async def test_only_a_differing_key_is_written(
    value: str, written: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(value)
    assert await carried_out(cluster, monkeypatch) == AccessRole(arn=ARN)
    assert cluster.written == written


@pytest.mark.parametrize("error", [Absent("no such role"), Denied("not authorized"), Invalid("bad")])
async def test_a_missing_role_or_a_refusal_is_a_logged_result(
    error: ApiError, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster("as it was")
    assert await carried_out(cluster, monkeypatch, error) == AccessRole(problem=error.message)
    assert cluster.written == []
    assert f"key CCS-Access-Arn of the ConfigMap is not written: {error.message}" in caplog.text
    assert (await carried_out(Cluster(refusal=error), monkeypatch)).problem == error.message


async def test_a_throttled_request_is_left_to_the_servers_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Throttled):
        await carried_out(Cluster(), monkeypatch, Throttled("slow down"))
