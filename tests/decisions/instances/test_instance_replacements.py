"""A Machine that is replaced before it is deleted: what is decided, and what comes of it wherever a worker dies."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from instance_scenes import ACCOUNT, KEY, REGION, T0, at, facts, machine, record, scheduled, spot, state
from instance_scenes import observed as observed_without
from instance_scenes import owner as owner_without
from memory_kube import MemoryKube
from temporalio.testing import ActivityEnvironment

from activities.instances.cache import InstanceCache
from activities.instances.disruption_budget import Disruptions
from activities.instances.machine_replacement import MachineActivities
from domain.built_in_kinds import EVENT, LEASE
from domain.decision import Action, WhenUnwanted
from domain.identity import Key, Kind
from domain.instances import INTERRUPTION_POLICY, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from domain.instances.actions import Asked, AskInstance, AskReplacement, DeleteOwner, EndReplacement, Taking
from domain.instances.constants import (
    AUTOSCALER_ANNOTATIONS,
    CLUSTER_LABEL,
    DELETE_FIRST_ANNOTATION,
    DEPLOYMENT_LABEL,
    PAUSED_ANNOTATION,
    REPLACING_ANNOTATION,
    TOPOLOGY_LABEL,
)
from domain.instances.disruption_budget import Turn
from domain.instances.event_record import InstanceRecord, opened
from domain.instances.event_verification import Question, ScheduledEvent
from domain.instances.instance_lifecycle import InstanceWork, work_for_instance
from domain.instances.interruption_policy import Reaction, ReactionPolicy
from domain.instances.observed import InstanceMemory, InstanceWorld
from domain.instances.replacements import (
    REPLACED,
    Mark,
    Replaced,
    Replacement,
    UnreplaceableError,
    Unreplaced,
    check_replaceable,
    mark_of,
    replaced_by,
)
from domain.instances.resources import InterruptionPolicy, Machine, MachineDeployment, MachineSet
from domain.instances.workflow_ids import InstanceKey
from domain.notices import Notice, Reported
from engine.errors import Absent, ApiError, Conflict, Denied, Unavailable
from engine.kube.json import JsonObject, mapping, text
from engine.settings import Settings
from starters.watch.instances import watched_for
from starters.watch.projection import Projection
from starters.watch.projection_index import Index

WAIT = timedelta(seconds=60)
FIRST = ReactionPolicy(
    spot=Reaction.DELETE_MACHINE,
    ending=Reaction.DELETE_MACHINE,
    terminated=Reaction.DELETE_MACHINE,
    replace_first={"spot": WAIT, "ending": timedelta(minutes=15)},
)


def owner(**metadata: Any) -> Machine:
    """A Machine of a MachineDeployment."""
    return owner_without(**({"labels": {DEPLOYMENT_LABEL: "md-0"}} | metadata))


def observed(known: InstanceRecord, **changes: Any) -> InstanceWorld:
    return observed_without(known, **({"owner": owner()} | changes))


def requested_replacement(seconds: float = 5, **changes: Any) -> Replacement:
    whole = {"deployment": "md-0", "namespace": "clusters", "name": "m-0", "uid": "u-m", "asked_at": at(seconds)}
    return Replacement.model_validate(whole | changes)


def confirmed(seconds: float, value: str = "running") -> Any:
    listed = (ScheduledEvent(code="instance-stop"),)
    return facts(seconds, value, spot=True, spot_code="marked-for-termination", scheduled=listed)


def taken(seconds: float, *, world: Mapping[str, Any] | None = None, value: str = "running") -> InstanceWork:
    """What is done some seconds after Spot's notice, which AWS confirms."""
    changes: dict[str, Any] = {"policy": FIRST, "facts": confirmed(seconds - 1, value)} | dict(world or {})
    return work_for_instance(observed(record(spot(4)), **changes), at(seconds))


def steps(work: InstanceWork) -> list[type[Action]]:
    return [type(each) for each in work.steps]


# --- decisions ---


def test_a_replacement_is_asked_for_before_the_machine_is_deleted() -> None:
    assert steps(taken(7)) == [AskReplacement]


def test_the_machine_is_not_deleted_while_its_replacement_is_waited_for() -> None:
    work = taken(7, world={"replacement": requested_replacement(6)})
    assert (work.steps, work.deadline) == ((), at(66))
    assert (
        work.why == "waits until 10:01:06 UTC for the replacement of Machine m-0, requested from MachineDeployment md-0"
    )


@pytest.mark.parametrize(
    ("seconds", "replacement"),
    [
        (7, {"ready": "m-9"}),
        (66, {}),
        (7, {"overridden": True}),
        (124, {"asked_at": at(100)}),
    ],
    ids=["ready", "the policy's time is over", "replicas were lowered by somebody", "Spot takes it"],
)
def test_the_machine_is_deleted_once_its_replacement_is_ready_or_time_is_over(
    seconds: float, replacement: dict[str, Any]
) -> None:
    (deletion,) = taken(seconds, world={"replacement": requested_replacement(6, **replacement)}).steps
    assert isinstance(deletion, DeleteOwner)
    assert deletion.deployment == "md-0"


