"""How many machines of a node group are disrupted at the same time, and what the others wait for."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from instance_scenes import ACCOUNT, REGION, T0, at, deleting_all, facts, observed, owner, record, scheduled, spot
from memory_kube import MemoryKube
from temporalio.testing import ActivityEnvironment

from activities.instances import disruption_budget
from activities.instances.aws_queries import ServedPlaces
from activities.instances.cache import InstanceCache
from activities.instances.disruption_budget import Disruptions
from activities.instances.machine_replacement import MachineActivities
from activities.instances.observation import LookActivities
from activities.instances.state_verification import Checks
from domain.built_in_kinds import LEASE
from domain.identity import Kind
from domain.instances import MACHINE
from domain.instances.actions import CordonNode, DeleteOwner, ReleaseNode, Taking
from domain.instances.constants import CLUSTER_LABEL, CONTROL_PLANE_LABEL, DEPLOYMENT_LABEL, DISRUPTIONS_ANNOTATION
from domain.instances.disruption_budget import Disruption, Limit, Turn, waits_for
from domain.instances.event_record import fold
from domain.instances.event_verification import ScheduledEvent
from domain.instances.instance_lifecycle import decide_instance, work_for_instance
from domain.instances.interruption_policy import Reaction, ReactionPolicy
from domain.instances.observed import InstanceWorld
from domain.instances.resources import Machine
from domain.instances.workflow_ids import InstanceKey
from domain.refusal import ErrorType, Refusal
from domain.runner import State
from engine.errors import Conflict, Unavailable
from engine.kube.api import Listing

CONTROL_PLANE = {CONTROL_PLANE_LABEL: ""}
WORKERS = {DEPLOYMENT_LABEL: "md-0"}
READY = [{"type": "NodeHealthy", "status": "True"}]
DAY = 86400


def one(name: str, labels: dict[str, str], *, ready: bool = True, **metadata: Any) -> Machine:
    meta = {"name": name, "namespace": "c", "uid": f"uid-{name}", "labels": labels, **metadata}
    status = {"conditions": READY if ready else []}
    return Machine.model_validate({"metadata": meta, "spec": {"clusterName": "c1"}, "status": status})


def begun(name: str, seconds: float = 0, size: int = 3) -> Disruption:
    return Disruption(instance=f"i-{name}", name=name, uid=f"uid-{name}", at=at(seconds), size=size)


GOING: dict[str, Any] = {"deletionTimestamp": "2026-05-04T10:00:00Z", "finalizers": ["x"]}


# --- the rules ---


@pytest.mark.parametrize(
    ("labels", "others", "under_way", "taken", "waits"),
    [
        (WORKERS, [one("b", WORKERS)], [], False, False),
        (WORKERS, [one("b", WORKERS)], [begun("b")], False, True),
        (WORKERS, [one("b", WORKERS)], [begun("b")], True, False),
        (WORKERS, [one("b", WORKERS, **GOING)], [], False, True),
        (WORKERS, [one("b", WORKERS, ready=False)], [], False, False),
        (CONTROL_PLANE, [one("b", CONTROL_PLANE), one("c", CONTROL_PLANE)], [], False, False),
        (CONTROL_PLANE, [one("b", CONTROL_PLANE), one("c", CONTROL_PLANE, ready=False)], [], True, True),
        (CONTROL_PLANE, [one("b", CONTROL_PLANE), one("c", CONTROL_PLANE, **GOING)], [], True, True),
        (CONTROL_PLANE, [one("b", CONTROL_PLANE)], [begun("gone")], True, True),
        (CONTROL_PLANE, [one("b", CONTROL_PLANE)], [begun("gone", -3600)], True, False),
    ],
    ids=[
        "workers that are all well",
        "a worker while another is drained",
        "a worker that AWS reclaims right now",
        "a worker while another is deleted by somebody",
        "a worker beside one that is not ready",
        "a control plane that is well",
        "a control plane with one that is not ready",
        "a control plane with one being deleted",
        "a control plane whose replacement is missing",
        "a control plane that was scaled down an hour ago",
    ],
)
def test_a_machine_waits_for_its_node_group(
    labels: dict[str, str], others: list[Machine], under_way: list[Disruption], taken: bool, waits: bool
) -> None:
    first = one("a", labels)
    assert bool(waits_for(first, [first, *others], under_way, Limit(most=1), at(0), taken=taken)) == waits


@pytest.mark.parametrize(("status", "waits"), [("True", False), ("False", True), ("Unknown", True)])
def test_a_control_plane_waits_for_the_etcd_members_of_its_others(status: str, waits: bool) -> None:
    etcd = {"type": "EtcdMemberHealthy", "status": status}
    other = one("b", CONTROL_PLANE)
    other = Machine.model_validate({**other.model_dump(by_alias=True), "status": {"conditions": [*READY, etcd]}})
    first = one("a", CONTROL_PLANE)
    for taken in (False, True):
        why = waits_for(first, [first, other], [], Limit(most=1), at(0), taken=taken)
        assert why == ("control plane c/c1: Machine b has an unhealthy etcd member" if waits else "")
    group = ([first, other], [begun("gone", size=2)], Limit(most=1), at(60))
    assert bool(waits_for(first, *group, taken=True)) == waits, "a replacement counts once etcd has it"


def test_a_larger_budget_disrupts_more_workers_but_one_control_plane_machine() -> None:
    for labels, waits in ((WORKERS, False), (CONTROL_PLANE, True)):
        members = [one(name, labels) for name in "abc"]
        assert bool(waits_for(members[0], members, [begun("b")], Limit(most=2), at(0), taken=False)) == waits


def test_an_ended_disruption_does_not_count_again_because_of_a_later_one() -> None:
    """Three machines were replaced; while a fourth is, there is room for one more within a limit of two."""
    old = [begun(name, seconds) for seconds, name in enumerate(("old-1", "old-2", "old-3"))]
    first, other = one("a", WORKERS), one("b", WORKERS)
    limit, last = Limit(most=2), begun("c", 9)
    for going in ([one("c", WORKERS, **GOING)], [], [one("d", WORKERS, ready=False)]):
        members = [first, other, *going]
        assert waits_for(first, members, [*old, last], limit, at(10), taken=False) == ""
        why = waits_for(first, members, [*old, last], Limit(most=1), at(10), taken=False)
        assert "Machine c " in why
        assert "old" not in why


def test_as_many_ended_machines_count_as_the_group_lacks() -> None:
    first, others = one("a", WORKERS), [one(name, WORKERS) for name in "bc"]
    under_way = [begun("old", 0, size=5), begun("x", 1, size=5), begun("y", 2, size=4)]
    why = waits_for(first, [first, *others], under_way, Limit(most=2), at(10), taken=False)
    assert ("Machine x " in why, "Machine y " in why, "Machine old " in why) == (True, True, False)
    replaced = [first, *others, one("new", WORKERS)]
    assert waits_for(first, replaced, under_way, Limit(most=2), at(10), taken=False) == ""


SETTING = "PERDURE_INSTANCES_DISRUPTIONS (1) is reached"


@pytest.mark.parametrize(
    ("labels", "others", "under_way", "why"),
    [
        (
            WORKERS,
            [one("b", WORKERS)],
            [begun("b")],
            f"Machine b is being replaced, cordoned or drained; {SETTING}",
        ),
        (WORKERS, [one("b", WORKERS, **GOING)], [begun("b")], f"Machine b is being deleted; {SETTING}"),
        (WORKERS, [], [begun("b")], f"the replacement of Machine b is not ready; {SETTING}"),
        (
            WORKERS,
            [one(name, WORKERS, **GOING) for name in "bcdef"],
            [],
            ", ".join(f"Machine {name} is being deleted" for name in "bcd") + f", and 2 more; {SETTING}",
        ),
        (
            CONTROL_PLANE,
            [one("b", CONTROL_PLANE)],
            [begun("b")],
            "Machine b is being replaced, cordoned or drained; a control plane loses one machine at a time",
        ),
        (CONTROL_PLANE, [one("b", CONTROL_PLANE, ready=False)], [], "the Node of Machine b is not ready"),
        (CONTROL_PLANE, [one("b", CONTROL_PLANE, **GOING)], [], "Machine b is being deleted"),
    ],
    ids=["drained", "deleted", "replaced", "many", "control plane", "control plane not ready", "control plane deleted"],
)
def test_waiting_names_the_machine_what_happens_to_it_and_the_limit(
    labels: dict[str, str], others: list[Machine], under_way: list[Disruption], why: str
) -> None:
    first = one("a", labels)
    group = "control plane c/c1" if labels is CONTROL_PLANE else "MachineDeployment c/md-0"
    assert waits_for(first, [first, *others], under_way, Limit(most=1), at(0), taken=False) == f"{group}: {why}"


def test_waiting_for_a_policy_names_the_policy() -> None:
    limit = Limit(most=2, policy="web")
    members = [one(name, WORKERS) for name in "abc"]
    why = waits_for(members[0], members, [begun("b"), begun("c")], limit, at(0), taken=False)
    assert why.endswith("; maxUnavailable (2) of InterruptionPolicy web is reached")


def test_a_disruption_lasts_until_the_replacement_is_well() -> None:
    left, new = [one("b", WORKERS), one("c", WORKERS)], one("d", WORKERS, ready=False)

    def waits(members: list[Machine], seconds: float = 60) -> bool:
        return bool(waits_for(left[0], members, [begun("a")], Limit(most=1), at(seconds), taken=False))

    assert waits([one("a", WORKERS, **GOING), *left])
    assert waits(left)
    assert waits([*left, new])
    assert not waits([*left, one("d", WORKERS)])
    assert not waits(left, 3600), "the group may have been scaled down"


# --- workers of Perdure that act at the same moment ---


async def made(kube: MemoryKube, name: str, labels: dict[str, str]) -> str:
    meta = {"name": name, "finalizers": ["x"], "labels": labels}
    status = {"conditions": READY}
    found = await kube.create(MACHINE, {"metadata": meta, "spec": {"clusterName": "c1"}, "status": status}, "c")
    return str(found["metadata"]["uid"])


class Interleaved(MemoryKube):
    """An API server whose answers take time, so that others get theirs in between."""

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        found = await super().get(kind, namespace, name)
        await asyncio.sleep(0.01)
        return found

    async def list(self, kind: Kind, namespace: str = "", **more: Any) -> Listing:
        found = await super().list(kind, namespace, **more)
        await asyncio.sleep(0.01)
        return found


def worker(kube: MemoryKube) -> LookActivities:
    known = InstanceCache(kube, kube)  # type: ignore[arg-type]
    checks = Checks(ServedPlaces((), kube), kube, timedelta(hours=1))  # type: ignore[arg-type]
    return LookActivities(kube, known, checks, ReactionPolicy(), observing=False)  # type: ignore[arg-type]


def machines(kube: MemoryKube) -> MachineActivities:
    known = InstanceCache(kube, kube)  # type: ignore[arg-type]
    return MachineActivities(kube, known, Disruptions(kube, "perdure", 1))  # type: ignore[arg-type]


async def deleted(by: MachineActivities, name: str, uid: str, *, taken: bool = False) -> Turn:
    key = InstanceKey(account=ACCOUNT, region=REGION, instance_id=f"i-{name}").lifecycle
    deletion = DeleteOwner(key=key, cause="x", namespace="c", name=name, uid=uid, taken=taken)
    done: Taking = await ActivityEnvironment().run(by.delete_machine, deletion)
    return done.turn


@pytest.mark.parametrize("labels", [CONTROL_PLANE, WORKERS], ids=["control plane", "workers"])
async def test_of_three_machines_named_by_one_event_one_is_deleted(labels: dict[str, str]) -> None:
    kube = Interleaved()
    uids = {name: await made(kube, name, labels) for name in "abc"}
    turns = await asyncio.gather(*(deleted(machines(kube), name, uid) for name, uid in uids.items()))
    going = [each for each in (await kube.list(MACHINE)).items if each["metadata"].get("deletionTimestamp")]
    assert len(going) == 1
    waiting = [turn.why for turn in turns if turn.why]
    assert len(waiting) == 2
    assert all(going[0]["metadata"]["name"] in why for why in waiting)


async def test_workers_that_aws_takes_right_now_do_not_wait_for_each_other() -> None:
    kube = MemoryKube()
    uids = {name: await made(kube, name, WORKERS) for name in "abc"}
    turns = await asyncio.gather(*(deleted(machines(kube), name, uid, taken=True) for name, uid in uids.items()))
    assert [turn.why for turn in turns] == [""] * 3


class Hanging(MemoryKube):
    async def list(self, kind: Kind, namespace: str = "", **more: Any) -> Listing:
        await asyncio.sleep(60)
        return await super().list(kind, namespace, **more)


async def test_a_machine_that_aws_takes_does_not_wait_for_a_list_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(disruption_budget, "TAKEN_WAITS", 0.05)
    kube = Hanging()
    uid = await made(kube, "a", WORKERS)
    async with asyncio.timeout(5):
        assert not (await deleted(machines(kube), "a", uid, taken=True)).why
    assert (await kube.get(MACHINE, "c", "a"))["metadata"]["deletionTimestamp"]


async def test_a_machine_has_its_turn_once_another_has_ended() -> None:
    kube = MemoryKube()
    first, second = Disruptions(kube, "perdure", 1), Disruptions(kube, "perdure", 1)  # type: ignore[arg-type]
    machines = []
    for name in "ab":
        await made(kube, name, WORKERS)
        patch = {"spec": {"providerID": f"aws:///{REGION}a/i-{name}"}}
        machines.append(Machine.model_validate(await kube.patch(MACHINE, "c", name, patch)))

    async def why(turns: Disruptions, each: Machine) -> str:
        async def begin() -> str:
            return (await turns.begin(each, f"i-{each.metadata.name}", taken=False)).why

        message: str = await ActivityEnvironment().run(begin)
        return message

    assert not await why(first, machines[0])
    assert not await why(second, machines[0]), "an attempt after a crash goes on"
    assert await why(second, machines[1])
    await first.end("i-a")
    assert not await why(second, machines[1])


async def test_young_machines_that_name_no_instance_yet_each_count() -> None:
    kube = MemoryKube()
    for name in "ab":
        await deleted(machines(kube), name, await made(kube, name, WORKERS), taken=True)
    lease = await kube.get(LEASE, "perdure", disruption_budget.LEASE_NAME)
    (group,) = json.loads(lease["metadata"]["annotations"][DISRUPTIONS_ANNOTATION])["groups"].values()
    assert [each["instance"] for each in group] == ["i-a", "i-b"]


class Contended(MemoryKube):
    """Other clients write the Lease before each of our writes."""

    async def patch(self, kind: Kind, *args: Any, **more: Any) -> dict[str, Any]:
        if kind == LEASE:
            raise Conflict("the object has been modified")
        return await super().patch(kind, *args, **more)


async def test_a_turn_that_cannot_be_released_is_not_forgotten() -> None:
    """The activity is repeated; else the machine would count for an hour."""
    kube = Contended()
    await deleted(machines(kube), "a", await made(kube, "a", WORKERS))
    lease = await kube.get(LEASE, "perdure", disruption_budget.LEASE_NAME)
    (instance,) = (
        each["instance"]
        for group in json.loads(lease["metadata"]["annotations"][DISRUPTIONS_ANNOTATION])["groups"].values()
        for each in group
    )
    with pytest.raises(Unavailable, match="written by other clients"):
        await Disruptions(kube, "perdure", 1).end(instance)  # type: ignore[arg-type]


@pytest.mark.parametrize("moment", ["2026-05-04T10:00:00", "0001-01-01T00:00:00Z", "soon"])
async def test_a_ledger_with_an_unreadable_time_holds_up_no_machine(moment: str) -> None:
    """Someone has edited the Lease."""
    kube = MemoryKube()
    uid = await made(kube, "a", WORKERS)
    edited = {"groups": {"x": [{"instance": "i-z", "name": "z", "uid": "z", "at": moment}]}}
    meta = {"name": disruption_budget.LEASE_NAME, "annotations": {DISRUPTIONS_ANNOTATION: json.dumps(edited)}}
    await kube.create(LEASE, {"metadata": meta, "spec": {}}, "perdure")
    assert not (await deleted(machines(kube), "a", uid)).why


async def reason_to_wait(kube: MemoryKube, name: str, monkeypatch: pytest.MonkeyPatch, seconds: float = 0) -> str:
    """What a Machine waits for, so many seconds after the test's beginning."""
    machine = Machine.model_validate(await kube.get(MACHINE, "c", name))
    monkeypatch.setattr(disruption_budget, "now", lambda: at(seconds))
    turns = Disruptions(kube, "perdure", 1)  # type: ignore[arg-type]
    return (await turns.begin(machine, f"i-{name}", taken=False)).why


