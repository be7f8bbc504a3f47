"""Instances on the time-skipping server: events handed over, hooks of two days, maintenance, Spot, close and reopen.

The workflow, its decisions and its actions are the real ones; Kubernetes and AWS are one machine, and facts.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from lifecycles import PATIENCE
from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.enums.v1 import WorkflowExecutionStatus as EnumStatus
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import WorkflowHandle
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from waiting import eventually

from domain.decision import Queue
from domain.instances.actions import (
    Answer,
    Asked,
    AskInstance,
    AskReplacement,
    BeatHook,
    CordonNode,
    CountRefuted,
    DeleteOwner,
    Done,
    Emptied,
    EmptyNode,
    EndHook,
    FindNode,
    LookAtInstance,
    Notify,
    ReleaseNode,
    Taking,
    TerminateInstance,
)
from domain.instances.constants import DEPLOYMENT_LABEL, INSTANCE_WORKFLOW, INTERRUPTION_LABEL, STATE_LABEL
from domain.instances.disruption_budget import Turn
from domain.instances.event_handover import ANSWERED, Outcome, Taken
from domain.instances.event_verification import Facts, Question, ScheduledEvent
from domain.instances.events import EventKind, HealthNotice, HookAction, InstanceEvent, InstanceState
from domain.instances.hook_timeouts import HookTiming
from domain.instances.instance_lifecycle import patch_for
from domain.instances.interruption_policy import CauseSort, Channel, Reaction, ReactionPolicy
from domain.instances.machine_labels import recalled
from domain.instances.observed import Emptying, InstanceMemory, InstanceWorld, KnownNode
from domain.instances.replacements import Replacement
from domain.instances.resources import AWSMachine, Machine, Node
from domain.instances.workflow_ids import InstanceKey
from domain.notices import warning
from domain.why import Why
from domain.writes import RecordEvents, patched
from engine.clock import now
from engine.errors import Unavailable
from engine.temporal import wake
from starters.events.temporal import hand_over
from tests.replay.recording import keep, recording
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of

WORKFLOWS = workflows_of("instances")
ACCOUNT, REGION, GROUP = "123456789012", "eu-central-1", "c1-mp-0"
_serials = itertools.count()


class OneInstance:
    """An instance with its AWSMachine and Machine, and what AWS answers."""

    def __init__(self, env: WorkflowEnvironment, policy: ReactionPolicy | None = None) -> None:
        self.env = env
        self.key = InstanceKey(account=ACCOUNT, region=REGION, instance_id=f"i-{next(_serials):017x}")
        self.policy = policy or ReactionPolicy()
        self.machine: AWSMachine | None = self.new_machine()
        self.owner: Machine | None = Machine.model_validate(
            {"metadata": {"name": "m", "namespace": "c", "uid": "2"}, "status": {"nodeRef": {"name": "node"}}}
        )
        self.joined: Node | None = None  # without Cluster API
        self.facts: dict[str, Any] = {"state": InstanceState.RUNNING}
        self.timings = {"drain": HookTiming(heartbeat_timeout=timedelta(hours=1))}
        self.replacement: Replacement | None = None
        self.kubernetes_down = self.workload_down = self.webhook_down = False
        self.node = KnownNode(at=datetime.now(UTC))
        self.delays: list[str] = []  # what delays a drain, one after the other
        self.drains: list[EmptyNode] = []
        self.blocked = False  # a drain goes on until it is cancelled
        self.reasons: list[str] = []  # of Events
        self.seen_before_answered = False  # an effect is seen before its action has ended
        self.done: list[tuple[str, datetime]] = []

    def new_machine(self) -> AWSMachine:
        return AWSMachine.model_validate(
            {
                "metadata": {"name": "m", "namespace": "c", "uid": "1", "resourceVersion": "1"},
                "spec": {"instanceID": self.key.instance_id, "providerID": f"aws:///{REGION}a/{self.key.instance_id}"},
            }
        )

    def join_alone(self) -> None:
        """Be an instance of a cluster without Cluster API."""
        self.machine = self.owner = None
        spec = {"providerID": f"aws:///{REGION}a/{self.key.instance_id}"}
        meta = {"name": "node", "uid": "3", "resourceVersion": "1"}
        self.joined = Node.model_validate({"metadata": meta, "spec": spec})

    def did(self, what: str) -> list[datetime]:
        return [moment for name, moment in self.done if name == what]

    def label(self, name: str = STATE_LABEL) -> str | None:
        labelled = self.machine or self.joined
        return labelled.metadata.labels.get(name) if labelled else None

    # --- activities ---

    def _note(self, what: str) -> None:
        self.done.append((what, now()))

    @activity.defn(name=LookAtInstance.activity)
    async def look(self, look: LookAtInstance) -> InstanceWorld:
        if self.kubernetes_down:
            raise Unavailable("the API server does not answer")
        seen = InstanceWorld(
            key=look.key,
            machine=self.machine,
            owner=self.owner,
            own_node=self.joined,
            replacement=self.replacement,
            policy=self.policy,
            may_appear=True,
        )
        labelled = seen.labelled
        if labelled is None or look.dry_run:
            return seen
        record = recalled(look.record, labelled.metadata) if look.recall else look.record
        known = seen.model_copy(update={"known": InstanceMemory(record=record)}).with_launch_result()
        patch = patch_for(known, look.at)
        if patch:
            self.done.append(("patch", look.at))
            version = str(int(labelled.metadata.resource_version) + 1)
            if self.machine is not None:
                self.machine = patched(self.machine, patch, version)
            elif self.joined is not None:
                self.joined = patched(self.joined, patch, version)
        return seen.model_copy(update={"machine": self.machine, "own_node": self.joined})

    @activity.defn(name=AskInstance.activity)
    async def ask(self, question: AskInstance) -> Answer:
        self._note("ask")
        return Answer(facts=Facts(at=now(), asked=question.questions, **self.facts), timings=self.timings)

    @activity.defn(name=BeatHook.activity)
    async def heartbeat(self, beat: BeatHook) -> Done:
        self._note("heartbeat")
        return Done(at=now())

    @activity.defn(name=EndHook.activity)
    async def complete(self, end: EndHook) -> Done:
        self._note(f"complete {end.token} {end.outcome}")
        return Done(at=now())

    @activity.defn(name=AskReplacement.activity)
    async def ask_replacement(self, wanted: AskReplacement) -> Asked:
        self._note("ask for a replacement")
        named = {"namespace": wanted.namespace, "name": wanted.name, "uid": wanted.uid}
        self.replacement = Replacement.model_validate({**named, "deployment": "md", "asked_at": now()})
        return Asked(turn=Turn(at=now()))

    @activity.defn(name=DeleteOwner.activity)
    async def delete(self, deletion: DeleteOwner) -> Taking:
        self._note("delete")
        self.replacement = None
        if self.owner is not None and self.owner.metadata.uid == deletion.uid:
            going = self.owner.metadata.model_copy(update={"deletion_timestamp": now()})
            self.owner = self.owner.model_copy(update={"metadata": going})
        if self.seen_before_answered:
            await wake(self.env.client, self.key.lifecycle)
            await self.until_unwanted()
        return Taking(turn=Turn(at=now()), notices=(warning("MachineDeleted", "it is deleted"),))

    @activity.defn(name=FindNode.activity)
    async def find(self, search: FindNode) -> KnownNode:
        self._note("find")
        if self.workload_down:
            raise Unavailable("the workload cluster does not answer")
        return self.node.model_copy(update={"at": now()})

    @activity.defn(name=CordonNode.activity)
    async def cordon(self, node: CordonNode) -> Taking:
        self._note("cordon")
        return Taking(turn=Turn(at=now()))

    @activity.defn(name=EmptyNode.activity)
    async def drain(self, node: EmptyNode) -> Emptied:
        self._note("drain")
        self.drains.append(node)
        while self.blocked:
            activity.heartbeat()
            await asyncio.sleep(0.05)
        if not self.delays:
            return Emptied(at=now())
        begun = node.begun or Emptying(node=node.node, cause=node.cause, since=now())
        after = begun.model_copy(update={"reported": (*begun.reported, self.delays.pop(0))})
        return Emptied(at=now(), delayed=after, notices=(warning("DrainHeldUp", after.reported[-1]),))

    @activity.defn(name=TerminateInstance.activity)
    async def terminate(self, termination: TerminateInstance) -> Done:
        self._note("terminate")
        self.facts |= {"state": InstanceState.SHUTTING_DOWN}
        if self.seen_before_answered:
            await self.hand_over(await self.state("terminated"))
            await self.until_unwanted()
        return Done(at=now(), notices=(warning("InstanceTerminated", "it is terminated"),))

    @activity.defn(name=ReleaseNode.activity)
    async def uncordon(self, node: ReleaseNode) -> None:
        self._note("uncordon")

    @activity.defn(name=Notify.activity)
    async def notify(self, notice: Notify) -> Done:
        if self.webhook_down:
            self._note("notify in vain")
            raise Unavailable("the webhook does not answer")
        self._note(f"notify {notice.channel}")
        return Done(at=now())

    @activity.defn(name=RecordEvents.activity)
    async def record(self, action: RecordEvents) -> None:
        self.reasons += [each.reason for each in action.notices]

    @activity.defn(name=CountRefuted.activity)
    async def refuted(self, claim: CountRefuted) -> None:
        self._note("refuted")

    # --- what a test does ---

    @property
    def handle(self) -> WorkflowHandle[Any, Any]:
        return self.env.client.get_workflow_handle(self.key.workflow_id)

    async def event(self, kind: EventKind, **facts: Any) -> InstanceEvent:
        moment = (await self.env.get_current_time()).replace(microsecond=0)
        whole = {"time": moment, "received_at": moment} | facts
        id_ = f"e-{next(_serials)}"
        place = {"account": ACCOUNT, "region": REGION, "instance_id": self.key.instance_id}
        return InstanceEvent(event_id=id_, kind=kind, **place, **whole)

    async def state(self, state: str, **facts: Any) -> InstanceEvent:
        return await self.event(EventKind.STATE, state=InstanceState(state), **facts)

    async def hand_over(self, *events: InstanceEvent, receives: int = 1) -> Taken:
        return await hand_over(self.env.client, "")(self.key, events, receives)

    async def until(self, true: Callable[[], bool], what: str) -> None:
        await eventually(true, lambda: f"{what}: {self.done} {self.machine}")

    async def why(self) -> Why:
        answer: Why = await self.handle.query("why", result_type=Why)
        return answer

    async def until_why(self, true: Callable[[Why], bool]) -> None:
        """Wait until the workflow says so: it learns of an action's result after the action is recorded here."""

        async def said() -> bool:
            return true(await self.why())

        await eventually(said, self.why)

    async def until_unwanted(self) -> None:
        """Wait until the workflow has asked an action that runs to stop."""

        async def is_asked() -> bool:
            requested = EventType.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED
            return any(each.event_type == requested for each in (await self.handle.fetch_history()).events)

        await eventually(is_asked, self.why)

    async def run(self) -> WorkflowExecutionInfo:
        """As the server describes it (this server gives attributes that were unset in a way the SDK cannot read)."""
        client, execution = self.env.client, WorkflowExecution(workflow_id=self.key.workflow_id)
        answer = await client.workflow_service.describe_workflow_execution(
            DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=execution)
        )
        return answer.workflow_execution_info

    async def closed(self) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while (await self.run()).status != EnumStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED:
            assert asyncio.get_running_loop().time() < deadline, await self.why()
            await asyncio.sleep(0.05)


