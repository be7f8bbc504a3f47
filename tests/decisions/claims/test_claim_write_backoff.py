"""A change that others revert each time is repeated with growing pauses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from claim_domain import NAMES
from claim_scenes import Parts, reconciling, settle
from temporalio.testing import ActivityEnvironment

from activities.claims.managed_resources import States
from domain.claims.evaluator_interface import HandlePlan, Operations
from domain.claims.handle_reconciliation import HandleWorld, decide
from domain.claims.passes import ObjectMemory, PassHandle
from domain.claims.write_backoff import (
    AT_ONCE,
    FIRST_REST,
    FORGOTTEN,
    LONGEST_REST,
    RevertedWrites,
    rest_in,
    reverted_writes,
)
from domain.identity import Key

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = Key(kind="ResourceHandle", namespace="poolboy", name="guid-b7k2q", uid="1")
HANDLE: dict[str, Any] = {"metadata": {"name": "guid-b7k2q"}, "spec": {"resources": [{"name": "a"}]}}


def operations(value: int = 3) -> Operations:
    return Operations(index=0, patch=({"op": "replace", "path": "/spec/replicas", "value": value},))


def after(times: int, *, every: timedelta = timedelta(seconds=1), made: Any = None) -> RevertedWrites:
    struggle = RevertedWrites()
    for number in range(times):
        struggle = reverted_writes(struggle, [operations()] if made is None else made(number), NOW + number * every)
    return struggle


@pytest.mark.parametrize(
    ("struggle", "rest"),
    [
        (RevertedWrites(), timedelta(0)),
        (after(AT_ONCE), timedelta(0)),
        (after(AT_ONCE + 1), FIRST_REST),
        (after(AT_ONCE + 3), FIRST_REST * 4),
        (after(AT_ONCE + 50), LONGEST_REST),
        (after(AT_ONCE + 50, made=lambda n: [operations(n)]), timedelta(0)),
        (after(AT_ONCE + 50, every=FORGOTTEN * 2), timedelta(0)),
        (after(2 * AT_ONCE + 2, made=lambda n: [operations()] if n % 2 else []), FIRST_REST),
    ],
    ids=[
        "nothing changed",
        "a person, five times",
        "the sixth time",
        "the eighth",
        "for ever",
        "another change each time",
        "now and then",
        "other news between",
    ],
)
def test_the_same_change_over_and_over_is_made_with_rests_that_grow(struggle: RevertedWrites, rest: timedelta) -> None:
    assert rest_in(struggle, NOW, None) == rest


def test_no_rest_goes_beyond_a_deadline() -> None:
    struggle = after(AT_ONCE + 50)
    assert rest_in(struggle, NOW, NOW + timedelta(seconds=3)) == timedelta(seconds=3)
    assert rest_in(struggle, NOW, NOW - timedelta(seconds=3)) == timedelta(0)


class Api(Parts):
    """An API server that takes each change, or takes it without changing anything; and all that a pass works with."""

    def __init__(self, *, changing: bool) -> None:
        self.changing = changing
        self.version = 0

    async def states(self, *_: object, **__: object) -> States:
        return States(({"metadata": {"resourceVersion": str(self.version)}},))

    async def handle(self, question: Any) -> HandlePlan:
        return HandlePlan(spec=HANDLE["spec"], updates=(operations(),))

    async def update(self, state: Any, changes: Operations) -> Any:
        self.version += self.changing
        return {"metadata": {"resourceVersion": str(self.version)}}


class Deleting(Api):
    """One on which the object is never there when a pass begins."""

    async def states(self, *_: object, **__: object) -> States:
        return States((None,))

    async def handle(self, question: Any) -> HandlePlan:
        return HandlePlan(spec=HANDLE["spec"], creations=() if question.states[0] else ((0, {"kind": "Job"}),))

    async def create(self, handle: Any, definition: Any) -> Any:
        return {"metadata": {"resourceVersion": "1"}}


async def test_an_object_that_is_deleted_each_time_it_is_made_is_made_with_rests() -> None:
    api = cast(Any, Deleting(changing=True))
    known = ObjectMemory()
    for number in range(AT_ONCE + 1):
        moment = NOW + number * timedelta(seconds=1)
        known = (await settle(api, HANDLE, now=moment, known=known)).memory
    assert rest_in(known.struggle, moment, None) == FIRST_REST


@pytest.mark.parametrize("changing", [True, False], ids=["taken back each time", "never taking effect"])
async def test_a_pass_reports_how_often_its_changes_were_reverted(changing: bool) -> None:
    api = cast(Any, Api(changing=changing))
    reconciliation = reconciling(api)

    async def observe(fresh: bool) -> HandleWorld:
        return HandleWorld.of(KEY, now=NOW, names=NAMES, handle=HANDLE)

    known = ObjectMemory()
    for _ in range(AT_ONCE + 1):
        look = PassHandle(key=KEY, memory=known)
        _, world = await ActivityEnvironment().run(reconciliation.carry_out, look, decide, observe)
        known = world.known
    assert known.struggle.times == (AT_ONCE + 1 if changing else 0)
    assert (world.rest > timedelta(0)) is changing