async def test_a_cordoned_control_plane_machine_stays_while_another_is_unwell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its cordon has begun its turn, and the deletion comes later."""
    kube = MemoryKube()
    for name in "abc":
        await made(kube, name, {**CONTROL_PLANE, CLUSTER_LABEL: "c1"})
    assert not await reason_to_wait(kube, "a", monkeypatch)
    assert not await reason_to_wait(kube, "a", monkeypatch), "an attempt after a crash goes on"
    await kube.delete(MACHINE, "c", "b")
    assert "Machine b is being deleted" in await reason_to_wait(kube, "a", monkeypatch)


async def test_a_turn_of_more_than_an_hour_ago_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = MemoryKube()
    for name in "ab":
        await made(kube, name, {**WORKERS, CLUSTER_LABEL: "c1"})
    assert not await reason_to_wait(kube, "a", monkeypatch)
    assert not await reason_to_wait(kube, "b", monkeypatch, 3601), "the first has lasted too long to count"
    assert "Machine b " in await reason_to_wait(kube, "a", monkeypatch, 3602)


# --- the lifecycle ---


@pytest.mark.parametrize("waits", [False, True])
def test_a_spot_notice_does_not_wait_for_the_turn_of_a_scheduled_event(*, waits: bool) -> None:
    """A control plane's machine was asked for again for the notice, and waits as well."""
    policy = ReactionPolicy(spot=Reaction.DELETE_MACHINE, ending=Reaction.DELETE_MACHINE)
    answer = facts(12, spot=True, spot_code="marked-for-termination", scheduled=(ScheduledEvent(code="instance-stop"),))
    waiting = Turn(at=at(10), why="a control plane loses one machine at a time")
    known = record(scheduled(5, at(DAY)), spot(11))
    world = observed(known, policy=policy, facts=answer, turn=waiting)
    (deletion,) = work_for_instance(world, at(13)).steps
    assert isinstance(deletion, DeleteOwner)
    assert (deletion.cause, deletion.taken) == (spot(11).key, True)
    after = deletion.fold(world, Taking(turn=Turn(at=at(13), why=waiting.why if waits else "")))
    assert bool(work_for_instance(after, at(14)).steps) != waits