@asynccontextmanager
async def instance(env: WorkflowEnvironment, case: str = "", **policy: Any) -> AsyncIterator[OneInstance]:
    """An instance with workers of its own; its history is kept under the name of the `case`, where there is one."""
    one = OneInstance(env, ReactionPolicy(**policy))
    looks = [one.ask_replacement, one.delete, one.find, one.cordon, one.drain, one.uncordon, one.refuted, one.record]
    calls = [one.ask, one.heartbeat, one.complete, one.terminate]
    async with (
        Worker(
            env.client,
            task_queue="instances",
            workflows=WORKFLOWS,
            activities=[one.look],
            interceptors=[Boundary()],
        ),
        Worker(env.client, task_queue=Queue.INSTANCES.value, activities=looks, interceptors=[Boundary()]),
        Worker(env.client, task_queue=Queue.INSTANCES_AWS.value, activities=calls, interceptors=[Boundary()]),
        Worker(
            env.client,
            task_queue=Queue.INSTANCES_NOTIFICATIONS.value,
            activities=[one.notify],
            interceptors=[Boundary()],
        ),
    ):
        yield one
        if case and recording():
            keep(INSTANCE_WORKFLOW, case, await one.handle.fetch_history())
        try:
            await one.handle.terminate("the test is over")
        except RPCError:
            return


