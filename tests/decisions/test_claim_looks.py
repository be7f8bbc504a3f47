"""When a claim is looked at again although nobody has told of a change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from claim_domain import NAMES
from claim_scenes import settled

from activities.claims.binder import BinderActivities
from activities.claims.claim_validation import Judged
from activities.claims.claims import ClaimActivities
from activities.claims.tools import Tools
from domain.claims.handle_reconciliation import HandleWorld
from domain.claims.passes import PassClaim
from domain.claims.plans import ClaimPlan, Fault, Halt, HandlePlan
from domain.identity import Key
from domain.resource import timestamp
from engine.errors import Conflict, Unavailable
from engine.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings()
MINUTE, SLOWLY = SETTINGS.claims_interval, SETTINGS.claims_refresh_interval
KEY = Key(kind="ResourceClaim", namespace="users", name="mine", uid="1")
CLAIM: dict[str, Any] = {"metadata": {"namespace": "users", "name": "mine", "uid": "1"}, "spec": {}}
HANDLE: dict[str, Any] = {"metadata": {"namespace": "poolboy", "name": "guid-b7k2q"}, "spec": {}}
BROKEN = Fault(reason="ResourceForbidden", message="ConfigMap things/a: forbidden")


class Answers:
    """What judging and settling a claim come to."""

    def __init__(self, plan: ClaimPlan, settled: HandleWorld | None) -> None:
        self.plan, self.settled = plan, settled

    async def judge(self, *_: object, **__: object) -> Judged:
        return Judged(CLAIM, self.plan)

    async def settle(self, *_: object) -> HandleWorld | None:
        return self.settled

    async def serve(self, *_: object) -> tuple[Judged, HandleWorld | None]:
        return Judged(CLAIM, self.plan), self.settled


def tools(answers: Answers) -> Tools:
    nobody = cast(Any, SimpleNamespace())
    return Tools(SimpleNamespace(names=NAMES, free={}, waiting={}), nobody, answers, answers, nobody, SETTINGS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("halt", "by_clock", "after"),
    [
        (Halt.NONE, True, MINUTE),
        (Halt.NONE, False, None),
        (Halt.INVALID, True, MINUTE),
        (Halt.INVALID, False, None),
        (Halt.APPROVAL, False, None),
        (Halt.FAULT, False, MINUTE),
    ],
)
async def test_a_claim_without_handle_is_looked_at_by_the_clock_where_that_may_help(
    halt: Halt, by_clock: bool, after: timedelta | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("activities.claims.binder.now", lambda: NOW)
    answers = Answers(ClaimPlan(halt=halt, by_clock=by_clock), None)
    activities = BinderActivities(tools(answers), answers, *[cast(Any, None)] * 3)  # type: ignore[arg-type]
    world, *_ = await activities._serve(KEY, CLAIM)
    assert world.decision.deadline == (None if after is None else NOW + after)


@pytest.mark.parametrize(
    ("by_clock", "faults", "end", "after"),
    [
        (True, (), None, SETTINGS.claims_handles_interval),
        (False, (), None, SLOWLY),
        (False, (BROKEN,), None, MINUTE),
        (True, (), timedelta(seconds=5), timedelta(seconds=5)),
    ],
    ids=["an override that tells the time", "what no watch tells", "a resource that was refused", "the end"],
)
async def test_while_an_edit_is_not_accepted_the_handle_is_looked_after_as_ever(
    by_clock: bool,
    faults: tuple[Fault, ...],
    end: timedelta | None,
    after: timedelta,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("tools", "claims"):
        monkeypatch.setattr(f"activities.claims.{module}.now", lambda: NOW)
    plan = HandlePlan(by_clock=by_clock, end=None if end is None else NOW + end)
    answers = Answers(ClaimPlan(halt=Halt.INVALID), settled(HANDLE, CLAIM, plan, faults, NOW))
    activities = ClaimActivities(tools(answers), cast(Any, None))
    world = await activities._settle(PassClaim(key=KEY), CLAIM, HANDLE, NOW)
    assert (world.decision.phase, world.decision.deadline) == ("Invalid", NOW + after)
    assert ("delete" in world.decision.at_deadline) is (end is not None)


@pytest.mark.parametrize("mended", [True, False])
async def test_an_edit_that_the_former_statuses_refuse_is_judged_once_more_on_the_new_ones(
    mended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("tools", "claims"):
        monkeypatch.setattr(f"activities.claims.{module}.now", lambda: NOW)
    seen: list[object] = []

    class Judges(Answers):
        async def judge(self, *args: object, **more: Any) -> Judged:
            seen.append(more["handle"].get("status"))
            return Judged(CLAIM, ClaimPlan(halt=Halt.NONE if mended and len(seen) > 1 else Halt.INVALID))

    handle = {**HANDLE, "status": {"ready": True}}
    judges = Judges(ClaimPlan(), settled(handle, CLAIM, HandlePlan(handle_status={"ready": True})))
    activities = ClaimActivities(tools(judges), cast(Any, None))
    world = await activities._settle(PassClaim(key=KEY), CLAIM, HANDLE, NOW)
    assert seen == [None, {"ready": True}]
    assert world.decision.phase == ("Ready" if mended else "Invalid")


async def test_an_edit_that_the_clock_refuses_is_looked_at_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("tools", "claims"):
        monkeypatch.setattr(f"activities.claims.{module}.now", lambda: NOW)
    answers = Answers(ClaimPlan(halt=Halt.INVALID, by_clock=True), settled(HANDLE, CLAIM, HandlePlan()))
    world = await ClaimActivities(tools(answers), cast(Any, None))._settle(PassClaim(key=KEY), CLAIM, HANDLE, NOW)
    assert world.decision.deadline == NOW + MINUTE


@pytest.mark.parametrize(("fault", "after"), [(BROKEN, MINUTE), (None, SLOWLY)])
async def test_a_claim_that_could_not_be_judged_is_looked_at_again_soon(
    fault: Fault | None, after: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("tools", "claims"):
        monkeypatch.setattr(f"activities.claims.{module}.now", lambda: NOW)
    plan = ClaimPlan(halt=Halt.FAULT if fault else Halt.NONE, fault=fault)
    activities = ClaimActivities(tools(Answers(plan, settled(HANDLE, CLAIM, HandlePlan()))), cast(Any, None))
    world = await activities._settle(PassClaim(key=KEY), CLAIM, HANDLE, NOW)
    assert world.decision.deadline == NOW + after


@pytest.mark.parametrize(("later", "patient"), [(timedelta(0), True), (timedelta(seconds=2), False)])
@pytest.mark.parametrize("halt", [Halt.NONE, Halt.INVALID])
async def test_an_end_that_has_come_while_it_was_settled_is_its_own_workflows(
    halt: Halt, later: timedelta, patient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("tools", "claims"):
        monkeypatch.setattr(f"activities.claims.{module}.now", lambda: NOW + later)
    end = NOW + timedelta(seconds=1)
    handle = cast(Any, {**HANDLE, "spec": {"lifespan": {"end": timestamp(end)}}})
    claim = cast(Any, {**CLAIM, "status": {"lifespan": {"end": timestamp(end)}}})
    plan = ClaimPlan(halt=halt)
    activities = ClaimActivities(
        tools(Answers(plan, settled(handle, claim, HandlePlan(end=end), now=NOW))), cast(Any, None)
    )
    world = await activities._settle(PassClaim(key=KEY), CLAIM, HANDLE, NOW)
    assert world.decision.deadline == end
    assert (world.decision.patience > timedelta(0)) is patient


async def test_a_conflict_that_cannot_be_looked_into_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("activities.claims.binder.now", lambda: NOW)

    async def away(*_: object) -> None:
        raise Unavailable("no answer")

    async def contested(*_: object) -> Any:
        raise Conflict("somebody else was quicker")

    known = SimpleNamespace(
        names=NAMES, get=lambda *_: CLAIM, fresh=away, waiting={("users", "mine"): None}, news_for_all=0
    )
    activities = BinderActivities(cast(Any, SimpleNamespace(known=known, settings=SETTINGS)), *[cast(Any, None)] * 4)
    monkeypatch.setattr(activities, "_serve", contested)
    told = await activities.one(("users", "mine"), "")
    assert told is not None
    assert (told[1].decision.at_deadline, known.waiting) == ("try again", {})
