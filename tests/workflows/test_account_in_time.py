"""An Account's life on a clock: deadlines to the second, waiting that costs nothing, wakes, deletion in any moment."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from lifecycles import BUSY_MACHINE, Lifecycle
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from waiting import eventually
from world import SEVENTEEN_REGIONS

from domain.accounts.actions.iam_identities import AdminSecret
from domain.accounts.actions.support_cases import SupportCase
from domain.accounts.observed import Permit, Verdict
from domain.model import Model
from domain.resource import parse_timestamp
from engine.errors import Denied, Invalid, Pending

MINUTE = timedelta(minutes=1)


def moment(text: Any) -> datetime:
    found = parse_timestamp(text)
    assert found is not None
    return found


def never(delay: timedelta) -> Any:
    """An effect whose other side is never done."""

    async def pending(action: Any) -> None:
        raise Pending("not yet", delay=delay)

    return pending


def refusing(error: Exception, times: int, then: Any) -> Any:
    left = [times]

    async def refuse(action: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise error
        return then(action) if callable(then) else then

    return refuse


class Gate:
    """An effect that waits until it is let go; cancelled, it ends with what it has come to."""

    def __init__(self, answer: Any = None, *, effect_stands: bool = False) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.answer = answer
        self.effect_stands = effect_stands

    async def __call__(self, action: Any) -> Any:
        self.begun.set()
        try:
            while not self.go.is_set():
                activity.heartbeat()
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            if not self.effect_stands:
                raise
        return self.answer


class Deaf(Gate):
    """An effect that hears of its cancellation too late: it is let go by the test."""

    async def __call__(self, action: Any) -> Any:
        self.begun.set()
        while not self.go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                activity.heartbeat()
                await asyncio.sleep(0.05)
        return self.answer


@pytest.mark.recorded
async def test_an_account_lives_from_nothing_to_ready(lifecycle: Lifecycle) -> None:
    await lifecycle.to_ready()
    assert lifecycle.world.effects["aws.create_account"] == 1
    why = await lifecycle.until_why(lambda why: why.outcome == "settled")
    assert (why.phase, why.deadline, why.running) == ("Ready", None, ())
    messages = [(c.type, c.message) for c in lifecycle.world.present.status.conditions]
    assert messages == [
        ("Creating", "Creating"),
        ("InitializingRegions", "Initializing Regions"),
        ("PendingVerification", "Account pending AWS limits verification"),
        ("Ready", "Account ready to be claimed"),
    ]


async def test_without_a_permit_nothing_happens_for_days(lifecycle: Lifecycle) -> None:
    await lifecycle.wake()
    await lifecycle.until_why(lambda why: why.waits_for == ("Organization",))
    await lifecycle.pass_time(timedelta(days=3))
    assert lifecycle.world.effects == {}


# --- deadlines ---


async def stays_until_it_fails(lifecycle: Lifecycle, state: str, limit: timedelta) -> tuple[str, str]:
    """Reason and message of the account that is in the state ten seconds before the limit, and failed right at it."""
    world = lifecycle.world
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until_state(state)
    began = moment(world.condition(state)["lastProbeTime"])
    await lifecycle.pass_time(began + limit - timedelta(seconds=10) - await lifecycle.now())
    assert world.state == state
    await lifecycle.pass_time(timedelta(seconds=11))
    await lifecycle.until_state("Failed")
    failed = world.condition("AccountCreationFailed")
    assert moment(failed["lastTransitionTime"]) == began + limit
    return failed["reason"], failed["message"]


@pytest.mark.recorded
async def test_creation_fails_25_minutes_after_it_began_to_the_second(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    world.answers["aws.ensure_support_role"] = never(timedelta(seconds=40))
    failed = await stays_until_it_fails(lifecycle, "Creating", timedelta(minutes=25))
    assert failed == ("CreationTimeout", "Creation pending for longer than 25 minutes")
    tried = world.made("aws.ensure_support_role")
    await lifecycle.pass_time(timedelta(hours=2))
    assert world.made("aws.ensure_support_role") <= tried + 1, "it is cancelled, not tried on"


@pytest.mark.recorded
async def test_region_initialisation_fails_after_3060_seconds_to_the_second(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    world.answers["aws.initialize_region"] = never(timedelta(minutes=3))
    failed = await stays_until_it_fails(lifecycle, "InitializingRegions", timedelta(seconds=3060))
    assert failed == ("RegionInitializationTimeout", "Initializing regions for longer than 3060 seconds")


@pytest.mark.recorded
async def test_at_the_limit_an_account_is_deleted_25_minutes_after_its_birth(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    born = world.present.metadata.creation_timestamp
    assert born is not None
    await lifecycle.wake()
    await lifecycle.handle.signal("permit", Permit(verdict=Verdict.LIMIT_REACHED, message="the limit"))
    await lifecycle.until(lambda: bool(world.condition("Pending")))
    assert world.condition("Pending")["reason"] == "AWSAccountLimitReached"
    why = await lifecycle.until_why(lambda why: why.deadline is not None)
    assert why.deadline == born + timedelta(minutes=25)
    await lifecycle.pass_time(born + timedelta(minutes=24, seconds=50) - await lifecycle.now())
    assert world.made("kube.delete") == 0
    await lifecycle.pass_time(timedelta(seconds=11))
    await lifecycle.ended()
    assert world.account is None
    (deleted,) = world.times("kube.delete")
    assert timedelta(0) <= deleted - (born + timedelta(minutes=25)) < BUSY_MACHINE


async def test_a_permit_that_ends_unused_is_requested_again(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    world.answers["aws.create_account"] = refusing(Denied("no"), 1000, None)
    await lifecycle.wake()
    await lifecycle.permit(minutes=2)
    await lifecycle.until_why(lambda why: bool(why.hindrances))
    await lifecycle.pass_time(timedelta(minutes=3))
    await lifecycle.until_why(lambda why: why.waits_for == ("Organization",))
    requested = world.made("aws.create_account")
    await lifecycle.pass_time(timedelta(hours=5))
    assert world.made("aws.create_account") == requested
    del world.answers["aws.create_account"]
    await lifecycle.permit()
    await lifecycle.until_state("PendingVerification")


# --- waiting ---


async def test_pending_quotas_are_observed_again_by_the_server_without_history(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    from world import AWS_ID

    from domain.accounts.actions.account_creation import CreatedAccount

    looks = Pending("IN_PROGRESS", delay=timedelta(seconds=10))
    world.answers["aws.await_account"] = refusing(looks, 30, CreatedAccount(created_account_id=AWS_ID))
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until(lambda: world.made("aws.await_account") >= 1)
    before = len((await lifecycle.history()).events)
    await lifecycle.pass_time(timedelta(minutes=6))
    await lifecycle.until_state("PendingVerification")
    assert world.made("aws.await_account") == 31
    gaps = [b - a for a, b in zip(world.times("aws.await_account"), world.times("aws.await_account")[1:], strict=False)]
    assert min(gaps) > timedelta(seconds=9)  # on a busy machine some are longer
    assert sum(gaps, timedelta()) < timedelta(seconds=12) * len(gaps)
    assert before < 40
    assert world.made("aws.create_account") == 1


async def test_a_support_case_is_waited_for_without_a_timer(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until(lambda: world.present.status.support_case_id != "")
    await lifecycle.until_why(lambda why: why.waits_for == ("SupportCase/case-1",))
    events = len((await lifecycle.history()).events)
    await lifecycle.pass_time(timedelta(days=40))
    assert len((await lifecycle.history()).events) == events
    await lifecycle.resolve("another-case")
    await lifecycle.until_why(lambda why: why.waits_for == ("SupportCase/case-1",))
    assert world.state == "PendingVerification"
    await lifecycle.resolve()
    await lifecycle.until_state("Ready")


async def test_a_case_resolved_before_it_is_recorded_is_not_lost(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    gate = Gate(SupportCase(case_id="case-1"))
    world.answers["aws.open_support_case"] = gate
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until(gate.begun.is_set)
    await lifecycle.resolve()
    gate.go.set()
    await lifecycle.until_state("Ready")


async def test_one_timer_serves_a_deadline_however_many_results_come(lifecycle: Lifecycle) -> None:
    lifecycle.world.regions = SEVENTEEN_REGIONS
    await lifecycle.to_ready()
    started = [
        event for event in (await lifecycle.history()).events if event.event_type == EventType.EVENT_TYPE_TIMER_STARTED
    ]
    assert len(started) <= 3, "the permit's end, the creation deadline, the initialisation deadline"


@pytest.mark.recorded
async def test_a_whole_life_with_seventeen_regions_fits_in_250_events(lifecycle: Lifecycle) -> None:
    lifecycle.world.regions = SEVENTEEN_REGIONS
    await lifecycle.to_ready()
    await lifecycle.until_why(lambda why: why.outcome == "settled")
    events = (await lifecycle.history()).events
    assert lifecycle.world.made("aws.initialize_region") == 17
    assert len(events) <= 250


async def test_search_attributes_are_written_only_when_they_change(lifecycle: Lifecycle) -> None:
    await lifecycle.to_ready()
    await lifecycle.until_why(lambda why: why.outcome == "settled")
    upserts = [
        event.upsert_workflow_search_attributes_event_attributes.search_attributes.indexed_fields
        for event in (await lifecycle.history()).events
        if event.event_type == EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES
    ]
    written = [tuple((name, value.data) for name, value in sorted(fields.items())) for fields in upserts]
    assert all(a != b for a, b in itertools.pairwise(written))
    phases = [dict(each)["OpPhase"].decode().strip('"') for each in written]
    assert list(dict.fromkeys(phases)) == ["Pending", "Creating", "InitializingRegions", "PendingVerification", "Ready"]
    for _ in range(3):
        seen = lifecycle.world.made("accounts.observe_account")
        await lifecycle.wake()
        await lifecycle.until(lambda seen=seen: lifecycle.world.made("accounts.observe_account") > seen)
    after = [
        event
        for event in (await lifecycle.history()).events
        if event.event_type == EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES
    ]
    assert len(after) == len(upserts)


# --- wakes ---


async def begun(lifecycle: Lifecycle, activity: str, gate: Gate) -> Gate:
    """The object is woken, and this of it has begun and goes on until the gate is opened."""
    lifecycle.world.answers[activity] = gate
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until(gate.begun.is_set)
    return gate


async def test_a_wake_during_an_action_leaves_it_alone_and_looks_again(lifecycle: Lifecycle) -> None:
    world, gate = lifecycle.world, await begun(lifecycle, "aws.tag_account", Gate())
    seen = world.made("accounts.observe_account")
    await lifecycle.wake()
    await lifecycle.until(lambda: world.made("accounts.observe_account") == seen + 1)
    assert world.cancelled == []
    gate.go.set()
    await lifecycle.until_state("PendingVerification")
    assert world.made("aws.tag_account") == 1


async def test_a_wake_of_a_settled_account_writes_nothing(lifecycle: Lifecycle) -> None:
    await lifecycle.to_ready()
    await lifecycle.until_why(lambda why: why.outcome == "settled")
    before = lifecycle.world.effects
    for _ in range(5):
        seen = lifecycle.world.made("accounts.observe_account")
        await lifecycle.wake()
        await lifecycle.until(lambda seen=seen: lifecycle.world.made("accounts.observe_account") > seen)
    assert lifecycle.world.effects == before


async def test_another_clients_write_is_a_conflict_and_both_survive(lifecycle: Lifecycle) -> None:
    world = lifecycle.world

    async def disturbed(action: Any) -> None:
        world.edit({"metadata": {"annotations": {"somebody": "was here"}}})

    world.answers["aws.tag_account"] = disturbed
    await lifecycle.to_ready()
    assert world.present.metadata.annotations["somebody"] == "was here"
    assert world.effects["aws.create_account"] == 1
    assert not (await lifecycle.why()).hindrances


@pytest.mark.recorded
async def test_blanking_a_ready_account_starts_it_again_with_its_id(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    await lifecycle.to_ready()
    world.edit({"status": {"state": ""}})
    await lifecycle.wake()
    await lifecycle.until(lambda: world.made("aws.initialize_region") == 4, "a second initialisation")
    await lifecycle.until_state("Ready")
    assert (world.effects["aws.create_account"], world.effects["aws.open_support_case"]) == (1, 1)


async def test_a_second_initialisation_has_its_own_51_minutes(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    await lifecycle.to_ready()
    await lifecycle.pass_time(timedelta(days=200))
    world.edit({"status": {"state": ""}})
    world.answers["aws.initialize_region"] = never(timedelta(minutes=2))
    await lifecycle.wake()
    await lifecycle.until_state("InitializingRegions")
    await lifecycle.pass_time(timedelta(minutes=50))
    assert world.state == "InitializingRegions"
    await lifecycle.pass_time(timedelta(minutes=2))
    await lifecycle.until_state("Failed")


# --- deletion ---


@pytest.mark.recorded
async def test_a_deletion_during_create_account_waits_for_what_it_leaves_and_cleans_it(lifecycle: Lifecycle) -> None:
    from domain.accounts.actions.account_creation import CreateRequest

    world = lifecycle.world
    gate = Gate(CreateRequest(request_id="car-1"), effect_stands=True)
    await begun(lifecycle, "aws.create_account", gate)
    world.delete()
    await lifecycle.wake()
    await lifecycle.until_why(lambda why: why.phase == "Deleting")
    assert world.account is not None, "the object stays while AWS may be making its account"
    gate.go.set()
    await lifecycle.ended()
    assert world.account is None
    order = [name for name, _, _ in world.calls if name.startswith("aws.")]
    assert order == ["aws.create_account", "aws.await_account", "aws.delete_identities"]


async def test_a_deletion_during_region_initialisation_ends_the_regions_first(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    from domain.accounts.observed import RegionOutcome

    gate = Gate(RegionOutcome(region="any", ok=False, message="cancelled"), effect_stands=True)
    await begun(lifecycle, "aws.initialize_region", gate)
    world.delete()
    await lifecycle.wake()
    await lifecycle.until_why(lambda why: why.phase == "Deleting")
    gate.go.set()
    await lifecycle.ended()
    assert world.account is None
    assert world.made("aws.delete_identities") == 1


@pytest.mark.parametrize(
    ("made", "answer", "undone"),
    [
        ("aws.ensure_admin_user", AdminSecret(admin_secret="secret"), ["aws.delete_identities"] * 2),
        ("aws.ensure_support_role", None, ["aws.delete_identities"] * 2),
        ("aws.open_support_case", SupportCase(case_id="case-1"), ["aws.delete_identities", "aws.resolve_support_case"]),
    ],
)
async def test_a_deletion_waits_for_what_is_being_made_and_undoes_it(
    lifecycle: Lifecycle, made: str, answer: Model | None, undone: list[str]
) -> None:
    world = lifecycle.world
    gate = Deaf(answer)
    world.answers[made] = gate
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until(gate.begun.is_set)
    world.delete()
    await lifecycle.wake()
    await lifecycle.until(lambda: world.made("aws.delete_identities") == 1)
    gate.go.set()
    await lifecycle.ended()
    assert world.account is None
    assert [name for name, _, _ in world.calls if name in undone] == undone


# --- refusals ---


async def test_a_refused_action_is_tried_again_after_5_10_20_seconds(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    world.answers["aws.open_support_case"] = refusing(Invalid("limit", code="CaseCreationLimitExceeded"), 1000, None)
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until(lambda: world.made("aws.open_support_case") == 1)
    for gap, count in ((5, 2), (10, 3), (20, 4)):
        await lifecycle.until_why(lambda why, n=count - 1: any(h.attempts == n for h in why.hindrances))
        await lifecycle.pass_time(timedelta(seconds=gap + 0.5))
        await lifecycle.until(lambda n=count: world.made("aws.open_support_case") == n, f"try {count}")
    times = world.times("aws.open_support_case")
    gaps = [round((b - a).total_seconds()) for a, b in itertools.pairwise(times)]
    assert gaps == [5, 10, 20]


async def test_a_wake_tries_a_refused_action_at_once(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    world.answers["aws.open_support_case"] = refusing(Denied("no"), 1000, None)
    await lifecycle.wake()
    await lifecycle.permit()
    for count in (1, 2, 3):
        await lifecycle.until(lambda n=count: world.made("aws.open_support_case") == n)
        await lifecycle.until_why(lambda why, n=count: any(h.attempts == n for h in why.hindrances))
        await lifecycle.wake()
    del world.answers["aws.open_support_case"]
    await lifecycle.until(lambda: world.made("aws.open_support_case") >= 4)
    await lifecycle.wake()
    await lifecycle.until(lambda: world.present.status.support_case_id == "case-1")
    assert not (await lifecycle.until_why(lambda why: not why.hindrances)).hindrances


@pytest.mark.recorded
async def test_a_bug_is_shown_as_such_and_tried_again(lifecycle: Lifecycle) -> None:
    world = lifecycle.world
    world.answers["aws.tag_account"] = refusing(ZeroDivisionError("ours"), 2, None)
    await lifecycle.wake()
    await lifecycle.permit()
    why = await lifecycle.until_why(lambda why: bool(why.hindrances))
    assert (why.hindrances[0].type, why.hindrances[0].action) == ("Bug", "aws.tag_account")
    assert "ZeroDivisionError" in why.hindrances[0].message
    await until_shown(lifecycle, lambda phase: phase == "Bug")
    await lifecycle.pass_time(timedelta(seconds=20))
    await lifecycle.until_state("PendingVerification")
    await until_shown(lifecycle, lambda phase: phase != "Bug")


async def test_a_bug_in_what_is_given_up_is_not_shown_any_more(lifecycle: Lifecycle) -> None:
    world, gate = lifecycle.world, asyncio.Event()

    async def refuse(action: Any) -> None:
        await gate.wait()
        raise Invalid("limit", code="LimitExceeded")

    world.answers["aws.tag_account"] = refusing(ZeroDivisionError("ours"), 1000, None)
    world.answers["aws.ensure_admin_user"] = refuse
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until_why(lambda why: bool(why.hindrances))
    await until_shown(lifecycle, lambda phase: phase == "Bug")
    gate.set()
    await lifecycle.until_why(lambda why: why.phase == "Failed" and not why.hindrances)
    await until_shown(lifecycle, lambda phase: phase == "Failed")


async def test_an_observation_that_is_refused_stops_nothing_that_runs(lifecycle: Lifecycle) -> None:
    world, gate = lifecycle.world, await begun(lifecycle, "aws.tag_account", Gate())
    world.answers["accounts.observe_account"] = refusing(Denied("no"), 1000, None)
    await lifecycle.wake()
    await lifecycle.until_why(lambda why: any(h.action == "observe" for h in why.hindrances))
    gate.go.set()
    await lifecycle.until_why(lambda why: not why.running)
    assert world.cancelled == []
    del world.answers["accounts.observe_account"]
    await lifecycle.wake()
    await lifecycle.until_state("PendingVerification")
    assert world.made("aws.tag_account") == 1


async def until_shown(lifecycle: Lifecycle, holds: Callable[[str], bool]) -> None:
    """Wait for OpPhase as lists show it. A query may be answered before the workflow task's commands are stored."""

    async def shown() -> bool:
        phases = [
            event.upsert_workflow_search_attributes_event_attributes.search_attributes.indexed_fields["OpPhase"].data
            for event in (await lifecycle.history()).events
            if event.event_type == EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES
        ]
        return bool(phases) and holds(phases[-1].decode().strip('"'))

    await eventually(shown, "the phase is shown")


