"""The actions of an instance's lifecycle.

One action reads the instance's objects and writes the labels, so that an event costs one activity. The other actions
run separately, so that neither a slow AWS nor a Node that takes an hour to drain delays a label.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from domain.decision import Action, Queue, W, WhenUnwanted
from domain.identity import Key
from domain.instances.disruption_budget import Turn
from domain.instances.event_record import (
    InstanceRecord,
    cordoned,
    heartbeat_sent,
    hook_ended,
    impossible,
    notified,
    refuted,
    terminated,
    uncordoned,
)
from domain.instances.event_verification import Facts, Question
from domain.instances.hook_timeouts import HookTiming
from domain.instances.interruption_policy import CauseSort, Draining, Reaction, Taint, TaintEffect
from domain.instances.notices import on_each
from domain.instances.observed import FIND_NODE, ON_NODE, Emptying, InstanceWorld, KnownNode
from domain.instances.replacements import Replacement, Unreplaced
from domain.model import Model
from domain.notices import Reported, warning
from domain.refusal import Refusal
from domain.writes import RecordEvents


class _InstanceAction(Action):
    queue: ClassVar[str] = Queue.INSTANCES

    key: Key


class Because(Model):
    sort: str
    since: datetime


class LookAtInstance(_InstanceAction):
    """Read the objects of the instance, and write the labels that its recorded events require.

    A local activity: a normal one would double the cost of an event (measured).
    """

    activity: ClassVar[str] = "instances.look"
    title: ClassVar[str] = "observe {key.name}, and label it"
    result: ClassVar[type[Model] | None] = InstanceWorld
    start_to_close: ClassVar[timedelta] = timedelta(seconds=30)
    local: ClassVar[bool] = True

    at: datetime
    record: InstanceRecord
    recall: bool = False  # whether to read the annotation, because this lifecycle has not read it yet
    tags: dict[str, str | None] | None = None  # EC2's answer about the tags; None if EC2 was not asked about tags
    version: str = ""  # the object's resourceVersion that was seen last; older versions are not accepted
    dry_run: bool = False

    @property
    def most_attempts(self) -> int:
        """Few attempts, because the event consumer waits for the result and must learn of a failure."""
        return 2

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        assert isinstance(result, InstanceWorld)  # noqa: S101 - the activity's type
        return result.recall(world)


class Answer(Model):
    """AWS's answer about an instance. `timings` has the timeouts of its group's lifecycle hooks, if they were asked
    for.
    """

    facts: Facts
    timings: dict[str, HookTiming] = {}


class Done(Reported):
    at: datetime


class AskInstance(_InstanceAction):
    """Ask AWS about an instance. Concurrent questions about several instances share one call."""

    activity: ClassVar[str] = "instances.ask"
    queue: ClassVar[str] = Queue.INSTANCES_AWS
    result: ClassVar[type[Model] | None] = Answer

    questions: tuple[Question, ...]
    tag_keys: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        return f"ask AWS: {', '.join(self.questions)}"

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        assert isinstance(result, Answer)  # noqa: S101 - the activity's type
        return world.with_answer(result.facts, result.timings)


class _HookAction(_InstanceAction):
    slot_by: ClassVar[str] = "token"
    queue: ClassVar[str] = Queue.INSTANCES_AWS
    # The action is one quick call. It may be due after half of a hook's timeout, and the shortest timeout is 30 s.
    start_to_close: ClassVar[timedelta] = timedelta(seconds=15)
    heartbeat: ClassVar[timedelta] = timedelta(seconds=10)
    result: ClassVar[type[Model] | None] = Done

    group: str
    hook: str
    token: str


class BeatHook(_HookAction):
    activity: ClassVar[str] = "instances.heartbeat"
    title: ClassVar[str] = "heartbeat of hook {hook}"

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        assert isinstance(result, Done)  # noqa: S101 - the activity's type
        return world.with_record(heartbeat_sent(world.record, self.token, result.at))


class EndHook(_HookAction):
    activity: ClassVar[str] = "instances.complete_hook"
    title: ClassVar[str] = "complete hook {hook}: {outcome}"
    # A throttled call is retried even if AWS's confirmation gets too old meanwhile.
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.FINISHED

    outcome: str
    because: Because | None = None

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        assert isinstance(result, Done)  # noqa: S101 - the activity's type
        return world.with_record(hook_ended(world.record, self.token, result.at))


class _MachineAction(_InstanceAction):
    observed_after: ClassVar[bool] = True

    namespace: str
    name: str
    uid: str

    @property
    def slot(self) -> str:
        return "instances.machine"


class _TakesTurn(_InstanceAction):
    """An action that first asks for permission to disrupt the machine. The permission stays in force if
    the disruption fails or is cancelled.
    """

    cause: str
    taken: bool = False  # whether AWS reclaims the instance right now
    most: int | None = None  # how many machines of the group may be disrupted at a time; None if the setting applies
    policy: str = ""  # the name of the InterruptionPolicy; empty if the settings apply
    because: Because | None = None

    def answered(self, world: InstanceWorld, turn: Turn, *, unused: bool) -> InstanceWorld:
        return world.learn(turn=turn.model_copy(update={"taken": self.taken}), turn_unused=unused)

    def cancelled(self, world: W) -> W:
        return world.learn(turn_unused=True)

    def refuse(self, world: W, refusal: Refusal) -> W:
        return super().refuse(world, refusal).learn(turn_unused=True)


class Asked(Reported):
    """The permission to disrupt a Machine, and the requested replacement or the reason why there is none."""

    turn: Turn
    replacement: Replacement | None = None
    unreplaced: Unreplaced | None = None


class AskReplacement(_MachineAction, _TakesTurn):
    activity: ClassVar[str] = "instances.ask_replacement"
    title: ClassVar[str] = "request a replacement of Machine {namespace}/{name} because of {cause}"
    result: ClassVar[type[Model] | None] = Asked
    # A request that was sent must be known, so that it can be withdrawn even if the Machine is gone by then.
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.FINISHED

    @property
    def most_attempts(self) -> int:
        """Few, so that the decision learns of an error early. At the cause's deadline, the decision deletes the Machine
        even without a replacement.
        """
        return 3

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        assert isinstance(result, Asked)  # noqa: S101 - the activity's type
        unused = result.replacement is None and bool(result.turn.why or result.unreplaced)
        world = self.answered(world, result.turn, unused=unused)
        return world.learn(asked=result.replacement, unreplaced=result.unreplaced)


class EndReplacement(_MachineAction):
    """Withdraw the request to replace a Machine, because the Machine stays (`keep`) or is gone."""

    activity: ClassVar[str] = "instances.end_replacement"
    title: ClassVar[str] = "withdraw the replacement of Machine {namespace}/{name}"
    learns: ClassVar[Mapping[str, object]] = {"asked": None, "unreplaced": None}
    result: ClassVar[type[Model] | None] = Reported
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.FINISHED

    deployment: str = ""  # the MachineDeployment that was scaled up; empty if only the Machine is annotated
    keep: bool = False


class Taking(Reported):
    turn: Turn


class DeleteOwner(_MachineAction, _TakesTurn):
    activity: ClassVar[str] = "instances.delete_machine"
    title: ClassVar[str] = "delete Machine {namespace}/{name} because of {cause}"
    result: ClassVar[type[Model] | None] = Taking
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.AWAITED

    deployment: str = ""  # the MachineDeployment that was asked for a replacement; empty if none was requested
    cluster: str = ""
    about: tuple[Key, ...] = ()  # the objects, besides the Machine, that get an Event about the deletion

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        assert isinstance(result, Taking)  # noqa: S101 - the activity's type
        world = self.answered(world, result.turn, unused=bool(result.turn.why))
        return world if result.turn.why else world.learn(asked=None)


class _NodeAction(_InstanceAction):
    """An action on a Node of a workload cluster. The kubeconfig of that cluster is a Secret in `namespace`. If
    `namespace` is empty, the Node belongs to Perdure's own cluster.
    """

    namespace: str
    cluster: str
    node: str

    @property
    def slot(self) -> str:
        return ON_NODE

    @property
    def of_cluster(self) -> str:
        return f"{self.namespace}/{self.cluster}" if self.namespace else ""


class FindNode(_NodeAction):
    """Find the Node whose provider id names the instance, because no Machine names the Node.

    `node` is the Node's last known name, which is tried first; empty if no name is known.
    """

    activity: ClassVar[str] = FIND_NODE
    title: ClassVar[str] = "find the node of {key.name}"
    result: ClassVar[type[Model] | None] = KnownNode

    @property
    def slot(self) -> str:
        return self.activity

    @property
    def most_attempts(self) -> int:
        """Limited so that a workload cluster that does not answer is reported. The lifecycle tries again later."""
        return 3

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        return world.learn(node=result)


class CordonNode(_NodeAction, _TakesTurn):
    activity: ClassVar[str] = "instances.cordon"
    result: ClassVar[type[Model] | None] = Taking
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.AWAITED

    machine: str = ""  # the name of the Node's Machine; empty if the Node has no Machine
    pool: str = ""  # the name of its AWSMachinePool
    reaction: Reaction = Reaction.DRAIN  # taint, cordon or drain; the drain itself is another action
    taint: Taint | None = None
    about: tuple[Key, ...] = ()  # the objects that get an Event about the action; empty without an InterruptionPolicy

    @property
    def disrupts(self) -> bool:
        evicts = self.taint is not None and self.taint.effect is TaintEffect.NO_EXECUTE
        return evicts or self.reaction is not Reaction.TAINT

    @property
    def summary(self) -> str:
        return f"{'taint' if self.reaction is Reaction.TAINT else 'cordon'} node {self.node} because of {self.cause}"

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        assert isinstance(result, Taking)  # noqa: S101 - the activity's type
        turn = result.turn
        world = self.answered(world, turn, unused=bool(turn.why))
        if turn.why:
            return world
        done_at = turn.at if self.reaction is not Reaction.DRAIN else None
        return world.with_record(cordoned(world.record, self.cause, self.node, done_at, self.reaction))


class Emptied(Done):
    """The result of a drain. If `delayed` is set, the drain will continue; otherwise it is over."""

    delayed: Emptying | None = None


class EmptyNode(_NodeAction):
    activity: ClassVar[str] = "instances.drain"
    title: ClassVar[str] = "drain node {node} because of {cause}"
    result: ClassVar[type[Model] | None] = Emptied
    start_to_close: ClassVar[timedelta] = timedelta(hours=49)
    # The Node may be uncordoned only once no more Pods are evicted from it.
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.AWAITED

    cause: str
    until: datetime | None = None  # the cause's deadline; None if it has none
    how: Draining = Draining()  # how Pods are evicted, and what happens to Pods that cannot be evicted
    begun: Emptying | None = None  # the drain as it was last reported; None at the beginning of the drain
    about: tuple[Key, ...] = ()  # the objects that get an Event about the drain; empty without an InterruptionPolicy
    because: Because | None = None

    def superseded_by(self, wanted: Action) -> bool:
        """Whether `wanted` ends this drain: `wanted` is another kind of action, or a drain with other parameters."""
        return not isinstance(wanted, EmptyNode) or wanted._way != self._way

    @property
    def _way(self) -> tuple[object, ...]:
        return self.node, self.cause, self.until, self.how

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        assert isinstance(result, Emptied)  # noqa: S101 - the activity's type
        world = world.learn(emptying=result.delayed)
        if result.delayed is not None:
            return world
        return world.with_record(cordoned(world.record, self.cause, self.node, result.at))


class TerminateInstance(_NodeAction):
    """Terminate the instance of a drained Node in Perdure's own cluster. `uid` is the uid of the Node."""

    activity: ClassVar[str] = "instances.terminate"
    title: ClassVar[str] = "terminate {key.name} of node {node} because of {cause}"
    queue: ClassVar[str] = Queue.INSTANCES_AWS
    result: ClassVar[type[Model] | None] = Done
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.AWAITED

    uid: str
    cause: str
    about: tuple[Key, ...] = ()
    because: Because | None = None

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        assert isinstance(result, Done)  # noqa: S101 - the activity's type
        return world.with_record(terminated(world.record, self.cause, self.node, result.at))