async def test_an_event_is_answered_once_its_label_is_written(env: WorkflowEnvironment) -> None:
    async with instance(env) as one:
        event = await one.state("stopping")
        taken = await one.hand_over(event)
        assert taken == Taken(outcomes={event.key: Outcome.APPLIED})
        assert one.did("patch")
        assert one.label() is not None


async def test_the_same_event_given_again_has_one_effect(env: WorkflowEnvironment) -> None:
    async with instance(env) as one:
        one.facts["state"] = InstanceState.STOPPED
        event = await one.state("stopped")
        await asyncio.gather(*(one.hand_over(event) for _ in range(5)))
        again = await one.hand_over(event, receives=2)
        assert again.outcomes == {event.key: Outcome.DUPLICATE}
        assert one.label() == "stopped"
        assert len(one.did("patch")) == 1


async def test_an_unknown_instance_is_told_so_and_labelled_when_its_machine_appears(env: WorkflowEnvironment) -> None:
    async with instance(env, "a_machine_appears") as one:
        machine, one.machine = one.machine, None
        event = await one.state("running")
        taken = await one.hand_over(event)
        assert taken == Taken(outcomes={event.key: Outcome.UNKNOWN}, may_appear=True)
        assert not one.did("ask")
        one.machine = machine
        await wake(env.client, one.key.lifecycle)
        await one.until(lambda: one.label() == "running", "the label")
        assert (await one.hand_over(event, receives=2)).outcomes == {event.key: Outcome.DUPLICATE}