@pytest.mark.parametrize(
    "world",
    [
        {"policy": FIRST.model_copy(update={"replace_first": {}})},
        {"owner": owner(annotations={DELETE_FIRST_ANNOTATION: REPLACED})},
        {"owner": owner_without()},
    ],
    ids=["none is wanted first", "the MachineSet was told already", "it has no MachineDeployment"],
)
def test_no_replacement_is_asked_for_where(world: dict[str, Any]) -> None:
    assert steps(taken(7, world=world)) == [DeleteOwner]


def test_no_replacement_is_asked_for_twice_where_there_can_be_none() -> None:
    world = observed(record(spot(4)), policy=FIRST, facts=confirmed(6)).learn(
        unreplaced=Unreplaced(uid="u-m", why="MachineDeployment md-0 is paused")
    )
    work = work_for_instance(world, at(7))
    assert steps(work) == [DeleteOwner]
    assert work.why == "Machine m-0 is not replaced before it is deleted: MachineDeployment md-0 is paused"


def test_a_later_cause_asks_for_a_replacement_although_an_earlier_one_could_not() -> None:
    """The first cause was withdrawn while the Machine waited for its turn."""
    why = Unreplaced(uid="u-m", cause="arn:h@1777975200", why="MachineDeployment md-0 is being rolled out")
    world = observed(record(), policy=FIRST, facts=confirmed(6)).learn(unreplaced=why)
    assert work_for_instance(world, at(7)).why == ""
    later = world.with_record(record(spot(4)))
    assert steps(work_for_instance(later, at(7))) == [AskReplacement]


def test_a_machine_whose_instance_has_ended_is_deleted_at_once() -> None:
    known = record(spot(4), state("shutting-down", 6))
    for replacement in (None, requested_replacement(5)):
        world = observed(known, policy=FIRST, facts=confirmed(7, "shutting-down"), replacement=replacement)
        assert steps(work_for_instance(world, at(8))) == [DeleteOwner]


def test_a_scheduled_event_waits_as_long_as_its_own_cause_says() -> None:
    world = observed(
        record(scheduled(5, at(86400))), policy=FIRST, facts=confirmed(9), replacement=requested_replacement(10)
    )
    assert work_for_instance(world, at(11)).deadline == at(910)


@pytest.mark.parametrize(
    ("changes", "keep"),
    [
        ({}, True),
        ({"owner": owner(deletionTimestamp="2026-05-04T10:00:00Z", finalizers=["x"])}, False),
        ({"owner": None}, False),
        ({"owner": owner(uid="u-other")}, False),
        ({"machine": None, "owner": None}, False),
    ],
    ids=["the cause is withdrawn", "the Machine is being deleted", "it is gone", "it is another", "nobody has it"],
)
def test_a_replacement_that_is_wanted_no_more_is_ended(changes: dict[str, Any], *, keep: bool) -> None:
    world = observed(record(), policy=FIRST, facts=facts(9), replacement=requested_replacement(), **changes)
    (end,) = work_for_instance(world, at(10)).steps
    assert isinstance(end, EndReplacement)
    assert (end.keep, end.deployment, end.uid) == (keep, "md-0", "u-m")
    if not keep and changes.get("machine", ...) is ...:
        wanted = observed(
            record(spot(4)), policy=FIRST, facts=confirmed(9), replacement=requested_replacement(), **changes
        )
        assert EndReplacement in steps(work_for_instance(wanted, at(10))), "also while its cause stands"


def test_a_lost_workflow_asks_aws_before_it_gives_a_replacement_up() -> None:
    """Of a scheduled event it knows no more."""
    known = opened(KEY, at(0))
    unasked = facts(3, asked=(Question.INSTANCE,))
    for answer in (None, unasked):
        (ask,) = work_for_instance(
            observed(known, policy=FIRST, facts=answer, replacement=requested_replacement()), at(10)
        ).steps
        assert isinstance(ask, AskInstance)
        assert Question.STATUS in ask.questions
    event = ScheduledEvent(id="e", code="instance-stop", not_before=at(7200))
    world = observed(known, policy=FIRST, replacement=requested_replacement()).with_answer(
        facts(10, scheduled=(event,)), {}
    )
    assert not work_for_instance(world, at(11)).steps, "the replacement is waited for again"
    withdrawn = observed(known, policy=FIRST, replacement=requested_replacement()).with_answer(facts(10), {})
    assert steps(work_for_instance(withdrawn, at(11))) == [EndReplacement]