def test_waiting_for_a_turn_is_shown_and_asked_for_again() -> None:
    event = scheduled(5, at(DAY))
    answer = facts(9, scheduled=(ScheduledEvent(code="instance-stop"),))
    waiting = Turn(at=at(10), why="control plane c/c1: Machine b is unhealthy")
    seen = observed(record(event), policy=deleting_all(), facts=answer, turn=waiting)
    done = work_for_instance(seen, at(11))
    assert (done.steps, done.why, done.deadline) == ((), waiting.why, at(30))
    assert isinstance(work_for_instance(seen, at(30)).steps[0], DeleteOwner)


@pytest.mark.parametrize("why", ["", "MachineDeployment c/md-0: Machine b is being replaced or drained"])
def test_a_node_counts_as_cordoned_only_once_it_had_its_turn(why: str) -> None:
    answer = facts(9, scheduled=(ScheduledEvent(code="instance-stop"),))
    world = observed(record(scheduled(5, at(DAY))), policy=ReactionPolicy(ending=Reaction.DRAIN), facts=answer)
    (action,) = work_for_instance(world, at(10)).steps
    assert isinstance(action, CordonNode)
    after = action.fold(world, Taking(turn=Turn(at=T0, why=why)))
    assert (after.record.drain is None) == bool(why)