async def test_an_unknown_instance_is_forgotten_after_ten_minutes(env: WorkflowEnvironment) -> None:
    async with instance(env) as one:
        one.machine = None
        await one.hand_over(await one.state("running"))
        await env.sleep(timedelta(minutes=11))
        await one.closed()


async def test_events_are_told_unavailable_while_kubernetes_is_and_applied_when_it_is_back(
    env: WorkflowEnvironment,
) -> None:
    async with instance(env, "kubernetes_is_away_and_comes_back") as one:
        one.facts["state"] = InstanceState.STOPPED
        one.kubernetes_down = True
        event = await one.state("stopped")
        assert (await one.hand_over(event)).outcomes == {event.key: Outcome.UNAVAILABLE}
        one.kubernetes_down = False
        assert (await one.hand_over(event, receives=2)).outcomes == {event.key: Outcome.DUPLICATE}
        assert one.label() == "stopped"


async def test_a_launching_hook_that_no_policy_serves_ends_with_its_launch(env: WorkflowEnvironment) -> None:
    async with instance(env, "a_launch_succeeds_whose_hook_no_policy_serves") as one:
        action = HookAction(name="boot", token="t", transition="launching")
        await one.hand_over(await one.event(EventKind.LAUNCHING, group=GROUP, hook=action))
        await one.until(lambda: one.label() == "running", "the label of EC2's answer")
        assert (await one.why()).phase == "Launching"
        await env.sleep(timedelta(seconds=5))
        before = len(one.did("patch"))
        await one.hand_over(await one.event(EventKind.LAUNCH_OK, group=GROUP))
        await one.until_why(lambda found: found.phase == "Live")
        assert len(one.did("patch")) == before + 1


async def test_ec2s_answer_outranks_an_event_and_is_requested_only_if_unverified(
    env: WorkflowEnvironment,
) -> None:
    async with instance(env) as one:
        await one.hand_over(await one.state("stopping"))
        await env.sleep(timedelta(minutes=2))
        assert (one.label(), one.did("ask")) == ("stopping", [])
        facts = Facts(at=await env.get_current_time(), asked=(Question.INSTANCE,), state=InstanceState.STOPPED)
        await one.handle.signal(ANSWERED, Answer(facts=facts))
        await one.until(lambda: one.label() == "stopped", "the answer's label")
        one.facts["state"] = InstanceState.RUNNING
        start = await env.get_current_time() - timedelta(seconds=3)
        doubtful = await one.state("running", time=start.replace(microsecond=0), degraded=("time",))
        await one.hand_over(doubtful)
        await one.until(lambda: one.label() == "running", "the answer's label")
        assert len(one.did("ask")) == 1


async def test_what_delays_a_drain_is_recorded_as_an_event_before_the_drain_goes_on(env: WorkflowEnvironment) -> None:
    async with instance(env, name="p", spot=Reaction.DRAIN) as one:
        one.join_alone()
        one.facts |= {"spot": True, "spot_code": "marked-for-termination"}
        one.delays = ["a budget", "another budget"]
        await one.hand_over(await one.event(EventKind.SPOT, action="terminate"))
        await one.until(lambda: len(one.did("drain")) == 3, "the drain")
        await one.until(lambda: one.reasons.count("DrainHeldUp") == 2, "the Events")
        assert sorted({*one.reasons}) == ["DrainHeldUp", "InstanceInterruption"]
        await env.sleep(timedelta(minutes=3))
        assert len(one.did("drain")) == 3


async def test_the_instance_of_a_node_is_drained_and_terminated_once(env: WorkflowEnvironment) -> None:
    async with instance(env, spot=Reaction.TERMINATE_INSTANCE) as one:
        one.join_alone()
        one.facts |= {"spot": True, "spot_code": "marked-for-termination"}
        await one.hand_over(await one.event(EventKind.SPOT, action="terminate"))
        await one.until(lambda: one.label() == "shutting-down", "the end is labelled")
        steps = [what for what, _ in one.done if what in ("cordon", "drain", "terminate")]
        assert steps == ["cordon", "drain", "terminate"]
        await one.hand_over(await one.state("terminated"))
        assert one.label() == "terminated"
        one.joined = None
        await env.sleep(timedelta(hours=2))
        await one.closed()
        assert len(one.did("terminate")) == 1
        assert len(one.did("ask")) < 10