class ReleaseNode(_NodeAction):
    """Uncordon the Node and end the recorded disruption."""

    activity: ClassVar[str] = "instances.uncordon"

    # Whether the permission was probably not used. If so, the ledger is written first, without waiting for the Node's
    # cluster, and `node` may be empty.
    unused: bool = False

    @property
    def summary(self) -> str:
        return (
            f"uncordon node {self.node}" if self.node else f"release the unused permission to disrupt {self.key.name}"
        )

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        # A later drain may have a cause of the same name, such as another stop.
        return world.with_record(uncordoned(world.record)).learn(turn_unused=False, emptying=None)


class Notify(_InstanceAction):
    """Notify an InterruptionPolicy's channel that AWS reclaims the instance.

    The channel's address, headers and format are read only when the notification is sent, because they may be secret.
    """

    activity: ClassVar[str] = "instances.notify"
    title: ClassVar[str] = "notify {channel} of {cause}"
    slot_by: ClassVar[str] = "id"
    queue: ClassVar[str] = Queue.INSTANCES_NOTIFICATIONS
    result: ClassVar[type[Model] | None] = Done
    start_to_close: ClassVar[timedelta] = timedelta(seconds=30)
    first_retry: ClassVar[timedelta] = timedelta(seconds=2)
    # A failed webhook is retried even if the machine is deleted or AWS's confirmation gets too old meanwhile.
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.FINISHED

    policy: str
    channel: str
    cause: str  # each channel gets one notification for each cause
    sort: CauseSort
    reaction: Reaction
    received_at: datetime
    deadline: datetime | None = None  # until when there is time to act; None if no limit is known
    namespace: str = ""
    cluster: str = ""
    machine: str = ""
    node: str = ""  # empty until the Node has joined the cluster
    about: tuple[Key, ...] = ()  # the AWSMachine or Node that gets an Event if the notification fails

    @property
    def id(self) -> str:
        return f"{self.channel}/{self.cause}"

    @property
    def most_attempts(self) -> int:
        """With growing pauses the attempts take three minutes; after that the notification is out of date."""
        return 8

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        return world.with_record(notified(world.record, self.id))

    def refuse(self, world: InstanceWorld, refusal: Refusal) -> InstanceWorld:  # type: ignore[override]
        return world.with_record(notified(world.record, self.id))