def test_a_machine_that_stays_is_no_longer_the_first_to_be_deleted() -> None:
    left = owner(annotations={DELETE_FIRST_ANNOTATION: REPLACED})
    (end,) = work_for_instance(observed(record(), policy=FIRST, facts=facts(9), owner=left), at(10)).steps
    assert isinstance(end, EndReplacement)
    assert (end.keep, end.deployment) == (True, "")
    someone = owner(annotations={DELETE_FIRST_ANNOTATION: "yes"})
    assert not work_for_instance(observed(record(), policy=FIRST, facts=facts(9), owner=someone), at(10)).steps


@pytest.mark.parametrize(
    "changes",
    [
        {"owner": owner(annotations={PAUSED_ANNOTATION: ""})},
        {"machine": machine(deletionTimestamp="2026-05-04T10:00:00Z", finalizers=["x"])},
    ],
    ids=["paused", "its AWSMachine goes first"],
)
def test_a_replacement_of_what_is_held_is_left_as_it_is(changes: dict[str, Any]) -> None:
    world = observed(record(), policy=FIRST, facts=facts(9), replacement=requested_replacement(), **changes)
    assert not work_for_instance(world, at(10)).steps


def test_a_replacement_is_waited_for_before_the_cache_shows_its_mark() -> None:
    """The Machine's own annotation may be seen first."""
    marked_first = {"owner": owner(annotations={DELETE_FIRST_ANNOTATION: REPLACED})}
    world = observed(record(spot(4)), policy=FIRST, facts=confirmed(6), **marked_first)
    (ask,) = taken(7).steps
    world = ask.fold(world, Asked(turn=Turn(at=at(7)), replacement=requested_replacement(7)))
    assert not work_for_instance(world, at(8)).steps
    (deletion,) = work_for_instance(world.with_answer(confirmed(66), {}), at(67)).steps
    assert isinstance(deletion, DeleteOwner)
    assert deletion.deployment == "md-0"
    assert deletion.fold(world, Taking(turn=Turn(at=at(68)))).asked is None


def test_what_was_asked_for_runs_to_its_end() -> None:
    assert AskReplacement.when_unwanted is WhenUnwanted.FINISHED
    assert EndReplacement.when_unwanted is WhenUnwanted.FINISHED


# --- which MachineDeployments are scaled ---

SET = {
    "kind": "MachineSet",
    "name": "ms-0",
    "uid": "u-ms",
    "apiVersion": "cluster.x-k8s.io/v1beta1",
    "controller": True,
}
OF_SET = {"ownerReferences": [{"kind": "MachineDeployment", "name": "md-0", "uid": "u-md", "apiVersion": "x/v1"}]}


def deployment(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **meta: Any) -> Any:
    metadata = {"name": "md-0", "namespace": "clusters", "uid": "u-md", "labels": {CLUSTER_LABEL: "c1"}} | meta
    counts = {"replicas": 3, "updatedReplicas": 3} | (status or {})
    return MachineDeployment.model_validate(
        {"metadata": metadata, "spec": {"replicas": 3} | (spec or {}), "status": counts}
    )


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (deployment(), ""),
        (None, "no MachineDeployment owns Machine m-0"),
        (deployment(uid="u-other"), "no MachineDeployment owns Machine m-0"),
        (
            deployment(deletionTimestamp="2026-05-04T10:00:00Z", finalizers=["x"]),
            "MachineDeployment md-0 is being deleted",
        ),
        (deployment({"paused": True}), "MachineDeployment md-0 is paused"),
        (deployment(annotations={PAUSED_ANNOTATION: ""}), "MachineDeployment md-0 is paused"),
        (deployment(annotations={"perdure.dev/paused": "true"}), "MachineDeployment md-0 is paused"),
        (
            deployment(annotations={AUTOSCALER_ANNOTATIONS[1]: "9"}),
            "the cluster autoscaler sets the replicas of MachineDeployment md-0",
        ),
        (
            deployment(labels={TOPOLOGY_LABEL: "", CLUSTER_LABEL: "c1"}),
            "the topology of Cluster c1 sets the replicas of MachineDeployment md-0",
        ),
        (deployment(status={"updatedReplicas": 2}), "MachineDeployment md-0 is being rolled out"),
        (deployment({"replicas": 0}), "MachineDeployment md-0 has 0 replicas"),
        (
            deployment(annotations={REPLACING_ANNOTATION: "{"}),
            f"MachineDeployment md-0: its annotation {REPLACING_ANNOTATION} cannot be read; remove it",
        ),
    ],
)
def test_only_a_machine_deployment_that_nobody_else_scales_is_asked(found: Any, why: str) -> None:
    whose = owner(ownerReferences=[SET])
    its_set = MachineSet.model_validate({"metadata": {"name": "ms-0", "uid": "u-ms", **OF_SET}})
    message = ""
    try:
        check_replaceable(whose, its_set, found)
    except UnreplaceableError as error:
        message = str(error)
    assert message == why