@pytest.mark.parametrize(
    ("reaction", "reason"),
    [(Reaction.TERMINATE_INSTANCE, "InstanceTerminated"), (Reaction.DELETE_MACHINE, "MachineDeleted")],
)
async def test_an_effect_is_reported_also_if_it_is_seen_before_its_answer(
    env: WorkflowEnvironment, reaction: Reaction, reason: str
) -> None:
    async with instance(env, spot=reaction) as one:
        if reaction is Reaction.TERMINATE_INSTANCE:
            one.join_alone()
        one.seen_before_answered = True
        one.facts |= {"spot": True, "spot_code": "marked-for-termination"}
        await one.hand_over(await one.event(EventKind.SPOT, action="terminate"))
        await one.until(lambda: reason in one.reasons, "the Event")


async def test_the_hook_of_a_node_that_somebody_deletes_is_completed(env: WorkflowEnvironment) -> None:
    async with instance(env, terminating_hook=Reaction.DRAIN) as one:
        one.join_alone()
        one.facts |= {"group": GROUP, "lifecycle": "Pending:Wait"}
        action = HookAction(name="drain", token="t-1", transition="terminating", destination="EC2")
        await one.hand_over(await one.event(EventKind.TERMINATING, group=GROUP, hook=action))
        assert not one.did("complete t-1 CONTINUE")
        one.joined = None
        one.facts["lifecycle"] = "Terminating:Wait"
        await wake(env.client, one.key.lifecycle)
        await one.until(lambda: bool(one.did("complete t-1 CONTINUE")), "the hook is completed")
        assert not one.did("cordon")


@pytest.mark.complete
async def test_a_hook_is_kept_for_two_days_by_heartbeats_and_then_completed_once(env: WorkflowEnvironment) -> None:
    async with instance(env, terminating_hook=Reaction.DELETE_MACHINE) as one:
        one.facts |= {"group": GROUP, "lifecycle": "Terminating:Wait"}
        action = HookAction(name="drain", token="t-1", transition="terminating", destination="EC2")
        begun = await env.get_current_time()
        await one.hand_over(await one.event(EventKind.TERMINATING, group=GROUP, hook=action))
        await one.until(lambda: bool(one.did("delete")), "the Machine's deletion")
        first = (await one.run()).execution.run_id
        await one.until_why(lambda found: found.phase == "HookDraining")
        for _ in range(50):
            await env.sleep(timedelta(hours=1))
        await one.until(lambda: bool(one.did("complete t-1 CONTINUE")), "the completion")
        beats, (ended,) = one.did("heartbeat"), one.did("complete t-1 CONTINUE")
        assert timedelta(hours=47, minutes=55) < ended - begun < timedelta(hours=48)
        gaps = [later - earlier for earlier, later in itertools.pairwise([begun, *beats])]
        assert len(beats) > 500
        assert max(gaps) < timedelta(minutes=30)
        assert (await one.run()).execution.run_id != first


async def test_an_instance_without_a_machine_is_drained_by_node_before_its_hook_ends(
    env: WorkflowEnvironment,
) -> None:
    async with instance(env, terminating_hook=Reaction.DRAIN) as one:
        one.owner, one.node = None, one.node.model_copy(update={"name": "node", "ready": True})
        one.facts |= {"group": GROUP, "lifecycle": "Terminating:Wait"}
        action = HookAction(name="drain", token="t-1", transition="terminating", destination="EC2")
        await one.hand_over(await one.event(EventKind.TERMINATING, group=GROUP, hook=action))
        await one.until(lambda: bool(one.did("complete t-1 CONTINUE")), "the completion")
        steps = [name for name, _ in one.done if name in ("find", "cordon", "drain", "complete t-1 CONTINUE")]
        assert steps == ["find", "cordon", "drain", "complete t-1 CONTINUE"]


async def test_a_workload_cluster_that_is_away_keeps_a_hook_by_heartbeats_until_it_is_back(
    env: WorkflowEnvironment,
) -> None:
    async with instance(env, terminating_hook=Reaction.DRAIN) as one:
        one.owner, one.node = None, one.node.model_copy(update={"name": "node", "ready": True})
        one.facts |= {"group": GROUP, "lifecycle": "Terminating:Wait"}
        one.workload_down = True
        action = HookAction(name="drain", token="t-1", transition="terminating", destination="EC2")
        await one.hand_over(await one.event(EventKind.TERMINATING, group=GROUP, hook=action))
        await env.sleep(timedelta(hours=2))
        assert not one.did("complete t-1 CONTINUE")
        assert len(one.did("heartbeat")) > 20
        await one.until_why(lambda found: any("does not answer" in each.message for each in found.hindrances))
        one.workload_down = False
        await env.sleep(timedelta(minutes=11))
        await one.until(lambda: bool(one.did("complete t-1 CONTINUE")), "the completion")
        assert one.did("drain")


