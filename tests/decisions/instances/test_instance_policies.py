"""InterruptionPolicies: which one applies to an instance, and what is done to a Node then."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from instance_scenes import ACCOUNT, ID, KEY, REGION, at, facts, hook, machine, observed, owner, record, spot, state
from memory_kube import MemoryKube
from prometheus_client import REGISTRY
from temporalio.testing import ActivityEnvironment
from waiting import PATIENT
from workload_cluster import WorkloadCluster

from activities.instances import node_drain
from activities.instances.cache import InstanceCache
from domain.built_in_kinds import NODE, POD
from domain.decision import Action
from domain.identity import Key, Kind
from domain.instances import AWS_MACHINE, INTERRUPTION_POLICY, MACHINE
from domain.instances.actions import (
    AskInstance,
    BeatHook,
    Because,
    CordonNode,
    DeleteOwner,
    Emptied,
    EmptyNode,
    EndHook,
    EndReplacement,
    LookAtInstance,
    ReleaseNode,
    Taking,
    TellImpossible,
)
from domain.instances.constants import CLUSTER_LABEL, CONTROL_PLANE_LABEL, DEPLOYMENT_LABEL, POOL_LABEL
from domain.instances.disruption_budget import Turn
from domain.instances.drained_pods import Pod, end_of_drain
from domain.instances.ec2_answers import answered
from domain.instances.event_record import InstanceRecord, cordoned, fold, impossible
from domain.instances.event_verification import Question
from domain.instances.hook_timeouts import HookTiming
from domain.instances.instance_lifecycle import decide_instance, work_for_instance
from domain.instances.interruption_policy import (
    Budgets,
    Draining,
    Reaction,
    ReactionPolicy,
    Taint,
    TaintEffect,
    Tainting,
)
from domain.instances.notices import about, about_node
from domain.instances.observed import Emptying, InstanceWorld
from domain.instances.policy_selection import Selected, choose, selected
from domain.instances.replacements import Replacement
from domain.instances.resources import AWSMachinePool, InterruptionPolicy
from domain.notices import Notice
from domain.resource import timestamp
from engine import clock
from engine.errors import Conflict, Throttled
from engine.kube.json import JsonObject, mapping, sequence, text
from engine.settings import Settings
from starters.watch.instances import watched_for
from starters.watch.projection import Projection
from starters.watch.projection_index import Index
from starters.watch.watched_kinds import Watched

SETTINGS = ReactionPolicy(terminated=Reaction.DRAIN, hook_margin=timedelta(seconds=5))
CAPITAL = Selected(
    clusters=("prod",),
    namespace="fleet",
    pools=frozenset({"md-0"}),
    labels={"team": "web", "zone": "a"},
    tags={"env": "prod", "owner": "web", "absent": None},
)


def policy(name: str, selector: dict[str, Any] | None = None, **spec: Any) -> InterruptionPolicy:
    body = {"metadata": {"name": name}, "spec": {"selector": selector or {}, **spec}}
    return InterruptionPolicy.model_validate(body)


# --- which policy applies ---


@pytest.mark.parametrize(
    ("selectors", "applies"),
    [
        ([], ""),
        ([{}], "0"),
        ([{"clusters": ["test"]}], ""),
        ([{}, {"namespaces": ["fleet"]}], "1"),
        ([{"namespaces": ["fleet"]}, {"clusters": ["prod", "test"]}], "1"),
        ([{"clusters": ["prod"]}, {"labels": {"team": "web"}}], "1"),
        ([{"labels": {"team": "web"}}, {"labels": {"team": "web", "zone": "a"}}], "1"),
        ([{"labels": {"team": "web"}}, {"labels": {"team": "db"}}], "0"),
        ([{"labels": {"team": "web"}}, {"tags": {"env": "prod"}}], "1"),
        ([{"tags": {"env": "prod"}}, {"pools": ["md-0"]}], "1"),
        ([{"pools": ["md-0"]}, {"pools": ["md-0"], "clusters": ["prod"]}], "1"),
        ([{"pools": ["md-0"]}, {"pools": ["md-0"], "clusters": ["test"]}], "0"),
        ([{"clusters": ["prod"]}, {"clusters": ["prod", "test"]}], "0"),
        ([{}, {"tags": {"env": "test"}}], "0"),
        ([{}, {"tags": {"env": "*"}}], "1"),
        ([{}, {"tags": {"absent": "*"}}], "0"),
    ],
)
def test_the_most_specific_policy_that_fits_applies(selectors: list[dict[str, Any]], applies: str) -> None:
    policies = [policy(str(number), each) for number, each in enumerate(selectors)]
    for order in (policies, policies[::-1]):
        assert choose(order, CAPITAL, SETTINGS).policy.name == applies


def test_what_a_policy_leaves_open_the_settings_say() -> None:
    own_policy = policy("p", reactions={"spot": "cordon"}, maintenanceLeadSeconds=60, maxUnavailable=3)
    chosen = choose([own_policy], CAPITAL, SETTINGS).policy
    assert (chosen.spot, chosen.terminated) == (Reaction.CORDON, Reaction.DRAIN)
    assert (chosen.maintenance_lead, chosen.hook_margin) == (timedelta(minutes=1), timedelta(seconds=5))
    assert (chosen.most, chosen.draining) == (3, Draining(spares=True))
    assert choose([], CAPITAL, SETTINGS).policy is SETTINGS


def test_nothing_but_labels_is_done_until_ec2_has_told_the_tags_that_policies_name() -> None:
    policies = [policy("tagged", {"tags": {"env": "prod"}}), policy("all", reactions={"spot": "delete-machine"})]
    unknown = CAPITAL.model_copy(update={"tags": {"owner": "web"}})
    choice = choose(policies, unknown, SETTINGS)
    assert (choice.policy, choice.tag_keys) == (ReactionPolicy(), ("env",))
    assert choose(policies, CAPITAL.model_copy(update={"tags": {"env": None}}), SETTINGS).policy.name == "all"
    sooner = [*policies, policy("pool", {"pools": ["md-0"]})]
    assert choose(sooner, unknown, SETTINGS).policy.name == "pool", "tags would change nothing"


def test_an_instance_is_selected_by_what_its_machine_says() -> None:
    labelled = machine(labels={CLUSTER_LABEL: "prod", "team": "web"})
    whom = selected(labelled, owner(labels={DEPLOYMENT_LABEL: "md-0"}), None, None)
    assert (whom.clusters, whom.namespace, whom.pools) == (("prod", "c1"), "clusters", {"md-0"})
    assert (whom.labels["team"], whom.tags) == ("web", {})
    pool = AWSMachinePool.model_validate({"metadata": {"name": "mp", "namespace": "n", "labels": {POOL_LABEL: "p"}}})
    assert selected(None, None, pool, {}).pools == {"mp", "p"}


async def test_the_cache_reads_policies_that_stand_and_leaves_out_what_cannot_be_read() -> None:
    kube = MemoryKube()
    cache = InstanceCache(kube, kube)  # type: ignore[arg-type]
    assert cache.choice(CAPITAL, SETTINGS).policy is SETTINGS
    broken = {"metadata": {"name": "b"}, "spec": {"selector": {"pools": ["md-0"]}, "reactions": {"spot": "explode"}}}
    for body in (broken, {"metadata": {"name": "a"}, "spec": {"reactions": {"spot": "taint"}}}):
        await kube.create(INTERRUPTION_POLICY, body)
    assert cache.choice(CAPITAL, SETTINGS).policy.spot is Reaction.TAINT


# --- tags are asked for ---


def tagged(**changes: Any) -> InstanceWorld:
    world = observed(record(), policy=ReactionPolicy())
    return world.model_copy(update={"tag_keys": ("env",), **changes})


def wanted(world: InstanceWorld, seconds: float) -> tuple[Action, ...]:
    return decide_instance(world, at(seconds)).actions


def test_tags_are_asked_for_once_and_the_policy_is_chosen_anew_by_them() -> None:
    (question,) = (each for each in wanted(tagged(), 3) if isinstance(each, AskInstance))
    assert (question.questions, question.tag_keys) == ((Question.INSTANCE, Question.TAGS), ("env",))
    answer = tagged().with_answer(facts(4, tags={"env": "prod"}), {})
    assert any(isinstance(each, LookAtInstance) and each.tags == {"env": "prod"} for each in wanted(answer, 5))
    chosen = answer.model_copy(update={"chosen_by": {"env": "prod"}})
    assert not chosen.choice_is_stale
    assert not [each for each in wanted(chosen, 5) if isinstance(each, AskInstance)]


def test_an_answer_without_tags_leaves_them_known() -> None:
    answer = tagged().with_answer(facts(4, tags={"env": "prod"}), {}).with_answer(facts(9), {})
    assert answer.known.tags == {"env": "prod"}


def test_tags_are_asked_for_again_when_a_policy_names_another() -> None:
    answer = tagged().with_answer(facts(4, tags={"env": "prod"}), {}).model_copy(update={"tag_keys": ("env", "owner")})
    (question,) = (each for each in wanted(answer, 30) if isinstance(each, AskInstance))
    assert question.tag_keys == ("env", "owner")
    soon = decide_instance(answer, at(5))
    assert not [each for each in soon.actions if isinstance(each, AskInstance)]
    assert soon.deadline == at(14), "EC2 was asked a second ago"


def test_no_tags_are_asked_for_where_no_policy_names_any() -> None:
    assert [each for each in wanted(tagged(tag_keys=()), 3) if isinstance(each, AskInstance)] == []


@pytest.mark.parametrize("known", [None, {"env": "prod"}])
def test_nothing_is_undone_until_ec2s_tags_have_selected_the_policy(known: dict[str, str | None] | None) -> None:
    """Someone adds a policy that selects by tags, or the workflow was lost, while a Node is drained."""
    notice = spot(4)
    drained = cordoned(record(notice), notice.key, "node-0")
    asked = Replacement(deployment="md-0", namespace="clusters", name="m-0", uid="u-m", asked_at=at(5))
    world = observed(drained, facts=marked(6), tag_keys=("env",), replacement=asked)
    unsure = world.learn(tags=known, turn_unused=True)
    assert not [each for each in wanted(unsure, 7) if isinstance(each, ReleaseNode | EndReplacement)]
    sure = unsure.learn(tags={"env": "prod"}).model_copy(update={"chosen_by": {"env": "prod"}})
    assert [type(each) for each in wanted(sure, 7) if not isinstance(each, LookAtInstance)] == [
        EndReplacement,
        ReleaseNode,
    ]


# --- reactions ---


def marked(seconds: float) -> Any:
    return facts(seconds, spot=True, spot_code="marked-for-termination")


def step(known: InstanceRecord, seconds: float, **changes: Any) -> Action | None:
    found = work_for_instance(observed(known, **changes), at(seconds)).steps
    return next((each for each in found if not isinstance(each, AskInstance)), None)


@pytest.mark.parametrize(
    ("reaction", "always", "tainted"),
    [
        (Reaction.TAINT, False, True),
        (Reaction.CORDON, False, False),
        (Reaction.CORDON, True, True),
        (Reaction.DRAIN, False, False),
        (Reaction.DRAIN, True, True),
    ],
)
def test_a_node_is_tainted_or_cordoned_once(reaction: Reaction, always: bool, tainted: bool) -> None:
    wished = ReactionPolicy(spot=reaction, tainting=Tainting(always=always))
    first = step(record(spot(4)), 7, policy=wished, facts=marked(6))
    assert isinstance(first, CordonNode)
    assert (first.reaction, first.taint is not None) == (reaction, tainted)
    after = first.fold(observed(record(spot(4)), policy=wished, facts=marked(6)), Taking(turn=Turn(at=at(7))))
    then = [each for each in work_for_instance(after, at(8)).steps if not isinstance(each, AskInstance)]
    assert [type(each) for each in then] == ([EmptyNode] if reaction is Reaction.DRAIN else [])


@pytest.mark.parametrize("reaction", [Reaction.TAINT, Reaction.DRAIN, Reaction.DELETE_MACHINE])
@pytest.mark.parametrize("name", ["p", ""])
def test_what_a_policy_does_is_reported_on_awsmachine_machine_and_node(reaction: Reaction, name: str) -> None:
    wished = ReactionPolicy(name=name, spot=reaction)
    objects = (about(machine()), about(owner()), about_node("node-0")) if name else ()
    first = step(record(spot(4)), 7, policy=wished, facts=marked(6))
    assert isinstance(first, CordonNode | DeleteOwner)
    assert first.about == objects
    if reaction is Reaction.DRAIN:
        begun = cordoned(record(spot(4)), spot(4).key, "node-0")
        drain = step(begun, 8, policy=wished, facts=marked(6))
        assert isinstance(drain, EmptyNode)
        assert drain.about == objects


def test_a_stronger_reaction_follows_a_weaker_one() -> None:
    known = cordoned(record(spot(4)), "another", "node-0", at(5), Reaction.TAINT)
    for reaction, follows in ((Reaction.TAINT, False), (Reaction.CORDON, True), (Reaction.DELETE_MACHINE, True)):
        done = step(known, 7, policy=ReactionPolicy(spot=reaction), facts=marked(6))
        assert (done is not None) is follows


GROUP_ONLY: dict[str, Any] = {
    "machine": None,
    "owner": None,
    "pool": AWSMachinePool.model_validate({"metadata": {"name": "c1-mp-0", "namespace": "fleet", "uid": "u-p"}}),
}

UNOWNED: dict[str, Any] = {"owner": None, "machine": machine(ownerReferences=[])}


@pytest.mark.parametrize(
    ("held", "kind", "name"), [(UNOWNED, "AWSMachine", "am-0"), (GROUP_ONLY, "AWSMachinePool", "c1-mp-0")]
)
def test_a_deletion_without_a_machine_is_reported_once(held: dict[str, Any], kind: str, name: str) -> None:
    chosen = choose([policy("fleet", reactions={"spot": "delete-machine"})], CAPITAL, ReactionPolicy()).policy
    world = observed(record(spot(4)), policy=chosen, facts=marked(6), **held)
    (step,) = (each for each in work_for_instance(world, at(7)).steps if not isinstance(each, AskInstance))
    assert isinstance(step, TellImpossible)
    (notice,) = step.notices
    assert notice.about is not None
    assert (notice.about.kind, notice.about.name, notice.reason) == (kind, name, "NoMachine")
    assert "InterruptionPolicy fleet asks for delete-machine" in notice.message
    after = work_for_instance(step.fold(world, None), at(8))
    assert [each for each in after.steps if not isinstance(each, AskInstance)] == []
    not_done = "the instance has no Machine that Perdure could delete"
    assert after.why == f"{not_done} in reaction to {spot(4).key}: nothing is done"


def test_a_deletion_without_a_machine_is_reported_only_once_aws_confirms_the_cause() -> None:
    wished = ReactionPolicy(spot=Reaction.DELETE_MACHINE)
    world = observed(record(spot(4)), policy=wished, **GROUP_ONLY)
    assert [type(each) for each in work_for_instance(world, at(7)).steps] == [AskInstance]


def test_a_machine_that_was_deleted_here_is_not_reported_as_missing() -> None:
    wished = ReactionPolicy(spot=Reaction.DELETE_MACHINE)
    assert step(record(spot(4)), 7, policy=wished, facts=marked(6), turn=Turn(at=at(5)), **GROUP_ONLY) is None


def test_an_ended_instance_without_a_machine_needs_no_report() -> None:
    wished = ReactionPolicy(terminated=Reaction.DELETE_MACHINE)
    known = record(state("shutting-down", 4))
    assert step(known, 7, policy=wished, facts=facts(6, "shutting-down"), **GROUP_ONLY) is None


def test_a_machine_that_is_gone_already_needs_no_report() -> None:
    wished = ReactionPolicy(spot=Reaction.DELETE_MACHINE)
    assert step(record(spot(4)), 7, policy=wished, facts=marked(6), owner=None) is None


def test_a_weaker_reaction_follows_the_report_that_there_is_no_machine() -> None:
    wished = ReactionPolicy(spot=Reaction.DELETE_MACHINE, terminating_hook=Reaction.DRAIN)
    answer = facts(6, spot=True, spot_code="marked-for-termination", group="c1-mp-0", lifecycle="Terminating:Wait")
    known = impossible(record(spot(4), hook(5)), spot(4).key)
    assert isinstance(step(known, 7, policy=wished, facts=answer, joined="node-0", **GROUP_ONLY), CordonNode)


def test_the_strongest_of_two_reactions_is_done() -> None:
    wished = ReactionPolicy(spot=Reaction.TAINT, terminating_hook=Reaction.CORDON)
    known = record(spot(4), hook(5))
    answer = facts(6, spot=True, spot_code="marked-for-termination", group="c1-mp-0", lifecycle="Terminating:Wait")
    done = step(known, 7, policy=wished, facts=answer)
    assert isinstance(done, CordonNode)
    assert done.reaction is Reaction.CORDON


@pytest.mark.parametrize("transition", ["terminating", "launching"])
def test_a_policy_sets_how_often_a_heartbeat_is_sent_and_until_when(transition: str) -> None:
    chosen = choose([policy("p", heartbeatSeconds=60, hookLimitSeconds=600)], CAPITAL, SETTINGS).policy
    wished = chosen.model_copy(update={"terminating_hook": Reaction.DRAIN, "launching_hook": True})
    known = cordoned(record(hook(0, transition)), hook(0, transition).key, "node-0")
    answer = facts(1, group="c1-mp-0", lifecycle="Pending:Wait" if transition == "launching" else "Terminating:Wait")
    timings = {"drain": HookTiming()}

    def done(seconds: float) -> list[type[Action]]:
        world = observed(known, policy=wished, facts=answer, timings=timings)
        return [type(each) for each in work_for_instance(world, at(seconds)).steps]

    assert BeatHook not in done(59)
    assert BeatHook in done(60)
    assert EndHook not in done(599)
    assert EndHook in done(600)


def test_a_hook_is_not_completed_on_a_weaker_reaction_than_its_own() -> None:
    known = cordoned(record(hook(5)), "another", "node-0", at(6), Reaction.TAINT)
    answer = facts(6, group="c1-mp-0", lifecycle="Terminating:Wait")
    for reaction, follows in ((Reaction.DRAIN, CordonNode), (Reaction.TAINT, EndHook)):
        done = step(known, 7, policy=ReactionPolicy(terminating_hook=reaction), facts=answer)
        assert isinstance(done, follows)


@pytest.mark.parametrize(
    ("sort", "key"),
    [
        ("spot", "aws-node-termination-handler/spot-itn"),
        ("scheduled", "aws-node-termination-handler/scheduled-maintenance"),
        ("hook", "aws-node-termination-handler/asg-lifecycle-termination"),
        ("stopped", "perdure.dev/interruption"),
    ],
)
def test_a_taint_is_called_as_tolerations_name_it(sort: str, key: str) -> None:
    assert Tainting(nth_names=True).taint(sort) == Taint(key=key, value=sort)
    own = Tainting(key="acme.io/leaves", value="soon", effect=TaintEffect.NO_EXECUTE)
    assert own.taint(sort) == Taint(key="acme.io/leaves", value="soon", effect=TaintEffect.NO_EXECUTE)


def test_a_drain_after_an_uncordon_has_its_whole_time_again() -> None:
    """Each stop is a cause of the same name; the first drain was forced, then the instance was started again."""
    held = cordoned(record(state("stopping", 100)), "stopped", "node-0")
    forced = Emptying(node="node-0", cause="stopped", since=at(101), forced=True)
    wished, runs = ReactionPolicy(stopped=Reaction.DRAIN), facts(200)
    world = observed(answered(held, runs), policy=wished, facts=runs).learn(emptying=forced)
    (release,) = (each for each in wanted(world, 201) if isinstance(each, ReleaseNode))
    stopped = release.fold(world, None).with_answer(facts(90_000, "stopped"), {})
    (cordon,) = (each for each in wanted(stopped, 90_001) if isinstance(each, CordonNode))
    again = cordon.fold(stopped, Taking(turn=Turn(at=at(90_002))))
    (drain,) = (each for each in wanted(again, 90_003) if isinstance(each, EmptyNode))
    assert drain.begun is None


def test_a_stop_gets_a_reaction_once_confirmed_until_the_instance_runs() -> None:
    wished, known = ReactionPolicy(stopped=Reaction.CORDON), record(state("stopping", 100))
    requested = work_for_instance(observed(known, policy=wished), at(101))
    assert [type(each) for each in requested.steps] == [AskInstance]
    true = facts(102, "stopped")
    done = step(answered(known, true), 103, policy=wished, facts=true)
    assert isinstance(done, CordonNode)
    assert (done.cause, done.taken) == ("stopped", True)
    held = cordoned(answered(known, true), "stopped", "node-0", at(104), Reaction.CORDON)
    runs = facts(200)
    assert isinstance(step(answered(held, runs), 201, policy=wished, facts=runs), ReleaseNode)
    forged = facts(102)
    assert step(answered(known, forged), 103, policy=wished, facts=forged) is None


@pytest.mark.parametrize("reaction", [Reaction.TAINT, Reaction.DRAIN])
def test_a_node_is_out_of_service_only_once_its_instance_has_stopped(reaction: Reaction) -> None:
    """Kubernetes deletes its Pods and detaches their volumes then, though they may still be written to."""
    tainting = Tainting(key="node.kubernetes.io/out-of-service", effect=TaintEffect.NO_EXECUTE, always=True)
    wished = ReactionPolicy(stopped=reaction, tainting=tainting)
    stopping, stopped = facts(102, "stopping"), facts(110, "stopped")
    early = step(answered(record(state("stopping", 100)), stopping), 103, policy=wished, facts=stopping)
    if reaction is Reaction.TAINT:
        assert early is None
    else:
        assert isinstance(early, CordonNode)
        assert early.taint is None
    late = step(answered(record(state("stopping", 100)), stopped), 111, policy=wished, facts=stopped)
    assert isinstance(late, CordonNode)
    assert late.taint == tainting.taint("stopped")


def test_a_forged_stop_puts_no_node_out_of_service_for_another_cause() -> None:
    """Its Pods would be deleted, and their volumes detached, while the instance runs."""
    tainting = Tainting(key="node.kubernetes.io/out-of-service", effect=TaintEffect.NO_EXECUTE, always=True)
    taken = facts(101, spot=True, spot_code="marked-for-termination")
    known = fold(answered(record(spot(100)), taken), state("stopped", 102))
    cordon = step(known, 103, policy=ReactionPolicy(spot=Reaction.DRAIN, tainting=tainting), facts=taken)
    assert isinstance(cordon, CordonNode)
    assert cordon.taint is None


def test_a_stop_changes_nothing_where_no_reaction_is_wished_for() -> None:
    known = answered(record(state("stopped", 5)), facts(40, "stopped"))
    assert work_for_instance(observed(known), at(50)).deadline is None
    replaced = step(known, 50, policy=ReactionPolicy(stopped=Reaction.DELETE_MACHINE), facts=facts(41, "stopped"))
    assert isinstance(replaced, DeleteOwner)


def test_what_applies_is_shown_and_how_many_may_be_disrupted_is_handed_on() -> None:
    wished = choose([policy("fleet", reactions={"spot": "delete-machine"}, maxUnavailable=2)], CAPITAL, SETTINGS).policy
    world = observed(record(spot(4)), policy=wished, facts=marked(6))
    decision = decide_instance(world, at(7))
    assert decision.why.endswith("; InterruptionPolicy fleet applies")
    (deletion,) = (each for each in decision.actions if isinstance(each, DeleteOwner))
    assert (deletion.most, deletion.policy) == (2, "fleet")
    assert "InterruptionPolicy" not in decide_instance(observed(record(spot(4))), at(7)).why


# --- Nodes ---

WHERE: Any = {"key": KEY.lifecycle, "namespace": "c", "cluster": "c1", "node": "node", "cause": "x"}
RUNS_ON = {"providerID": f"aws:///eu-central-1a/{ID}"}
# When an activity begins in the test environment.
BEGUN = ActivityEnvironment().info.started_time
OURS = Taint(key="perdure.dev/interruption", value="spot")
FOREIGN = {"key": "acme.io/gpu", "effect": "NoSchedule"}


class Workload(WorkloadCluster):
    def __init__(self) -> None:
        super().__init__()
        self.deleted: list[tuple[str, int | None]] = []

    async def delete(self, kind: Kind, namespace: str, name: str, **how: Any) -> JsonObject:
        self.deleted.append((name, how["grace_period"]))
        return await self.kube.delete(kind, namespace, name)

    async def node(self, **spec: Any) -> None:
        await self.kube.create(NODE, {"metadata": {"name": "node"}, "spec": RUNS_ON | spec}, "")

    async def pod(self, name: str, **annotations: str) -> None:
        with suppress(Conflict):
            await self.node()
        named = {_spelt(key): value for key, value in annotations.items()}
        await self.kube.create(POD, {"metadata": {"name": name, "annotations": named}}, "n")

    async def seen(self) -> tuple[bool, list[object]]:
        found = await self.kube.get(NODE, "", "node")
        return bool(mapping(found, "spec").get("unschedulable")), list(sequence(found, "spec", "taints"))

    async def drained(self, node: EmptyNode) -> list[Notice]:
        """What is reported until it is drained; each time that something delays it is another activity."""
        notices: list[Notice] = []
        while True:
            done: Emptied = await run(self.drain, node)
            notices += done.notices
            if done.delayed is None:
                return notices
            node = node.model_copy(update={"begun": done.delayed})


def _spelt(name: str) -> str:
    """`acme_io__a_b` as the annotation `acme.io/a-b`."""
    domain, _, rest = name.partition("__")
    return f"{domain.replace('_', '.')}/{rest.replace('_', '-')}"


@pytest.fixture(autouse=True)
def short_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_drain, "EVICT_AGAIN", 0.02)


async def run(activity: Any, action: Action) -> Any:
    async def begun() -> Any:
        clock.begin()
        return await activity(action)

    return await ActivityEnvironment().run(begun)


@pytest.mark.parametrize(
    ("reaction", "taint", "unschedulable"),
    [(Reaction.TAINT, OURS, False), (Reaction.CORDON, None, True), (Reaction.DRAIN, OURS, True)],
)
async def test_a_node_is_marked_and_released_and_other_taints_stay(
    reaction: Reaction, taint: Taint | None, unschedulable: bool
) -> None:
    workload = Workload()
    await workload.node(taints=[FOREIGN])
    ours = [taint.model_dump(mode="json")] if taint else []
    for _ in range(2):  # an attempt whose answer was lost is made again
        await run(workload.cordon, CordonNode(**WHERE, reaction=reaction, taint=taint))
        assert await workload.seen() == (unschedulable, [FOREIGN, *ours])
    await run(workload.uncordon, ReleaseNode(**WHERE))
    assert await workload.seen() == (False, [FOREIGN])
    assert not mapping(await workload.get(NODE, "", "node"), "metadata", "annotations")


async def test_every_taint_of_ours_is_removed_also_those_of_earlier_causes() -> None:
    workload = Workload()
    await workload.node(taints=[FOREIGN])
    earlier = Taint(key="aws-node-termination-handler/scheduled-maintenance", value="scheduled")
    await run(workload.cordon, CordonNode(**WHERE, reaction=Reaction.TAINT, taint=earlier))
    await run(workload.cordon, CordonNode(**WHERE, reaction=Reaction.DRAIN, taint=OURS))
    assert (await workload.seen())[1] == [FOREIGN, *(each.model_dump(mode="json") for each in (earlier, OURS))]
    await run(workload.uncordon, ReleaseNode(**WHERE))
    assert await workload.seen() == (False, [FOREIGN])


async def test_a_taint_and_a_cordon_of_another_user_stay() -> None:
    workload = Workload()
    await workload.node(unschedulable=True, taints=[OURS.model_dump(mode="json")])
    await run(workload.cordon, CordonNode(**WHERE, taint=OURS))
    await run(workload.uncordon, ReleaseNode(**WHERE))
    assert await workload.seen() == (True, [OURS.model_dump(mode="json")])


async def test_a_node_that_is_written_meanwhile_is_marked_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = Workload()
    await workload.node()
    patch, others = workload.kube.patch, [FOREIGN]

    async def patched(*what: Any, **how: Any) -> JsonObject:
        if others:
            await patch(NODE, "", "node", {"spec": {"taints": [others.pop()]}})
        return await patch(*what, **how)

    monkeypatch.setattr(workload.kube, "patch", patched)
    await run(workload.cordon, CordonNode(**WHERE, reaction=Reaction.TAINT, taint=OURS))
    assert await workload.seen() == (False, [FOREIGN, OURS.model_dump(mode="json")])


@pytest.mark.parametrize(("reaction", "reason"), [(Reaction.TAINT, "NodeTainted"), (Reaction.CORDON, "NodeCordoned")])
async def test_what_is_done_to_a_node_is_told_on_node_machine_and_awsmachine_once(
    reaction: Reaction, reason: str
) -> None:
    workload = Workload()
    await workload.node()
    meta = {"name": "m-0", "labels": {DEPLOYMENT_LABEL: "md-0"}}
    await workload.kube.create(MACHINE, {"metadata": meta, "spec": {"clusterName": "c1"}}, "c")
    marking = CordonNode(
        **WHERE,
        machine="m-0",
        taken=True,
        reaction=reaction,
        taint=OURS,
        about=(AM_0, M_0, about_node("node")),
    )
    notices = (await run(workload.cordon, marking)).notices
    assert (await run(workload.cordon, marking)).notices == ()
    assert [(each.reason, each.about, each.cluster) for each in notices] == [
        (reason, AM_0, ""),
        (reason, M_0, ""),
        (reason, about_node("node"), "c/c1"),
    ]


AM_0 = Key(kind=AWS_MACHINE.name, namespace="c", name="am-0", uid="u")
M_0 = Key(kind=MACHINE.name, namespace="c", name="m-0", uid="u")


def emptying(**changes: Any) -> EmptyNode:
    return EmptyNode(**(WHERE | {"about": (AM_0, about_node("node"))} | changes))


def reasons(notices: list[Notice], about: Key = AM_0) -> list[str]:
    return [each.reason for each in notices if each.about == about]


@pytest.mark.parametrize("grace", [10**12, 2**63 - 1])
def test_a_pod_that_asks_for_ages_to_end_does_not_break_a_forced_drain(grace: int) -> None:
    pod = Pod.model_validate({"spec": {"terminationGracePeriodSeconds": grace}})
    until, how = BEGUN + timedelta(seconds=100), Draining(budgets=Budgets.FORCE)
    assert end_of_drain(how, BEGUN, until, [pod]) == BEGUN + timedelta(seconds=50)


async def test_pods_are_evicted_with_the_grace_period_that_is_wished_for() -> None:
    workload = Workload()
    await workload.pod("a")
    result = await workload.drained(emptying(how=Draining(pod_grace=timedelta(seconds=7))))
    assert mapping(workload.evicted[0], "deleteOptions")["gracePeriodSeconds"] == 7
    assert reasons(result) == reasons(result, about_node("node")) == ["NodeDrained"]


async def test_only_the_pod_that_was_listed_is_evicted_not_a_later_one_of_its_name() -> None:
    """A StatefulSet may have started it on another Node meanwhile."""
    workload = Workload()
    await workload.pod("a")
    uid = text(await workload.get(POD, "n", "a"), "metadata", "uid")
    workload.refusals = {"a": [Conflict("the uid in the precondition is another one")]}
    result = await workload.drained(emptying())
    assert workload.evicted[0]["deleteOptions"] == {"preconditions": {"uid": uid}}
    assert reasons(result) == ["NodeDrained"], "another Pod of its name is no delay"


@pytest.mark.parametrize("stuck", ["asks not to be disrupted", "does not end"])
async def test_a_pod_that_stays_is_reported_once_as_a_delay(stuck: str) -> None:
    workload = Workload()
    await workload.pod("a", **({"karpenter_sh__do_not_disrupt": "true"} if stuck.startswith("asks") else {}))
    if stuck == "does not end":
        meta = {"deletionTimestamp": timestamp(BEGUN - timedelta(minutes=1)), "finalizers": ["acme.io/backup"]}
        await workload.kube.patch(POD, "n", "a", {"metadata": meta})
    soon = BEGUN + timedelta(seconds=0.3)
    result = await workload.drained(emptying(until=soon, how=Draining(spares=True)))
    assert reasons(result) == ["DrainHeldUp", "DrainIncomplete"]
    word = "karpenter.sh/do-not-disrupt" if stuck.startswith("asks") else "acme.io/backup"
    assert "Pod n/a " in result[0].message
    assert word in result[0].message


async def test_a_budget_that_holds_a_drain_up_is_told_once_on_the_awsmachine() -> None:
    workload = Workload()
    await workload.pod("a")
    workload.refusals = {"a": [Throttled("a budget"), Throttled("a budget")]}
    result = await workload.drained(emptying())
    assert reasons(result) == ["DrainHeldUp", "NodeDrained"]
    assert "a budget" in result[0].message
    silent = Workload()
    await silent.pod("a")
    silent.refusals = {"a": [Throttled("a budget")]}
    done = await run(silent.drain, EmptyNode(**WHERE))
    assert (done.notices, done.delayed) == ((), None), "without a policy nothing is told"


@pytest.mark.parametrize(
    ("budgets", "left", "reported"), [(Budgets.RESPECT, 2, "DrainIncomplete"), (Budgets.FORCE, 0, "DrainForced")]
)
async def test_what_is_left_when_the_time_is_over_is_deleted_only_where_that_is_wished_for(
    budgets: Budgets, left: int, reported: str
) -> None:
    workload = Workload()
    await workload.pod("a")
    await workload.pod("b", perdure_dev__do_not_disrupt="true")
    workload.refusals = {"a": [Throttled("a budget")]}
    over = BEGUN - timedelta(seconds=1)
    notices = await workload.drained(emptying(until=over, how=Draining(budgets=budgets, spares=True)))
    assert len((await workload.list(POD)).items) == left
    assert reasons(notices) == [reported]


async def test_pods_are_evicted_once_although_the_time_was_over_from_the_beginning() -> None:
    """The event came late, or its scheduled date has passed while the instance runs on."""
    workload = Workload()
    for name in "abc":
        await workload.pod(name, **({"perdure_dev__do_not_disrupt": "true"} if name == "c" else {}))
    workload.refusals = {"b": [Throttled("a budget")]}
    over = BEGUN - timedelta(seconds=1)
    notices = await workload.drained(emptying(until=over, how=Draining(spares=True)))
    assert (workload.asked, reasons(notices)) == (["a", "b"], ["DrainIncomplete"])
    assert [each["metadata"]["name"] for each in (await workload.list(POD)).items] == ["b", "c"]


async def test_that_pods_are_deleted_is_told_once_wherever_a_worker_dies() -> None:
    workload = Workload()
    await workload.pod("a", perdure_dev__do_not_disrupt="true")
    over = BEGUN - timedelta(seconds=1)
    node = emptying(until=over, how=Draining(budgets=Budgets.FORCE, spares=True))
    lost = await run(workload.drain, node)
    announced = await run(workload.drain, node)
    assert (reasons(lost.notices), reasons(announced.notices)) == (["DrainForced"], ["DrainForced"])
    assert len((await workload.list(POD)).items) == 1, "it is told before it is done"
    for _ in range(2):
        ended = await run(workload.drain, node.model_copy(update={"begun": announced.delayed}))
        assert (ended.notices, ended.delayed, (await workload.list(POD)).items) == ((), None, [])


class Graceful(Workload):
    """A deleted Pod has `grace` seconds to end, and ends with `end`."""

    def __init__(self, grace: int) -> None:
        super().__init__()
        self.ends = timestamp(BEGUN + timedelta(seconds=grace))

    async def delete(self, kind: Kind, namespace: str, name: str, **how: Any) -> JsonObject:
        meta = {"deletionTimestamp": self.ends, "finalizers": ["kubelet"]}
        return await self.kube.patch(kind, namespace, name, {"metadata": meta})

    async def end(self) -> None:
        await self.kube.patch(POD, "n", "a", {"metadata": {"finalizers": []}})


@pytest.mark.parametrize(
    ("grace", "until", "waits"),
    [(30, None, True), (30, 3600, True), (30, -1, False), (-31, 3600, False)],
    ids=["no limit", "until AWS's limit", "AWS's limit is over", "the Pod is overdue"],
)
async def test_a_forced_drain_is_over_once_the_deleted_pods_have_ended(
    *, grace: int, until: int | None, waits: bool
) -> None:
    """Then the lifecycle hook is completed, or the instance terminated."""
    workload, left = Graceful(grace), set[asyncio.Task[object]]()
    await workload.pod("a")
    if grace < 0:
        await workload.delete(POD, "n", "a")
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *_: left or left.add(asyncio.ensure_future(workload.end()))
    forced = Emptying(node="node", cause="x", since=BEGUN - timedelta(hours=1), forced=True)
    limit = None if until is None else BEGUN + timedelta(seconds=until)
    node = emptying(until=limit, how=Draining(budgets=Budgets.FORCE, node_grace=timedelta(minutes=5)), begun=forced)

    async def drained() -> Emptied:
        clock.begin()
        return await workload.drain(node)

    done = await asyncio.wait_for(environment.run(drained), PATIENT)
    assert (done.delayed, bool(left)) == (None, waits)


@pytest.mark.parametrize(
    ("budgets", "evictable", "outcome"),
    [(Budgets.RESPECT, True, "done"), (Budgets.RESPECT, False, "incomplete"), (Budgets.FORCE, False, "forced")],
)
async def test_a_drain_is_counted_by_cause_and_outcome_and_timed_from_its_event(
    budgets: Budgets, evictable: bool, outcome: str
) -> None:
    workload = Workload()
    await workload.pod("a", perdure_dev__do_not_disrupt=str(not evictable).lower())
    because = Because(sort=f"spot, {outcome}", since=BEGUN - timedelta(seconds=90))
    over = None if evictable else BEGUN - timedelta(seconds=1)
    await run(workload.drain, emptying(until=over, how=Draining(budgets=budgets, spares=True), because=because))
    assert measured("reactions_total", because, "drain", outcome=outcome) == 1
    assert measured("reaction_seconds_count", because, "drain") == 1
    assert measured("reaction_seconds_sum", because, "drain") >= 90


async def test_a_reaction_that_waits_for_its_node_group_is_counted_and_not_timed() -> None:
    workload = Workload()
    await workload.node()
    for name, ready in (("m-0", "True"), ("m-1", "False")):
        labels = {CONTROL_PLANE_LABEL: "", CLUSTER_LABEL: "c1"}
        await workload.kube.create(MACHINE, machine_of(name, labels, ready), "c")
    because = Because(sort="scheduled, waits", since=BEGUN)
    marking = CordonNode(**WHERE, machine="m-0", reaction=Reaction.CORDON, because=because)
    taking = await run(workload.cordon, marking)
    assert "Machine m-1 is not ready" in taking.turn.why
    assert measured("reactions_total", because, "cordon", outcome="waits") == 1
    assert measured("reaction_seconds_count", because, "cordon") == 0


def machine_of(name: str, labels: dict[str, str], ready: str) -> JsonObject:
    conditions = [{"type": "NodeHealthy", "status": ready}]
    meta = {"name": name, "uid": name, "labels": labels}
    return {"metadata": meta, "spec": {"clusterName": "c1"}, "status": {"conditions": conditions}}


def measured(metric: str, because: Because, reaction: str, **labels: str) -> float:
    found = {"reaction": reaction, "cause": because.sort, **labels}
    return REGISTRY.get_sample_value(f"perdure_instances_{metric}", found) or 0


@pytest.mark.parametrize(
    ("grace", "terminates", "policy", "seconds", "forced"),
    [
        (120, False, None, 100, True),
        (120, False, None, 140, False),
        (None, False, None, 25, True),
        (None, False, None, 35, False),
        (120, True, None, 100, False),  # its grace period has begun
        (120, False, 10, 100, False),
        (3600, False, None, 310, False),  # budgets are respected for half of the ten minutes
        (3600, False, None, 290, True),
        (0, False, 3600, 310, False),
    ],
)
async def test_force_leaves_the_longest_grace_period_of_the_pods_that_are_left(
    *, grace: int | None, terminates: bool, policy: int | None, seconds: int, forced: bool
) -> None:
    workload = Workload()
    await workload.pod("a")
    spec = {} if grace is None else {"terminationGracePeriodSeconds": grace}
    meta = {"deletionTimestamp": "2026-05-04T10:00:00Z"} if terminates else {}
    await workload.kube.patch(POD, "n", "a", {"spec": spec, "metadata": meta})
    workload.refusals = {"a": [Throttled("a budget")]}
    until = BEGUN + timedelta(seconds=seconds)
    begun = Emptying(node="node", cause="c", since=until - timedelta(minutes=10))
    how = Draining(budgets=Budgets.FORCE, pod_grace=None if policy is None else timedelta(seconds=policy))
    node = emptying(until=until, how=how, begun=begun)
    try:
        done: Emptied = await asyncio.wait_for(run(workload.drain, node), PATIENT if forced else 0.2)
    except TimeoutError:
        assert not forced
    else:
        assert (done.delayed is not None and done.delayed.forced) == forced


async def test_a_drain_ends_with_the_nodes_grace_period() -> None:
    workload = Workload()
    await workload.pod("a")
    workload.refusals = {"a": [Throttled("a budget")] * 10_000}
    result = await workload.drained(emptying(how=Draining(node_grace=timedelta(0))))
    assert reasons(result) == ["DrainIncomplete"]


async def test_budgets_that_are_ignored_are_not_asked() -> None:
    workload = Workload()
    await workload.pod("a")
    how = Draining(budgets=Budgets.IGNORE, pod_grace=timedelta(seconds=3))
    await run(workload.drain, emptying(how=how))
    assert (workload.evicted, workload.deleted) == ([], [("a", 3)])


@pytest.mark.parametrize("annotation", ["perdure_dev__do_not_disrupt", "karpenter_sh__do_not_disrupt"])
@pytest.mark.parametrize("spares", [True, False])
async def test_a_pod_that_is_not_to_be_disrupted_is_left_until_the_time_is_over(annotation: str, spares: bool) -> None:
    workload = Workload()
    await workload.pod("a", **{annotation: "true"})
    await workload.pod("b")
    soon = BEGUN + timedelta(seconds=0.2)
    await run(workload.drain, emptying(until=soon, how=Draining(spares=spares)))
    left = [each["metadata"]["name"] for each in (await workload.list(POD)).items]
    assert left == (["a"] if spares else [])


# --- whom a change wakes ---


def test_a_change_of_a_policy_wakes_the_instances_that_it_may_select() -> None:
    index = Index()
    index.of(AWS_MACHINE.name)["c", "m"] = _projected(
        AWS_MACHINE.name, {"metadata": {"name": "m", "namespace": "c", "labels": {CLUSTER_LABEL: "prod"}}, "spec": AT}
    )

    def woken(selector: dict[str, Any]) -> set[Key]:
        before = policy("p", selector).model_dump(mode="json")
        after = policy("p", selector, reactions={"spot": "drain"}).model_dump(mode="json")
        found = [_projected(INTERRUPTION_POLICY.name, each) for each in (before, after)]
        return _watched(INTERRUPTION_POLICY.name).relatives(found[0], found[1], index)

    for selector in ({}, {"clusters": ["prod"]}, {"namespaces": ["c"]}, {"pools": ["md-0"]}):
        assert woken(selector) == {KEY.lifecycle}
    for selector in ({"clusters": ["test"]}, {"namespaces": ["d"]}):
        assert woken(selector) == set()


AT = {"instanceID": ID, "providerID": f"aws:///{REGION}a/{ID}"}


def _watched(kind: str) -> Watched:
    settings = Settings(instances_queues=(f"{ACCOUNT}/{REGION}",))
    return next(each for each in watched_for(settings) if each.kind.name == kind)


def _projected(kind: str, obj: JsonObject) -> Projection:
    return _watched(kind).project("", obj)