DRAINED_FOR_STOPS = ReactionPolicy(ending=Reaction.DRAIN)
STOPS = facts(9, scheduled=(ScheduledEvent(code="instance-stop"),))


def withdrawn(state: State[InstanceWorld], seconds: float) -> State[InstanceWorld]:
    """Health closes the scheduled event."""
    withdrawn_at = scheduled(seconds, at(DAY), status="closed")
    return state.copy(world=state.world.with_record(fold(state.world.record, withdrawn_at)))


@pytest.mark.parametrize("refused", [False, True], ids=["during the cordon", "after its refusal"])
def test_a_turn_is_released_if_the_cause_is_withdrawn_before_the_cordon(*, refused: bool) -> None:
    """The workload cluster is out of order meanwhile; the turn would block the node group for an hour."""
    world = observed(record(scheduled(5, at(DAY))), policy=DRAINED_FOR_STOPS, facts=STOPS)
    state, step = State(world, dirty=False).step(decide_instance, at(10))
    (cordon,) = (each for each in step.start if isinstance(each, CordonNode))
    if refused:
        state = state.failed(cordon.slot, Refusal(type=ErrorType.UNAVAILABLE, message="no answer", at=at(11)))
        state, _ = withdrawn(state, 12).step(decide_instance, at(100))
    else:
        state, step = withdrawn(state, 12).step(decide_instance, at(13))
        assert step.cancel == (cordon.slot,)
        state, _ = state.stopped(cordon.slot).step(decide_instance, at(14))
    release = state.running[cordon.slot]
    assert isinstance(release, ReleaseNode)
    assert release.unused
    state, _ = state.finished(cordon.slot, None).step(decide_instance, at(101))
    assert cordon.slot not in state.running


def test_a_turn_is_not_released_while_its_cause_lasts() -> None:
    world = observed(record(scheduled(5, at(DAY))), policy=DRAINED_FOR_STOPS, facts=STOPS)
    (cordon,) = work_for_instance(world, at(10)).steps
    after = cordon.cancelled(world)
    assert [type(each) for each in work_for_instance(after, at(11)).steps] == [CordonNode]
    used = cordon.fold(after, Taking(turn=Turn(at=at(11))))
    assert not used.known.turn_unused


def test_a_turn_stays_if_its_machine_is_deleted() -> None:
    """The group lacks the machine until it is replaced."""
    world = observed(record(scheduled(5, at(DAY))), policy=deleting_all(), facts=STOPS)
    (deletion,) = work_for_instance(world, at(10)).steps
    assert isinstance(deletion, DeleteOwner)
    after = deletion.cancelled(world)
    assert after.known.turn_unused
    for goes in (owner(**GOING), None):
        assert not world.model_copy(update={"owner": goes}).recall(after).known.turn_unused