def entry(uid: str, seconds: float = 0, **changes: Any) -> Replaced:
    place = {"account": ACCOUNT, "region": REGION, "instance": f"i-{uid}", "name": uid}
    return Replaced.model_validate({**place, "uid": uid, "at": at(seconds), **changes})


@pytest.mark.parametrize(
    ("machines", "replicas", "left"),
    [
        (["a"], 4, 3),
        (["a"], 3, 3),
        (["a"], 2, 2),
        (["a"], 7, 7),
        (["a", "b"], 5, 4),
        (["a", "b"], 3, 3),
    ],
)
def test_replicas_are_lowered_by_one_unless_somebody_else_has_set_them(
    machines: list[str], replicas: int, left: int
) -> None:
    mark = Mark(replicas=3, machines=tuple(entry(each) for each in machines))
    after = mark.seen(replicas).ended("a")
    assert (after.expected, [each.uid for each in after.machines]) == (left, machines[1:])
    # Nor are they lowered by the other's end, once they are somebody's.
    if left == replicas and machines[1:]:
        assert after.seen(left).ended("b").expected == left


def young(name: str, seconds: float, *, ready: bool = True, **meta: Any) -> Machine:
    return owner(ready=ready, name=name, uid=name, creationTimestamp=at(seconds).isoformat(), **meta)


@pytest.mark.parametrize(
    ("members", "used", "expected"),
    [
        ([], (), {}),
        ([young("old", -60)], (), {}),
        ([young("n1", 20, ready=False)], (), {}),
        ([young("n1", 20)], (), {"a": "n1"}),
        ([young("n1", 20), young("n2", 25)], (), {"a": "n1", "b": "n2"}),
        ([young("n1", 20), young("n2", 25)], ("n1",), {"a": "n2"}),
        ([young("n1", 20, annotations={DELETE_FIRST_ANNOTATION: ""})], (), {}),
        ([young("a", 20)], (), {}),
    ],
    ids=[
        "none",
        "an older one",
        "one that is not ready",
        "one for the first",
        "one for each",
        "one that has replaced another",
        "one that goes again",
        "itself",
    ],
)
def test_each_machine_is_replaced_by_a_younger_one_of_its_own(
    members: list[Machine], used: tuple[str, ...], expected: dict[str, str]
) -> None:
    mark = Mark(replicas=3, machines=(entry("a", 10), entry("b", 11)), used=used)
    assert {uid: each.metadata.name for uid, each in replaced_by(mark, members).items()} == expected


# --- with Cluster API, wherever a worker dies ---


class Clusters(MemoryKube):
    """An API server on which Cluster API keeps three Machines; one write of ours is not answered, or not done."""

    def __init__(
        self, fails_at: int = 0, *, done: bool = True, between: bool = False, fails: type[ApiError] = Unavailable
    ) -> None:
        super().__init__()
        self._between = between  # whether Cluster API acts between any two writes of ours
        self._writes = itertools.count(1)
        self._fails_at, self._done, self._fails = fails_at, done, fails
        self.refused: tuple[str, ...] = ()
        self._names = itertools.count()
        self.notices: list[Notice] = []

    async def begin(self, machines: int = 3, **meta: Any) -> None:
        spec = {"replicas": machines}
        status = {"replicas": machines, "updatedReplicas": machines}
        made = await super().create(
            MACHINE_DEPLOYMENT, {"metadata": {"name": "md-0", **meta}, "spec": spec, "status": status}, "clusters"
        )
        owns = {"kind": "MachineDeployment", "name": "md-0", "uid": made["metadata"]["uid"], "apiVersion": "x/v1"}
        its_set = {"metadata": {"name": "ms-0", "ownerReferences": [owns]}}
        self._owns = {**SET, "uid": (await super().create(MACHINE_SET, its_set, "clusters"))["metadata"]["uid"]}
        for _ in range(machines):
            await self.make(datetime.now(UTC) - timedelta(hours=1))

    async def make(self, born: datetime) -> None:
        name = f"m-{next(self._names)}"
        labels = {DEPLOYMENT_LABEL: "md-0", CLUSTER_LABEL: "c1"}
        meta = {"name": name, "labels": labels, "finalizers": ["machine"], "ownerReferences": [self._owns]}
        spec = {"clusterName": "c1", "providerID": f"aws:///{REGION}a/i-{name}"}
        status = {"conditions": [{"type": "NodeReady", "status": "True"}], "nodeRef": {"name": name}}
        await super().create(MACHINE, {"metadata": meta, "spec": spec, "status": status}, "clusters")
        await super().patch(MACHINE, "clusters", name, {"metadata": {"creationTimestamp": born.isoformat()}})

    async def cluster_api(self, *, made: bool = True, gone: bool = True) -> None:
        """One turn of its controllers: as many Machines as wanted, deleting ones counted; those go later."""
        found = (await self.list(MACHINE, "clusters")).items
        for each in found:
            if gone and text(each, "metadata", "deletionTimestamp"):
                await super().patch(
                    MACHINE, "clusters", text(each, "metadata", "name"), {"metadata": {"finalizers": []}}
                )
        wanted = (await self.get(MACHINE_DEPLOYMENT, "clusters", "md-0"))["spec"]["replicas"]
        if len(found) < wanted and made:
            await self.make(datetime.now(UTC))
        going = [each for each in found if text(each, "metadata", "deletionTimestamp")]
        first = [each for each in found if DELETE_FIRST_ANNOTATION in mapping(each, "metadata", "annotations")]
        order = [*going, *(each for each in first if each not in going)]
        order += [each for each in found if each not in order]
        for each in order[: max(0, len(found) - wanted)]:
            if each not in going:
                await super().delete(MACHINE, "clusters", text(each, "metadata", "name"))

    async def names(self) -> list[str]:
        return sorted(text(each, "metadata", "name") for each in (await self.list(MACHINE, "clusters")).items)

    async def deployment(self) -> JsonObject:
        return await self.get(MACHINE_DEPLOYMENT, "clusters", "md-0")

    def messages_of(self, reason: str) -> list[str]:
        return [each.message for each in self.notices if each.reason == reason]

    async def _write(self, kind: Kind, write: Callable[[], Awaitable[Any]]) -> Any:
        if kind.name in self.refused:
            raise Denied(f"{kind.name} is forbidden")
        if kind in (EVENT, LEASE):
            return await write()
        fails = next(self._writes) == self._fails_at
        answer = await write() if self._done or not fails else None
        if self._between:
            await self.cluster_api(made=False, gone=False)
        if fails:
            raise self._fails("no answer")
        return answer

    async def patch(self, kind: Kind, *args: Any, **more: Any) -> Any:
        return await self._write(kind, lambda: MemoryKube.patch(self, kind, *args, **more))

    async def delete(self, kind: Kind, *args: Any, **more: Any) -> Any:
        return await self._write(kind, lambda: MemoryKube.delete(self, kind, *args, **more))