async def test_a_launch_goes_on_once_the_node_of_its_instance_is_ready(env: WorkflowEnvironment) -> None:
    async with instance(env, launching_hook=True) as one:
        one.owner = None
        one.facts |= {"group": GROUP, "lifecycle": "Pending:Wait"}
        action = HookAction(name="ready", token="t-1", transition="launching", origin="EC2")
        await one.hand_over(await one.event(EventKind.LAUNCHING, group=GROUP, hook=action))
        while len(one.did("find")) <= 2:  # a busy machine looks for it less often while time is skipped
            await env.sleep(timedelta(minutes=1))
        assert not one.did("complete t-1 CONTINUE")
        one.node = one.node.model_copy(update={"name": "node", "ready": True})
        await env.sleep(timedelta(minutes=1))
        await one.until(lambda: bool(one.did("complete t-1 CONTINUE")), "the completion")


async def test_a_scheduled_event_is_acted_upon_a_day_before_its_date(env: WorkflowEnvironment) -> None:
    async with instance(env, ending=Reaction.DELETE_MACHINE) as one:
        start = (await env.get_current_time()).replace(microsecond=0) + timedelta(days=10)
        await one.hand_over(await one.event(EventKind.HEALTH_SCHEDULED, health=retirement(start)))
        one.facts["scheduled"] = (ScheduledEvent(id="s-1", code="instance-retirement", not_before=start),)
        assert one.label(INTERRUPTION_LABEL) == "scheduled-retirement"
        await env.sleep(timedelta(days=8, hours=23))
        assert not one.did("delete")
        await one.until_why(lambda found: found.phase == "MaintenancePlanned")
        await env.sleep(timedelta(hours=1, minutes=1))
        await one.until(lambda: bool(one.did("delete")), "the deletion")


async def test_maintenance_that_moved_is_acted_upon_by_its_new_date_and_cancelled_never(
    env: WorkflowEnvironment,
) -> None:
    async with instance(env, ending=Reaction.DELETE_MACHINE) as one:
        begin = (await env.get_current_time()).replace(microsecond=0)
        first, second = begin + timedelta(days=3), begin + timedelta(days=9)
        await one.hand_over(await one.event(EventKind.HEALTH_SCHEDULED, health=retirement(first)))
        one.facts["scheduled"] = (ScheduledEvent(id="s-1", code="instance-retirement", not_before=second),)
        moved = retirement(second, updated=begin + timedelta(seconds=9))
        await one.hand_over(await one.event(EventKind.HEALTH_SCHEDULED, health=moved))
        await env.sleep(timedelta(days=4))
        assert not one.did("delete")
        over = retirement(second, updated=begin + timedelta(days=4), status="closed")
        one.facts["scheduled"] = ()
        await one.hand_over(await one.event(EventKind.HEALTH_SCHEDULED, health=over))
        assert one.label(INTERRUPTION_LABEL) is None
        await env.sleep(timedelta(days=8))
        assert not one.did("delete")
        await one.until_why(lambda found: found.phase == "Live")


async def test_a_webhook_that_fails_is_told_later_although_the_machine_is_gone_by_then(
    env: WorkflowEnvironment,
) -> None:
    channel = Channel(name="chat", causes=(CauseSort.SPOT,))
    async with instance(env, name="p", spot=Reaction.DELETE_MACHINE, channels=(channel,)) as one:
        one.facts |= {"spot": True, "spot_code": "marked-for-termination"}
        one.webhook_down = True
        await one.hand_over(await one.event(EventKind.SPOT, action="terminate"))
        await one.until(lambda: bool(one.did("delete") and one.did("notify in vain")), "the deletion")
        one.machine = one.owner = None
        await wake(env.client, one.key.lifecycle)
        await env.sleep(timedelta(seconds=5))
        await one.until_why(lambda found: found.phase == "Unknown")
        one.webhook_down = False
        await env.sleep(timedelta(minutes=2))
        await one.until(lambda: bool(one.did("notify chat")), "the notification")
        await env.sleep(timedelta(minutes=2))
        assert len(one.did("notify chat")) == 1


async def test_a_spot_notice_that_aws_bears_out_is_reacted_to_once(env: WorkflowEnvironment) -> None:
    async with instance(env, "a_spot_notice_is_reacted_to", spot=Reaction.DELETE_MACHINE) as one:
        one.facts |= {"spot": True, "spot_code": "marked-for-termination"}
        notice = await one.event(EventKind.SPOT, action="terminate")
        await one.hand_over(notice)
        assert one.label(INTERRUPTION_LABEL) == "spot-terminate"
        await one.until(lambda: bool(one.did("delete")), "the deletion")
        await one.hand_over(notice, receives=2)
        await env.sleep(timedelta(seconds=90))
        assert len(one.did("delete")) == 1


