"""The input of one instance's decisions: its memory, its observed objects, and its events.

Events are added to the record when they are handed over. An observation adds the Kubernetes objects, and an
answer of AWS adds the `facts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Self

from domain.control_annotations import paused
from domain.decision import World
from domain.instances.disruption_budget import Turn
from domain.instances.ec2_answers import answered
from domain.instances.event_handover import Outcome, Taken
from domain.instances.event_record import InstanceRecord, fold, hear, hooks_confirmed, launching_hooks_ended, opened
from domain.instances.event_verification import STOPPED_STATES, Facts
from domain.instances.events import InstanceEvent
from domain.instances.hook_timeouts import HookTiming
from domain.instances.interruption_policy import ReactionPolicy
from domain.instances.machine_labels import recalled
from domain.instances.periodic_resync import missed_events
from domain.instances.replacements import Replacement, Unreplaced
from domain.instances.resources import AWSMachine, AWSMachinePool, Machine, Node
from domain.instances.workflow_ids import InstanceKey
from domain.model import Model
from domain.refusal import UNUSABLE_KUBECONFIG, ErrorType, Refusal

# The name of the activity that searches for a Node, and of its slot.
FIND_NODE = "instances.find_node"
# The slot of the actions that change a Node.
ON_NODE = "instances.node"


class KnownNode(Model):
    """`name` is empty if no Node was found."""

    at: datetime
    name: str = ""
    ready: bool = False


class Emptying(Model):
    node: str
    cause: str
    since: datetime
    reported: tuple[str, ...] = ()  # the delays that were reported
    forced: bool = False  # whether its time is over and the deletion of the remaining Pods was reported


class InstanceMemory(Model):
    record: InstanceRecord | None = None  # None before the first event
    facts: Facts | None = None
    timings: dict[str, HookTiming] = {}  # the timeouts of its group's lifecycle hooks, by the hook's name
    recalled: bool = False  # whether the annotation of its AWSMachine or Node was read
    tags: dict[str, str | None] | None = None  # its tags in EC2 that policies name; None until EC2 was asked
    # The result of the search for its Node; None if no search was made, or if a new reason to search followed a search
    # without success.
    node: KnownNode | None = None
    turn: Turn | None = None  # the last answer to a request to disrupt it
    turn_unused: bool = False  # whether the ledger may have a permission to disrupt it that was not used yet
    # The policy that applied to its Node in Perdure's own cluster before the Node was deleted. It still applies while
    # lifecycle actions wait.
    left_with: ReactionPolicy | None = None
    asked: Replacement | None = None  # the replacement requested for its Machine, which the cache may not show yet
    unreplaced: Unreplaced | None = None  # why its Machine cannot be replaced first; None unless a request failed
    emptying: Emptying | None = None  # the drain of its Node; None unless something delays the drain


class InstanceWorld(World):
    known: InstanceMemory = InstanceMemory()
    machine: AWSMachine | None = None
    pool: AWSMachinePool | None = None
    owner: Machine | None = None
    # Its Node in Perdure's own cluster, if Nodes are served and neither AWSMachine nor pool names the instance.
    own_node: Node | None = None
    replacement: Replacement | None = None  # the requested replacement, from the MachineDeployment's annotation
    policy: ReactionPolicy = ReactionPolicy()
    tag_keys: tuple[str, ...] = ()  # the tags that the policy's selection depends on
    chosen_by: dict[str, str | None] | None = None  # the `known.tags` by which the policy was selected
    observing: bool = False  # whether nothing may be written
    may_appear: bool = False  # whether there are AWSMachines without an instance yet
    account_known: bool = False  # whether the machine's cluster confirms the account

    @property
    def labelled(self) -> AWSMachine | Node | None:
        return self.machine or self.own_node

    @property
    def record(self) -> InstanceRecord:
        if self.known.record is None:
            raise ValueError(f"{self.key.path} has no record yet")
        return self.known.record

    @property
    def lacks_tags(self) -> bool:
        return not set(self.tag_keys) <= set(self.known.tags or ())

    @property
    def choice_is_stale(self) -> bool:
        return bool(self.tag_keys) and self.known.tags != self.chosen_by

    @property
    def policy_unsure(self) -> bool:
        """Whether the instance's tags in EC2 may select another policy."""
        return self.lacks_tags or self.choice_is_stale

    @property
    def asked(self) -> Replacement | None:
        return self.replacement or self.known.asked

    def why_unreplaced(self, cause: str) -> str:
        """Empty unless a request for a replacement because of this cause has failed."""
        found, owner = self.known.unreplaced, self.owner
        same = found is not None and owner is not None and found.uid == owner.metadata.uid
        return found.why if found is not None and same and found.cause in ("", cause) else ""

    @property
    def absence_counts(self) -> bool:
        """Whether the answer "EC2 does not know the instance" proves the instance's end.

        The answer proves this only if it comes from the instance's own account. An earlier answer of EC2, the cluster's
        identity, or the pool's group confirms that account.
        """
        grouped = self.pool is not None and self.pool.group is not None
        return self.record.found or self.account_known or grouped

    @property
    def ask_at(self) -> datetime | None:
        """When EC2 is to be asked; None if there is nothing to ask, or if a bulk query includes the instance."""
        return None if self.record.only_to_check else self.record.ask_at

    @property
    def node_name(self) -> str:
        if self.own_node is not None:
            return self.own_node.metadata.name
        named = self.owner.node if self.owner else ""
        return named or (self.known.node.name if self.known.node else "")

    @property
    def node_ready(self) -> bool:
        if self.own_node is not None:
            return self.own_node.node_ready
        return self.owner.node_ready if self.owner else bool(self.known.node and self.known.node.ready)

    @property
    def paused(self) -> str:
        """Which object is paused; empty if none."""
        held = (("AWSMachine", self.machine), ("Machine", self.owner), ("AWSMachinePool", self.pool))
        for kind, each in held:
            if each is not None and (each.paused or paused(each.metadata)):
                return f"{kind} {each.metadata.name} is paused"
        if self.own_node is not None and paused(self.own_node.metadata):
            return f"Node {self.own_node.metadata.name} is paused"
        return ""

    @property
    def blocker(self) -> str:
        """Why no reaction may run; otherwise empty."""
        if paused_object := self.paused:
            return paused_object
        labelled = self.labelled
        if labelled is not None and labelled.metadata.deleting:
            return f"{labelled.kind_of.name} {labelled.metadata.name} is being deleted"
        return ""

    @property
    def managed(self) -> bool:
        """Whether an object names the instance, or its Node was deleted and Auto Scaling still waits for a hook."""
        return self.labelled is not None or self.pool is not None or self._left

    @property
    def _left(self) -> bool:
        record, alone = self.known.record, self.labelled is None and self.pool is None
        return alone and self.known.left_with is not None and record is not None and bool(record.open_hooks)

    @property
    def node_wanted(self) -> bool:
        """Whether a reaction or a hook needs a Node that no Machine names, as in a group without Machines."""
        record, policy = self.record, self.policy
        stops = policy.stopped.of_node and record.state in STOPPED_STATES
        reasons = record.open_hooks or record.interruptions or record.planned or stops
        grouped = (self.machine or self.pool) is not None
        return grouped and self.owner is None and policy.needs_node and bool(reasons)

    @property
    def node_sought(self) -> bool:
        """Whether to search for the wanted Node. If the search was refused as invalid or denied, only a lifecycle
        hook that is received later causes another search.
        """
        lasting = self._refused_since_hooks(self.refused(FIND_NODE, ErrorType.INVALID, ErrorType.DENIED))
        return self.node_wanted and self.known.node is None and not lasting

    @property
    def kubeconfig_refused(self) -> bool:
        refusal = self.refused(ON_NODE, ErrorType.INVALID)
        return self._refused_since_hooks(refusal) and refusal is not None and refusal.code == UNUSABLE_KUBECONFIG

    def _refused_since_hooks(self, refusal: Refusal | None) -> bool:
        # An older refusal says nothing: the action is tried again for each hook.
        received = (hook.received_at for hook in self.record.open_hooks)
        return refusal is not None and all(each <= refusal.at for each in received)

    @property
    def workload(self) -> dict[str, str]:
        """The namespace and name of the Node's Cluster; both empty for a Node of Perdure's own cluster."""
        owner = self.machine or self.pool
        return {"namespace": owner.metadata.namespace if owner else "", "cluster": owner.cluster if owner else ""}

    @property
    def owned_by(self) -> str:
        owner = self.machine or self.pool or self.own_node
        return owner.key.path if owner else ""

    def recall(self, before: Self) -> Self:
        """This observation with the memory of `before`."""
        known = before.known
        if self.labelled is not None and not known.recalled and known.record is not None:
            # A new lifecycle completes its memory from the object's labels and annotation, which are read only once.
            record = recalled(known.record, self.labelled.metadata)
            known = known.model_copy(update={"record": record, "recalled": True})
        if before.own_node is not None and self.own_node is None:
            known = known.model_copy(update={"left_with": before.policy})
        elif self.own_node is not None and known.left_with is not None:
            known = known.model_copy(update={"left_with": None})
        if known.turn_unused and self._goes(before):
            known = known.model_copy(update={"turn_unused": False})
        world = super().recall(before).model_copy(update={"known": known})
        world = world.model_copy(update={"policy": known.left_with}) if world._left else world
        return world.with_launch_result() if world.known.record else world

    def _goes(self, before: Self) -> bool:
        """Whether the Machine or Node is gone or being deleted: then the permission to disrupt it has been used."""
        left = (before.owner and not self.owner) or (before.own_node and not self.own_node)
        return bool(left) or any(each.metadata.deleting for each in (self.owner, self.own_node) if each)

    def begun(self, now: datetime) -> Self:
        return self if self.known.record else self.with_record(opened(InstanceKey.of(self.key), now))

    def with_record(self, record: InstanceRecord) -> Self:
        known, node = self.known.record, self.known.node
        news = known is not None and _reasons_to_search(known) != _reasons_to_search(record)
        # The Node may have joined since a search without success: before the next reaction it is searched for again.
        return self.learn(record=record, node=None if news and node is not None and not node.name else node)

    def with_launch_result(self) -> Self:
        # A launch's result may be forged. It ends the hook only if the policy surely leaves the hook alone.
        if self.policy_unsure or self.policy.launching_hook or not self.managed:
            return self
        return self.with_record(launching_hooks_ended(self.record))

    def with_answer(self, facts: Facts, timings: Mapping[str, HookTiming]) -> Self:
        """The world with AWS's answer, and with events that the answer implies but that never arrived."""
        record = hooks_confirmed(answered(self.record, facts, absence_counts=self.absence_counts), facts)
        for event in missed_events(record, facts):
            record = fold(record, event)
        tags = self.known.tags if facts.tags is None else facts.tags
        known = self.known.facts
        newest = facts if known is None or facts.at >= known.at else known
        return self.with_record(record).learn(facts=newest, tags=tags, timings={**self.known.timings, **timings})

    def with_events(self, events: Sequence[InstanceEvent], now: datetime) -> tuple[Self, dict[str, Outcome]]:
        record, outcomes = self.record, dict[str, Outcome]()
        for event in events:
            # Capped, so that a later answer of EC2 counts for the event even if SQS's clock is ahead of ours.
            received = event.model_copy(update={"received_at": min(event.received_at, now)})
            record, outcome = hear(record, received)
            if event.key not in outcomes:
                outcomes[event.key] = outcome
        return self.with_record(record), outcomes

    def taken(self, outcomes: Mapping[str, Outcome], *, looked: bool) -> Taken:
        """The answer to the event consumer. `looked` is False if the objects could not be read."""
        if not looked:
            return Taken(outcomes=dict.fromkeys(outcomes, Outcome.UNAVAILABLE))
        if not self.managed:
            return Taken(outcomes=dict.fromkeys(outcomes, Outcome.UNKNOWN), may_appear=self.may_appear)
        return Taken(outcomes=dict(outcomes))


def _reasons_to_search(record: InstanceRecord) -> tuple[object, ...]:
    return record.hooks.keys(), record.interruptions, record.planned, record.state in STOPPED_STATES