class Life:
    """The lifecycle of one Machine's instance, whose workers may die: nothing is remembered but what is observed.

    If it is `retried`, only workers die, and the workflow makes the attempt again.
    """

    def __init__(
        self, kube: Clusters, name: str = "m-0", *, retried: bool = False, policy: ReactionPolicy = FIRST
    ) -> None:
        self.kube = kube
        self._policy = policy
        self._retried = retried
        self.key = InstanceKey(account=ACCOUNT, region=REGION, instance_id=f"i-{name}")
        self.name = name
        self.known = InstanceMemory()
        self.notice = True

    async def turn(self) -> None:
        """One observation, and what follows from it."""
        cache = InstanceCache(self.kube, self.kube)  # type: ignore[arg-type]
        turns = Disruptions(self.kube, "perdure", 1)  # type: ignore[arg-type]
        activities = MachineActivities(self.kube, cache, turns)  # type: ignore[arg-type]
        runs: dict[str, Any] = {each.__name__: each for each in activities.all()}  # type: ignore[attr-defined]
        by_name = {
            AskReplacement: runs["ask_replacement"],
            EndReplacement: runs["end_replacement"],
            DeleteOwner: runs["delete_machine"],
        }
        try:
            whose = Machine.model_validate(await self.kube.get(MACHINE, "clusters", self.name))
        except Absent:
            whose = None
        seconds = (datetime.now(UTC) - T0).total_seconds()
        received = record(*([spot(seconds - 1, id_="notice")] if self.notice else []), live_at=seconds - 2)
        world = InstanceWorld(
            key=self.key.lifecycle,
            machine=machine(labels={CLUSTER_LABEL: "c1"}),
            owner=whose,
            replacement=cache.replacement(self.key),
            policy=self._policy,
            known=self.known.model_copy(update={"record": received, "facts": confirmed(seconds - 0.5)}),
        )
        server = ActivityEnvironment()
        server.info = dataclasses.replace(server.info, started_time=datetime.now(UTC))
        for step in work_for_instance(world, datetime.now(UTC)).steps:
            try:
                result = await server.run(by_name[type(step)], step)
            except (Unavailable, Conflict):
                if not self._retried:
                    self.known = InstanceMemory()  # the workflow is lost as well
                    return
                server.info = dataclasses.replace(server.info, attempt=2)
                result = await server.run(by_name[type(step)], step)
            if isinstance(result, Reported):
                self.kube.notices += result.notices
            world = step.fold(world, result)
        self.known = world.known.model_copy(update={"turn": None})


async def lived(kube: Clusters, *lives: Life, turns: int = 12) -> None:
    for _ in range(turns):
        for life in lives:
            await life.turn()
        await kube.cluster_api()