@pytest.mark.parametrize("waits", [3600, 60], ids=["ready", "late"])
async def test_a_machine_is_deleted_when_its_replacement_is_ready_or_late(env: WorkflowEnvironment, waits: int) -> None:
    first = {"ending": timedelta(seconds=waits)}
    async with instance(env, ending=Reaction.DELETE_MACHINE, replace_first=first) as one:
        one.facts["scheduled"] = (ScheduledEvent(code="instance-retirement"),)
        assert one.owner is not None
        of_deployment = one.owner.metadata.model_copy(update={"labels": {DEPLOYMENT_LABEL: "md"}})
        one.owner = one.owner.model_copy(update={"metadata": of_deployment})
        start = (await env.get_current_time()).replace(microsecond=0) + timedelta(hours=2)
        await one.hand_over(await one.event(EventKind.HEALTH_SCHEDULED, health=retirement(start)))
        await one.until(lambda: one.did("ask for a replacement") != [], "a replacement is asked for")
        await one.until_why(lambda found: "for the replacement of Machine m" in found.why)
        await env.sleep(timedelta(seconds=59))
        assert not one.did("delete")
        if waits > 60:
            assert one.replacement is not None
            one.replacement = one.replacement.model_copy(update={"ready": "m-9"})
            await wake(env.client, one.key.lifecycle)
        else:
            await env.sleep(timedelta(seconds=30))
        await one.until(lambda: one.did("delete") != [], "the Machine is deleted")
        assert len(one.did("ask for a replacement")) == len(one.did("delete")) == 1


async def test_a_forged_notice_leads_to_no_reaction_and_is_told_of(env: WorkflowEnvironment) -> None:
    async with instance(
        env, "a_forged_notice_is_refuted", spot=Reaction.DELETE_MACHINE, terminated=Reaction.DELETE_MACHINE
    ) as one:
        await one.hand_over(await one.event(EventKind.SPOT, action="terminate"), await one.state("terminated"))
        await env.sleep(timedelta(minutes=5))
        await one.until(lambda: bool(one.did("refuted")), "the refutation")
        assert not one.did("delete")
        assert one.label() == "running"
        assert one.label(INTERRUPTION_LABEL) is None


async def test_a_node_is_cordoned_drained_and_used_again_after_a_reboot(env: WorkflowEnvironment) -> None:
    async with instance(env, "a_node_is_drained_and_used_again", reboot=Reaction.DRAIN) as one:
        begin = (await env.get_current_time()).replace(microsecond=0)
        start, end = begin + timedelta(hours=30), begin + timedelta(hours=32)
        notice = retirement(start, code="AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED").model_copy(update={"end": end})
        await one.hand_over(await one.event(EventKind.HEALTH_SCHEDULED, health=notice))
        one.facts["scheduled"] = (ScheduledEvent(id="s-1", code="system-reboot", not_before=start),)
        await env.sleep(timedelta(hours=7))
        await one.until(lambda: bool(one.did("drain")), "the drain")
        assert len(one.did("cordon")) == 1
        one.facts["scheduled"] = ()
        await env.sleep(timedelta(hours=26))
        await one.until(lambda: bool(one.did("uncordon")), "the end of the cordon")
        assert (len(one.did("cordon")), len(one.did("drain"))) == (1, 1)


@pytest.mark.parametrize("ends", ["the event is withdrawn", "the policy asks for labels only"])
async def test_a_drain_under_way_ends_before_its_node_is_used_again(env: WorkflowEnvironment, ends: str) -> None:
    async with instance(env, reboot=Reaction.DRAIN) as one:
        one.blocked = True
        start = (await env.get_current_time()).replace(microsecond=0) + timedelta(hours=20)
        notice = retirement(start, code="AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED")
        one.facts["scheduled"] = (ScheduledEvent(id="s-1", code="system-reboot", not_before=start),)
        await one.hand_over(await one.event(EventKind.HEALTH_SCHEDULED, health=notice))
        await one.until(lambda: bool(one.did("drain")), "the drain")
        if ends == "the event is withdrawn":
            over = notice.model_copy(update={"status": "closed", "updated": start - timedelta(hours=19)})
            one.facts["scheduled"] = ()
            await one.hand_over(await one.event(EventKind.HEALTH_SCHEDULED, health=over))
        else:
            one.policy = ReactionPolicy()
            await wake(env.client, one.key.lifecycle)
        await one.until(lambda: bool(one.did("uncordon")), "the end of the cordon")
        assert len(one.did("drain")) == 1


