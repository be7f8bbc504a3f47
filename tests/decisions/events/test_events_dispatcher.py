"""Which workflows receive events, how many at once, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from running_consumer import until

from domain.instances.event_handover import Handled, Outcome, Taken
from domain.instances.event_parser import Events
from domain.instances.events import EventKind, HookAction, InstanceEvent, InstanceState
from domain.instances.machine_pool_labels import GroupRecord
from domain.instances.message_unwrapping import Invalid, Message
from domain.instances.workflow_ids import GroupKey, InstanceKey
from starters.events.consumer_benchmark import ACCOUNT, REGION
from starters.events.dispatcher import TROUBLE_AFTER, Dispatcher, ReadAhead
from starters.events.library import EventBridgeEvent, is_event_processed
from starters.events.machine_index import Index, machine, pool

NOW = datetime(2026, 5, 4, 10, 11, 12, tzinfo=UTC)


def state(
    instance_id: str, id_: str = "e1", at: InstanceState = InstanceState.STOPPING, **more: object
) -> InstanceEvent:
    facts: dict[str, object] = {"kind": EventKind.STATE, "state": at, "instance_id": instance_id} | more
    common = {"event_id": id_, "account": ACCOUNT, "region": REGION, "time": NOW, "received_at": NOW}
    return InstanceEvent.model_validate(common | facts)


def spot(instance_id: str, id_: str = "s1") -> InstanceEvent:
    return state(instance_id, id_, kind=EventKind.SPOT, state=None, action="terminate")


class Workflows:
    """Workflows that record the events they receive, and answer when they may."""

    def __init__(self) -> None:
        self.delivered: list[tuple[str, tuple[str, ...], int]] = []
        self.woken: list[str] = []
        self.ended: list[dict[str, str]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.outcome = Outcome.APPLIED
        self.fails: Exception | None = None

    async def hand_over(self, key: InstanceKey, events: Sequence[InstanceEvent], receives: int) -> Taken:
        self.delivered.append((key.instance_id, tuple(event.key for event in events), receives))
        await self.may_answer.wait()
        if self.fails is not None:
            raise self.fails
        return Taken(outcomes={event.key: self.outcome for event in events})

    async def wake(self, group: GroupKey, ended: GroupRecord) -> None:
        self.woken.append(group.group)
        self.ended.append({what: result.key for what, result in ended.results.items()})
        if self.fails is not None:
            raise self.fails


def index_of(*instances: str, expectant: bool = False) -> Index:
    index = Index()
    for each in instances:
        holder = machine({"metadata": {"namespace": "ns", "name": each}, "spec": {"instanceID": each}})
        index.machines[holder.name] = holder
    if expectant:
        holder = machine({"metadata": {"namespace": "ns", "name": "new"}})
        index.machines[holder.name] = holder
    arn = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:26e7:autoScalingGroupName/c1-mp-0"
    of_pool = pool({"metadata": {"namespace": "ns", "name": "c1-mp-0"}, "spec": {"providerID": arn}})
    index.pools[of_pool.name] = of_pool
    return index


@pytest.fixture
def workflows() -> Workflows:
    return Workflows()


def dispatcher(workflows: Workflows, *instances: str, expectant: bool = False, **settings: object) -> Dispatcher:
    index = index_of(*instances, expectant=expectant)
    return Dispatcher(index, {(ACCOUNT, REGION)}, workflows.hand_over, workflows.wake, **settings)  # type: ignore[arg-type]


async def test_an_event_of_a_known_instance_is_delivered(workflows: Workflows) -> None:
    handled = await dispatcher(workflows, "i-1").outcome(state("i-1"), 3)
    assert handled == Handled(event=state("i-1"), outcome=Outcome.APPLIED)
    assert workflows.delivered == [("i-1", ("e1/i-1",), 3)]


@pytest.mark.parametrize("expectant", [True, False])
async def test_no_workflow_is_started_for_a_stranger(workflows: Workflows, expectant: bool) -> None:
    handled = await dispatcher(workflows, "i-1", expectant=expectant).outcome(state("i-2"))
    assert (handled.outcome, handled.may_appear) == (Outcome.UNKNOWN, expectant)
    assert workflows.delivered == []


async def test_an_unknown_instance_may_be_owned_while_the_index_may_be_incomplete(workflows: Workflows) -> None:
    handled = await dispatcher(workflows, "i-1", doubtful=lambda: True).outcome(state("i-2"))
    assert handled.outcome is Outcome.UNAVAILABLE


@pytest.mark.parametrize("elsewhere", [{"account": "999999999999"}, {"region": "us-east-1"}])
async def test_an_event_of_another_account_or_region_is_foreign_whatever_it_names(
    workflows: Workflows, elsewhere: dict[str, Any]
) -> None:
    forged = state("i-1", **elsewhere)
    assert (await dispatcher(workflows, "i-1").outcome(forged)).outcome is Outcome.FOREIGN
    assert workflows.delivered == []


async def test_events_of_one_instance_go_together_in_the_order_in_which_they_happened(workflows: Workflows) -> None:
    events = [
        state("i-1", "late", InstanceState.STOPPED, time=NOW + timedelta(seconds=1)),
        state("i-2", "other"),
        state("i-1", "early"),
    ]
    sender = dispatcher(workflows, "i-1", "i-2")
    await asyncio.gather(*(sender.outcome(each) for each in events))
    assert sorted(workflows.delivered) == [("i-1", ("early/i-1", "late/i-1"), 1), ("i-2", ("other/i-2",), 1)]


async def test_an_event_that_arrives_twice_at_once_is_delivered_once(workflows: Workflows) -> None:
    sender = dispatcher(workflows, "i-1")
    handled = await asyncio.gather(*(sender.outcome(state("i-1")) for _ in range(5)))
    assert workflows.delivered == [("i-1", ("e1/i-1",), 1)]
    assert [each.outcome for each in handled] == [Outcome.APPLIED] + [Outcome.DUPLICATE] * 4


async def test_events_that_arrive_during_a_delivery_go_together_afterwards(workflows: Workflows) -> None:
    sender = dispatcher(workflows, "i-1")
    workflows.may_answer.clear()
    first = asyncio.create_task(sender.outcome(state("i-1", "a")))
    await until(lambda: len(workflows.delivered) == 1)
    rest = [asyncio.create_task(sender.outcome(state("i-1", name))) for name in "bcd"]
    await asyncio.sleep(0)
    assert len(workflows.delivered) == 1
    workflows.may_answer.set()
    await asyncio.gather(first, *rest)
    assert [keys for _, keys, _ in workflows.delivered] == [("a/i-1",), ("b/i-1", "c/i-1", "d/i-1")]


async def test_a_spot_notice_goes_before_what_has_time(workflows: Workflows) -> None:
    sender = dispatcher(workflows, "i-0", "i-1", "i-2", "i-3", at_once=1)
    workflows.may_answer.clear()
    weeks_ahead = state("i-1", kind=EventKind.HEALTH_OTHER, state=None)
    waiting = [asyncio.create_task(sender.outcome(state("i-0")))]
    await until(lambda: len(workflows.delivered) == 1)
    waiting += [asyncio.create_task(sender.outcome(each)) for each in (weeks_ahead, state("i-2"), spot("i-3"))]
    await asyncio.sleep(0)
    workflows.may_answer.set()
    await asyncio.gather(*waiting)
    assert [name for name, _, _ in workflows.delivered] == ["i-0", "i-3", "i-2", "i-1"]


@pytest.mark.parametrize(("full", "event", "at_once"), [(True, state, 2), (True, spot, 4), (False, state, 4)])
async def test_few_routine_events_are_delivered_while_a_backlog_is_read(
    workflows: Workflows, full: bool, event: Callable[[str], InstanceEvent], at_once: int
) -> None:
    under_way, seen = 0, []

    async def hand_over(key: InstanceKey, events: Sequence[InstanceEvent], receives: int) -> Taken:
        nonlocal under_way
        under_way += 1
        seen.append(under_way)
        for _ in range(20):
            await asyncio.sleep(0)
        under_way -= 1
        return Taken(outcomes={each.key: Outcome.APPLIED for each in events})

    names = [f"i-{number}" for number in range(20)]
    sender = Dispatcher(index_of(*names), {(ACCOUNT, REGION)}, hand_over, workflows.wake, at_once=4)
    sender.received("q", full=full)
    await asyncio.gather(*(sender.outcome(event(each)) for each in names))
    assert len(seen) == len(names)
    # The first four begin before it is known how many wait; the last eight are few enough.
    assert max(seen[5:12]) == at_once


def test_routine_events_wait_for_ten_seconds_of_a_minute_at_most() -> None:
    moment = 100.0
    read = ReadAhead(lambda: moment)
    read.received(full=True)
    assert read.lasts
    for seconds, lasts in ((9.9, True), (10.0, False), (59.0, False), (60.0, True)):
        moment = 100.0 + seconds
        read.received(full=True)
        assert read.lasts is lasts, seconds
    read.received(full=False)
    assert not read.lasts
    read.received(full=True)
    assert not read.lasts, "a receive that is not full in between begins no new wait"


async def test_an_instance_becomes_urgent_by_its_last_event(workflows: Workflows) -> None:
    sender = dispatcher(workflows, "i-0", "i-1", "i-2", at_once=1)
    workflows.may_answer.clear()
    waiting = [asyncio.create_task(sender.outcome(state("i-0")))]
    await until(lambda: len(workflows.delivered) == 1)
    waiting += [asyncio.create_task(sender.outcome(each)) for each in (state("i-1"), state("i-2"), spot("i-2"))]
    await asyncio.sleep(0)
    workflows.may_answer.set()
    await asyncio.gather(*waiting)
    assert [name for name, _, _ in workflows.delivered] == ["i-0", "i-2", "i-1"]


async def test_a_workflow_that_fails_leaves_its_events_unavailable_and_the_others_alone(workflows: Workflows) -> None:
    sender = dispatcher(workflows, "i-1", "i-2")
    workflows.fails = RuntimeError("no")
    assert (await sender.outcome(state("i-1"))).outcome is Outcome.UNAVAILABLE
    assert not sender.troubled
    workflows.fails = None
    assert (await sender.outcome(state("i-2"))).outcome is Outcome.APPLIED
    assert sender.trouble == ""


async def test_a_workflow_that_does_not_answer_is_not_waited_for_for_ever(workflows: Workflows) -> None:
    workflows.may_answer.clear()
    sender = dispatcher(workflows, "i-1", patience=timedelta(milliseconds=10))
    assert (await sender.outcome(state("i-1"))).outcome is Outcome.UNAVAILABLE


async def test_several_failures_in_a_row_are_trouble_until_one_succeeds(workflows: Workflows) -> None:
    sender = dispatcher(workflows, "i-1")
    workflows.outcome = Outcome.UNAVAILABLE
    for number in range(TROUBLE_AFTER):
        assert not sender.troubled
        await sender.outcome(state("i-1", f"e{number}"))
    assert sender.troubled
    workflows.outcome = Outcome.APPLIED
    await sender.outcome(state("i-1", "well"))
    assert not sender.troubled


async def test_an_event_the_workflow_says_nothing_of_is_not_lost(workflows: Workflows) -> None:
    async def silent(key: InstanceKey, events: Sequence[InstanceEvent], receives: int) -> Taken:
        return Taken()

    sender = Dispatcher(index_of("i-1"), {(ACCOUNT, REGION)}, silent, workflows.wake)
    assert (await sender.outcome(state("i-1"))).outcome is Outcome.UNAVAILABLE


async def test_an_instance_that_only_the_index_knows_yet_may_appear_to_its_workflow(workflows: Workflows) -> None:
    workflows.outcome = Outcome.UNKNOWN
    handled = await dispatcher(workflows, "i-1").outcome(state("i-1"))
    assert (handled.outcome, handled.may_appear) == (Outcome.UNKNOWN, True)


async def test_the_last_event_of_an_instance_without_a_machine_is_delivered_and_dropped(workflows: Workflows) -> None:
    index = index_of("i-1")
    gone = index.machines.pop(("ns", "i-1"))
    index.changed(gone, None)
    workflows.outcome = Outcome.UNKNOWN
    sender = Dispatcher(index, {(ACCOUNT, REGION)}, workflows.hand_over, workflows.wake)
    handled = await sender.outcome(state("i-1", at=InstanceState.TERMINATED))
    assert handled.outcome is Outcome.STALE
    assert len(workflows.delivered) == 1


async def test_a_group_is_woken_once_for_many_events_and_its_instances_are_notified(workflows: Workflows) -> None:
    hook = HookAction(name="drain", token="t", transition="terminating")
    sender = dispatcher(workflows)
    events = [state(f"i-{n}", kind=EventKind.TERMINATING, state=None, group="c1-mp-0", hook=hook) for n in range(20)]
    handled = await asyncio.gather(*(sender.outcome(each) for each in events))
    assert {each.outcome for each in handled} == {Outcome.APPLIED}
    assert workflows.woken == ["c1-mp-0"]
    assert len(workflows.delivered) == 20


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (EventKind.LAUNCH_OK, Outcome.APPLIED),
        (EventKind.LAUNCH_FAILED, Outcome.APPLIED),
        (EventKind.TERMINATE_OK, Outcome.APPLIED),
        (EventKind.TERMINATE_FAILED, Outcome.APPLIED),
        (EventKind.LAUNCHING, Outcome.UNKNOWN),
        (EventKind.TERMINATING, Outcome.UNKNOWN),
    ],
)
async def test_a_result_needs_its_group_alone_and_a_hook_its_instance(
    workflows: Workflows, kind: EventKind, outcome: Outcome
) -> None:
    workflows.outcome = Outcome.UNKNOWN
    unlisted = state("i-9", kind=kind, state=None, group="c1-mp-0")
    assert (await dispatcher(workflows).outcome(unlisted)).outcome is outcome
    workflows.outcome = Outcome.UNAVAILABLE
    assert (await dispatcher(workflows).outcome(unlisted)).outcome is Outcome.UNAVAILABLE


async def test_a_launch_without_an_instance_wakes_its_group_only(workflows: Workflows) -> None:
    failed = state("", kind=EventKind.LAUNCH_FAILED, state=None, group="c1-mp-0")
    assert (await dispatcher(workflows).outcome(failed)).outcome is Outcome.APPLIED
    assert (workflows.woken, workflows.delivered) == (["c1-mp-0"], [])
    workflows.fails = RuntimeError("no")
    assert (await dispatcher(workflows).outcome(failed)).outcome is Outcome.UNAVAILABLE


async def test_the_latest_launch_and_termination_results_are_sent_with_the_wake(
    workflows: Workflows,
) -> None:
    sender = dispatcher(workflows)

    def ended(kind: EventKind, id_: str, seconds: int) -> InstanceEvent:
        at = NOW + timedelta(seconds=seconds)
        return state("", id_, kind=kind, state=None, group="c1-mp-0", time=at)

    failed, served = ended(EventKind.LAUNCH_FAILED, "failed", 2), ended(EventKind.LAUNCH_OK, "served", 1)
    gone = ended(EventKind.TERMINATE_OK, "gone", 0)
    await asyncio.gather(*(sender.outcome(each) for each in (failed, served, gone)))
    assert workflows.ended == [{"launch": "failed/c1-mp-0", "terminate": "gone/c1-mp-0"}]
    hook = state("", "hook", kind=EventKind.TERMINATING, state=None, group="c1-mp-0")
    await sender.outcome(hook)
    assert workflows.ended[1:] == [{}]


async def test_a_group_without_an_owner_is_not_woken(workflows: Workflows) -> None:
    failed = state("", kind=EventKind.LAUNCH_FAILED, state=None, group="strangers")
    assert (await dispatcher(workflows).outcome(failed)).outcome is Outcome.UNKNOWN
    assert workflows.woken == []


async def test_an_event_of_a_host_is_delivered_to_each_instance_on_it(workflows: Workflows) -> None:
    index = Index()
    for name in ("i-1", "i-2"):
        on_host = {"dedicatedHost": {"id": "h-1"}}
        holder = machine({"metadata": {"name": name}, "spec": {"instanceID": name}, "status": on_host})
        index.machines[holder.name] = holder
    sender = Dispatcher(index, {(ACCOUNT, REGION)}, workflows.hand_over, workflows.wake)
    event = state("", kind=EventKind.HEALTH_SCHEDULED, state=None, host="h-1")
    assert await sender.outcome(event) == Handled(event=event, outcome=Outcome.APPLIED)
    assert sorted(name for name, _, _ in workflows.delivered) == ["i-1", "i-2"]
    unowned = event.model_copy(update={"host": "h-2"})
    assert (await sender.outcome(unowned)).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("outcome", "processed"),
    [
        (Outcome.APPLIED, True),
        (Outcome.DUPLICATE, True),
        (Outcome.STALE, True),
        (Outcome.UNKNOWN, False),
        (Outcome.UNAVAILABLE, False),
    ],
)
async def test_an_event_is_processed_once_its_workflow_says_so(
    workflows: Workflows, outcome: Outcome, processed: bool
) -> None:
    workflows.outcome = outcome
    message = Message(body="", received_at=NOW, account=ACCOUNT, region=REGION)
    sender = (state("i-1", received_at=datetime.now(UTC), at=InstanceState.TERMINATED),)
    received = EventBridgeEvent(message=message, parsed=Events(events=sender))
    assert await is_event_processed(dispatcher(workflows, "i-1"), received) is processed
    unread = EventBridgeEvent(message=message, parsed=Invalid(reason="not JSON"))
    assert not await is_event_processed(dispatcher(workflows, "i-1"), unread)