@pytest.mark.parametrize("done", [True, False], ids=["after it was done", "before it was done"])
@pytest.mark.parametrize("between", [True, False], ids=["Cluster API at once", "Cluster API later"])
@pytest.mark.parametrize("fails_at", range(6))
async def test_one_machine_is_replaced_and_no_other_wherever_a_worker_dies(
    fails_at: int, *, done: bool, between: bool
) -> None:
    kube = Clusters(fails_at, done=done, between=between)
    await kube.begin()
    await lived(kube, Life(kube))
    found = await kube.deployment()
    assert await kube.names() == ["m-1", "m-2", "m-3"]
    assert found["spec"]["replicas"] == 3
    assert REPLACING_ANNOTATION not in found["metadata"].get("annotations", {})


@pytest.mark.parametrize("fails_at", range(12))
async def test_machines_of_one_deployment_that_are_taken_at_once_are_all_replaced(fails_at: int) -> None:
    kube = Clusters(fails_at)
    await kube.begin()
    await lived(kube, Life(kube, "m-0"), Life(kube, "m-1"), turns=16)
    names = await kube.names()
    assert ("m-2" in names, len(names), {"m-0", "m-1"} & set(names)) == (True, 3, set())
    if not fails_at:
        assert names == ["m-2", "m-3", "m-4"], "no machine is made in vain"
    assert (await kube.deployment())["spec"]["replicas"] == 3


@pytest.mark.parametrize("withdrawn", [True, False], ids=["withdrawn", "replaced"])
async def test_a_machine_that_still_waits_stays_when_another_of_its_deployment_ends(*, withdrawn: bool) -> None:
    """Both are annotated, and the MachineSet would delete either when it is scaled down."""
    kube = Clusters(between=True)
    await kube.begin()
    waits, ends = Life(kube, "m-0"), Life(kube, "m-1")
    await ends.turn()
    await waits.turn()
    for _ in range(2):
        await kube.cluster_api()  # makes one at a time
    ends.notice = not withdrawn
    for _ in range(3):
        await ends.turn()
    stays = await kube.get(MACHINE, "clusters", "m-0")
    assert "deletionTimestamp" not in stays["metadata"]
    left = await kube.get(MACHINE, "clusters", "m-1")
    assert ("deletionTimestamp" in left["metadata"]) != withdrawn
    assert (await kube.deployment())["spec"]["replicas"] == 4


async def test_a_machine_that_still_waits_stays_when_another_is_gone_before_its_end() -> None:
    kube = Clusters()
    await kube.begin()
    waits, ends = Life(kube, "m-0"), Life(kube, "m-1")
    await ends.turn()
    await waits.turn()
    await kube.delete(MACHINE, "clusters", "m-1")
    for _ in range(4):
        await kube.cluster_api()  # makes one more for it
    for _ in range(2):
        await ends.turn()
        await kube.cluster_api()
    assert "m-0" in await kube.names()
    assert (await kube.deployment())["spec"]["replicas"] == 4


class Interleaved(Clusters):
    """An API server whose answers take time, so that others get theirs in between."""

    async def get(self, *args: Any) -> Any:
        found = await super().get(*args)
        await asyncio.sleep(0.001)
        return found


async def test_a_storm_asks_for_all_replacements_of_a_deployment_in_one_attempt() -> None:
    kube = Interleaved()
    await kube.begin(30)
    cache = InstanceCache(kube, kube)  # type: ignore[arg-type]
    activities = MachineActivities(kube, cache, Disruptions(kube, "perdure", 1))  # type: ignore[arg-type]

    async def asks(name: str) -> Asked:
        key = InstanceKey(account=ACCOUNT, region=REGION, instance_id=f"i-{name}").lifecycle
        uid = (await kube.get(MACHINE, "clusters", name))["metadata"]["uid"]
        wanted = AskReplacement(key=key, cause="x", namespace="clusters", name=name, uid=uid, taken=True)
        done: Asked = await ActivityEnvironment().run(activities.ask_replacement, wanted)
        return done

    done = await asyncio.gather(*(asks(name) for name in await kube.names()))
    assert all(each.replacement for each in done)
    assert (await kube.deployment())["spec"]["replicas"] == 60


@pytest.mark.parametrize(("done", "fails"), [(True, Unavailable), (False, Conflict)], ids=["answer lost", "conflict"])
@pytest.mark.parametrize("fails_at", range(7))
async def test_a_withdrawn_notice_leaves_the_machine_and_gives_its_replacement_up(
    fails_at: int, *, done: bool, fails: type[ApiError]
) -> None:
    kube = Clusters(fails_at, done=done, fails=fails)
    await kube.begin()
    life = Life(kube)
    await life.turn()
    await life.turn()
    await kube.cluster_api()
    life.notice = False
    await lived(kube, life)
    assert await kube.names() == ["m-0", "m-1", "m-2"]
    stored = await kube.get(MACHINE, "clusters", "m-0")
    assert DELETE_FIRST_ANNOTATION not in stored["metadata"].get("annotations", {})
    found = await kube.deployment()
    assert (found["spec"]["replicas"], found["metadata"].get("annotations", {})) == (3, {})