async def test_a_drain_for_maintenance_makes_way_for_that_of_a_spot_notice(env: WorkflowEnvironment) -> None:
    async with instance(env, reboot=Reaction.DRAIN, spot=Reaction.DRAIN) as one:
        one.blocked = True
        start = (await env.get_current_time()).replace(microsecond=0) + timedelta(hours=20)
        notice = retirement(start, code="AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED")
        one.facts["scheduled"] = (ScheduledEvent(id="s-1", code="system-reboot", not_before=start),)
        await one.hand_over(await one.event(EventKind.HEALTH_SCHEDULED, health=notice))
        await one.until(lambda: bool(one.did("drain")), "the drain")
        one.facts |= {"spot": True, "spot_code": "marked-for-termination"}
        spot = await one.event(EventKind.SPOT, action="terminate")
        await one.hand_over(spot)
        await one.until(lambda: len(one.drains) == 2, "the drain for Spot")
        assert (one.drains[1].cause, one.drains[1].until) == (spot.key, spot.time + timedelta(minutes=2))


async def test_a_terminated_instance_closes_after_an_hour_despite_a_late_event(
    env: WorkflowEnvironment,
) -> None:
    async with instance(env, "a_late_event_after_the_end") as one:
        old = await one.state("stopped")
        await env.sleep(timedelta(seconds=5))
        await one.hand_over(await one.state("terminated"))
        one.facts = {"state": InstanceState.TERMINATED}
        await env.sleep(timedelta(minutes=61))
        await one.closed()
        one.facts = {"found": False}
        before = len(one.did("patch"))
        assert (await one.hand_over(old)).outcomes == {old.key: Outcome.APPLIED}
        await env.sleep(timedelta(minutes=5))
        assert one.label() == "terminated"
        assert len(one.did("patch")) == before


async def test_an_end_found_only_in_bulk_is_labelled_and_handled_however_late(
    env: WorkflowEnvironment,
) -> None:
    async with instance(env, terminated=Reaction.DELETE_MACHINE) as one:
        await one.hand_over(await one.state("running"))
        await env.sleep(timedelta(hours=3))
        one.facts = {"state": InstanceState.TERMINATED}
        facts = Facts(at=await env.get_current_time(), asked=(Question.INSTANCE,), state=InstanceState.TERMINATED)
        await one.handle.signal(ANSWERED, Answer(facts=facts))
        await one.until(lambda: bool(one.did("delete")), "the deletion")
        assert one.label() == "terminated"
        await one.closed()


async def test_a_label_that_was_edited_unseen_is_put_right_by_what_a_look_at_many_tells(
    env: WorkflowEnvironment,
) -> None:
    async with instance(env) as one:
        await one.hand_over(await one.state("running"))
        edited = one.new_machine()
        meta = edited.metadata.model_copy(update={"labels": {STATE_LABEL: "stopped"}, "resource_version": "9"})
        one.machine = edited.model_copy(update={"metadata": meta})
        facts = Facts(at=await env.get_current_time(), asked=(Question.INSTANCE,), state=InstanceState.RUNNING)
        await one.handle.signal(ANSWERED, Answer(facts=facts))
        await one.until(lambda: one.label() == "running", "the label")


async def test_a_terminated_workflow_loses_no_hook(env: WorkflowEnvironment) -> None:
    async with instance(env, terminating_hook=Reaction.DELETE_MACHINE) as one:
        one.facts |= {"group": GROUP, "lifecycle": "Terminating:Wait"}
        action = HookAction(name="drain", token="t-1", transition="terminating", destination="EC2")
        await one.hand_over(await one.event(EventKind.TERMINATING, group=GROUP, hook=action))
        await one.until(lambda: bool(one.did("delete")), "the Machine's deletion")
        await one.handle.terminate("lost")
        one.owner = None
        await wake(env.client, one.key.lifecycle)
        await one.until(lambda: bool(one.did("complete t-1 CONTINUE")), "the completion")


async def test_a_terminated_workflow_loses_no_notice(env: WorkflowEnvironment) -> None:
    async with instance(env, spot=Reaction.LABEL) as one:
        await one.hand_over(await one.event(EventKind.SPOT, action="terminate"))
        await one.handle.terminate("lost")
        await wake(env.client, one.key.lifecycle)
        await one.until(lambda: len(one.did("ask")) >= 1, "the question of the new one")
        await one.until_why(lambda found: found.phase == "Interrupting")
        assert one.label(INTERRUPTION_LABEL) == "spot-terminate"


def retirement(
    start: datetime,
    *,
    updated: datetime | None = None,
    status: str = "upcoming",
    code: str = "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
) -> HealthNotice:
    known = updated or start - timedelta(days=20)
    return HealthNotice(code=code, arn="arn:h", communication=f"c-{known}", start=start, updated=known, status=status)