class CountRefuted(_InstanceAction):
    """Count a cause that AWS does not confirm: the event was a mistake, or forged.

    `about` has the objects that get an Event: the AWSMachine or Node, and the Machine. It is empty if only a machine
    pool has the instance.
    """

    activity: ClassVar[str] = "instances.count_refuted"
    title: ClassVar[str] = "AWS does not confirm {cause}: nothing is done"
    slot_by: ClassVar[str] = "cause"

    cause: str
    about: tuple[Key, ...] = ()

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        message = f"AWS does not confirm {self.cause} of instance {self.key.name}: nothing is done"
        world = world.with_news(*on_each(self.about, warning, "EventRefuted", message))
        at = world.known.facts.at if world.known.facts else world.record.heard_at
        return world.with_record(refuted(world.record, self.cause, at))


class TellImpossible(RecordEvents):
    """Report an impossible reaction: there is no Machine to delete, or Cluster API owns the instance to terminate."""

    cause: str
    reaction: Reaction = Reaction.DELETE_MACHINE

    @property
    def slot(self) -> str:
        return f"{self.activity}/{self.cause}"

    @property
    def summary(self) -> str:
        return f"{self.reaction} because of {self.cause} is not possible: nothing is done"

    def fold(self, world: InstanceWorld, result: Model | None) -> InstanceWorld:  # type: ignore[override]
        world = super().fold(world, result)
        return world.with_record(impossible(world.record, self.cause))