@pytest.mark.parametrize("replicas", [2, 3, 6], ids=["fewer", "as before", "more"])
async def test_replicas_that_somebody_sets_meanwhile_stay_so(replicas: int) -> None:
    kube = Clusters()
    await kube.begin()
    life = Life(kube)
    await life.turn()
    await kube.patch(MACHINE_DEPLOYMENT, "clusters", "md-0", {"spec": {"replicas": replicas}})
    await lived(kube, life)
    found = await kube.deployment()
    assert (found["spec"]["replicas"], found["metadata"].get("annotations", {})) == (replicas, {})
    assert "m-0" not in await kube.names()
    assert len(await kube.names()) == replicas


async def test_a_machine_that_somebody_else_deletes_leaves_no_replica_too_many() -> None:
    kube = Clusters()
    await kube.begin()
    life = Life(kube)
    await life.turn()
    await kube.delete(MACHINE, "clusters", "m-0")
    await lived(kube, life)
    assert (await kube.deployment())["spec"]["replicas"] == 3
    assert len(await kube.names()) == 3


@pytest.mark.parametrize("refused", [(MACHINE_DEPLOYMENT.name,)])
async def test_without_the_right_to_scale_the_machine_is_deleted_and_that_is_told(refused: tuple[str, ...]) -> None:
    kube = Clusters()
    await kube.begin()
    kube.refused = refused
    await lived(kube, Life(kube), turns=5)
    assert "m-0" not in await kube.names()
    (notice,) = kube.messages_of("NotReplacedFirst")
    assert "MachineDeployment is forbidden" in notice


async def test_an_autoscaled_deployment_is_not_scaled_and_its_machine_deleted() -> None:
    kube = Clusters()
    await kube.begin(annotations={AUTOSCALER_ANNOTATIONS[0]: "1"})
    await lived(kube, Life(kube), turns=5)
    assert "m-0" not in await kube.names()
    assert (await kube.deployment())["spec"]["replicas"] == 3
    (notice,) = kube.messages_of("NotReplacedFirst")
    assert "the cluster autoscaler sets the replicas of MachineDeployment md-0" in notice