# --- losing the workflow ---


@pytest.mark.parametrize("state", ["Creating", "InitializingRegions", "PendingVerification", "Ready"])
async def test_a_restarted_workflow_searches_and_asks_for_no_second_effect(lifecycle: Lifecycle, state: str) -> None:
    world = lifecycle.world
    if state == "Ready":
        await lifecycle.to_ready()
    else:
        held = {"Creating": "aws.tag_account", "InitializingRegions": "aws.initialize_region"}.get(state)
        if held:
            world.answers[held] = never(timedelta(seconds=30))
        await lifecycle.wake()
        await lifecycle.permit()
        await lifecycle.until_state(state)
        if state == "PendingVerification":
            await lifecycle.until(lambda: world.present.status.support_case_id != "")
    lost = (await lifecycle.execution()).execution.run_id
    await lifecycle.handle.terminate("as an accident")
    world.answers.clear()
    await lifecycle.wake()
    if state != "Ready":
        await lifecycle.until_why(lambda why: why.waits_for == ("SupportCase/case-1",))
        await lifecycle.resolve()
        await lifecycle.until_state("Ready")
    await lifecycle.until_why(lambda why: why.outcome == "settled")
    later = [call for call, run in zip(world.calls, world.runs, strict=True) if run != lost]
    requested = {name for name, _, _ in later}
    assert not requested & {"aws.create_account", "aws.await_account"}
    assert all(getattr(action, "search", True) for _, _, action in later), (
        "what is made after a loss is looked up first"
    )
    if state in {"PendingVerification", "Ready"}:
        assert not requested & {"aws.open_support_case", "aws.initialize_region"}