@pytest.mark.parametrize("moment", ["2026-05-04T10:00:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("whose", ["m-0", "m-1"])
async def test_an_edited_mark_with_an_unreadable_time_is_reported_and_stops_no_machine(moment: str, whose: str) -> None:
    mark = Mark(replicas=3, machines=(entry(whose, instance=f"i-{whose}"),)).model_dump(mode="json")
    mark["machines"][0]["at"] = moment
    kube = Clusters()
    await kube.begin(annotations={REPLACING_ANNOTATION: json.dumps(mark)})
    await lived(kube, Life(kube), turns=5)
    assert "m-0" not in await kube.names()
    (notice,) = kube.messages_of("NotReplacedFirst")
    assert f"MachineDeployment md-0: its annotation {REPLACING_ANNOTATION} cannot be read; remove it" in notice


async def test_a_machine_that_may_not_be_annotated_leaves_no_replica_too_many() -> None:
    kube = Clusters()
    await kube.begin()
    kube.refused = (MACHINE.name,)
    await Life(kube).turn()
    found = await kube.deployment()
    assert (found["spec"]["replicas"], found["metadata"].get("annotations", {})) == (3, {})
    assert kube.messages_of("NotReplacedFirst")


@pytest.mark.parametrize("done", [True, False], ids=["after it was done", "before it was done"])
@pytest.mark.parametrize("fails_at", range(1, 6))
async def test_what_is_done_to_a_machine_is_told_once_wherever_a_worker_dies(fails_at: int, *, done: bool) -> None:
    kube = Clusters(fails_at, done=done)
    await kube.begin()
    await lived(kube, Life(kube, retried=True))
    assert await kube.names() == ["m-1", "m-2", "m-3"]
    (begun,), (ended,) = kube.messages_of("ReplacementAsked"), kube.messages_of("ReplacementEnded")
    assert begun.startswith("scaled from 3 to 4: Machine m-0 is replaced before it is deleted because of ")
    assert ended in (
        "scaled from 4 to 3: Machine m-0 is deleted, replaced by m-3",
        "scaled back to 3: Machine m-0 is deleted",
    )
    assert len(kube.messages_of("InstanceTaken")) == 1


async def test_that_a_machine_is_deleted_is_reported_on_its_node_and_awsmachine_too() -> None:
    kube = Clusters()
    await kube.begin()
    await lived(kube, Life(kube, policy=ReactionPolicy(name="p", spot=Reaction.DELETE_MACHINE)))
    taken = [each for each in kube.notices if each.reason == "InstanceTaken" and each.about]
    found = {(each.about.kind, each.about.name, each.cluster) for each in taken if each.about}
    assert found == {("Machine", "m-0", ""), ("AWSMachine", "am-0", ""), ("Node", "m-0", "clusters/c1")}
    assert taken[0].message.startswith("m-0 is deleted because of ")


@pytest.mark.parametrize("fails_at", range(3, 6))
async def test_that_a_machine_stays_is_told_once_wherever_a_worker_dies(fails_at: int) -> None:
    kube = Clusters(fails_at)
    await kube.begin()
    life = Life(kube, retried=True)
    await life.turn()
    await life.turn()
    await kube.cluster_api()
    life.notice = False
    await lived(kube, life)
    (ended,) = kube.messages_of("ReplacementEnded")
    assert ended in ("scaled from 4 to 3: Machine m-0 stays", "scaled back to 3: Machine m-0 stays")


async def test_what_is_done_to_a_deployment_is_told_on_it() -> None:
    kube = Clusters()
    await kube.begin()
    await lived(kube, Life(kube))
    (begun,), (ended,) = kube.messages_of("ReplacementAsked"), kube.messages_of("ReplacementEnded")
    assert begun.startswith("scaled from 3 to 4: Machine m-0 is replaced before it is deleted because of ")
    assert ended == "scaled from 4 to 3: Machine m-0 is deleted, replaced by m-3"


# --- policies ---


def test_a_policy_says_for_each_cause_how_long_a_replacement_is_waited_for() -> None:
    spec = {
        "reactions": {"spot": "delete-machine", "ending": "drain"},
        "replaceFirstSeconds": {"spot": 60, "ending": 900},
    }
    policy = InterruptionPolicy.model_validate({"metadata": {"name": "p"}, "spec": spec})
    reactions = policy.spec.over(ReactionPolicy(reboot=Reaction.DELETE_MACHINE), "p")
    assert reactions.replace_first == {"spot": timedelta(seconds=60)}, "the other's reaction deletes no Machine"
    assert INTERRUPTION_POLICY.name == policy.kind_of.name


# --- whom a change wakes ---


def projected(kind: Kind, obj: JsonObject) -> Projection:
    settings = Settings(instances_queues=(f"{ACCOUNT}/{REGION}",))
    watched = next(each for each in watched_for(settings) if each.kind.name == kind.name)
    return watched.project("", obj)


def woken(kind: Kind, before: JsonObject, after: JsonObject, index: Index) -> set[Key]:
    settings = Settings(instances_queues=(f"{ACCOUNT}/{REGION}",))
    watched = next(each for each in watched_for(settings) if each.kind.name == kind.name)
    return watched.relatives(projected(kind, before), projected(kind, after), index)


def test_a_machine_that_is_ready_wakes_the_instance_whose_replacement_it_may_be() -> None:
    mark = Mark(replicas=3, machines=(entry("a").model_copy(update={"instance": KEY.instance_id}),))
    annotated = {REPLACING_ANNOTATION: mark.model_dump_json()}
    whole: JsonObject = {"metadata": {"name": "md-0", "namespace": "clusters", "annotations": annotated}}
    index = Index()
    index.of(MACHINE_DEPLOYMENT.name)["clusters", "md-0"] = projected(
        MACHINE_DEPLOYMENT, whole | {"spec": {"replicas": 4}}
    )
    new = owner(name="n", labels={DEPLOYMENT_LABEL: "md-0"}).model_dump(mode="json", by_alias=True)
    ready = owner(name="n", labels={DEPLOYMENT_LABEL: "md-0"}, ready=True).model_dump(mode="json", by_alias=True)
    assert woken(MACHINE, new, ready, index) == {KEY.lifecycle}
    assert woken(MACHINE, ready, ready, index) == set()
    other = owner(name="n", labels={DEPLOYMENT_LABEL: "md-1"}, ready=True).model_dump(mode="json", by_alias=True)
    assert woken(MACHINE, {**other, "status": {}}, other, index) == set()
    lowered = whole | {"spec": {"replicas": 3}}
    assert woken(MACHINE_DEPLOYMENT, whole | {"spec": {"replicas": 4}}, lowered, index) == {KEY.lifecycle}


def test_a_mark_is_read_as_it_was_written() -> None:
    mark = Mark(replicas=3, machines=(entry("a"),), used=("n",))
    annotations = mapping(mark.patch, "metadata", "annotations")
    assert mark_of({name: str(value) for name, value in annotations.items()}) == mark
    assert mapping(mark.ended("a").patch, "metadata", "annotations") == {REPLACING_ANNOTATION: None}
