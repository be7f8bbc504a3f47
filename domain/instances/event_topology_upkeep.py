"""The upkeep of a queue, its dead-letter queue and its rules in one account and region: drift is found and corrected.

Attributes and targets are compared one by one, and only differences are written. If a rule with a name in the AWS
provider's form delivers to the queue, the queue and its rules keep the provider's names (`provider_queue_takeover.py`).
Nothing is ever deleted here, neither objects of others nor objects that are no longer wanted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from domain.decision import Decision, Outcome, Queue
from domain.identity import Key
from domain.instances.cluster_queue_names import provider_clusters
from domain.instances.constants import TOPOLOGY_WORKFLOW
from domain.instances.event_topology import Attributes, Rule, Target, Topology, same_document, topology
from domain.instances.event_topology import Queue as EventQueue
from domain.instances.provider_queue_takeover import provider_topology
from domain.instances.served_queues import Place
from domain.model import Model
from domain.passes import Observation, PassedWorld
from domain.schema import Document

# A changed queue causes no event. A missing rule loses events, which the periodic resync replaces meanwhile.
LOOK_EVERY = timedelta(hours=1)
LOOK_AGAIN = timedelta(minutes=2)
NOT_SERVED = Decision(phase="Gone", outcome=Outcome.GONE, why="the settings do not name this queue any more")

# AWS's KMS key for SQS, as an alias or at the end of an ARN.
_MANAGED_KEY = "alias/aws/sqs"
# Fields of a target that replace the event by other content.
_INPUTS = ("Input", "InputPath", "InputTransformer")


class TopologyWorld(PassedWorld):
    pass


class KeepTopology(Observation):
    activity: ClassVar[str] = "instances.keep_topology"
    title: ClassVar[str] = "reconcile the queues and rules of an account and region"
    queue: ClassVar[str] = Queue.INSTANCES
    result: ClassVar[type[Model] | None] = TopologyWorld
    start_to_close: ClassVar[timedelta] = timedelta(minutes=5)


class Comparison(Model):
    changes: tuple[str, ...] = ()
    trouble: str = ""

    def decision(self, now: datetime, *, dry: bool) -> Decision:
        if self.trouble:
            return Decision(
                phase="Waiting",
                outcome=Outcome.WAITING,
                why=self.trouble,
                waits_for=("AWS",),
                deadline=now + LOOK_AGAIN,
                at_deadline="observe again",
            )
        did = "; ".join(self.changes)
        return Decision(
            phase="Differs" if dry and self.changes else "Kept",
            outcome=Outcome.SETTLED,
            why=f"{'to be done' if dry else 'done'}: {did}" if did else "queues and rules are up to date",
            planned=self.changes if dry else (),
            deadline=now + LOOK_EVERY,
            at_deadline="observe again",
        )


def key_of(place: Place, cluster: str = "") -> Key:
    name = f"{place.region}.{place.queue}"
    return Key(kind=TOPOLOGY_WORKFLOW, namespace=place.account, name=name, uid="", cluster=cluster)


def place_of_key(key: Key, places: Iterable[Place]) -> Place | None:
    return next((place for place in places if key_of(place, key.cluster) == key), None)


def wanted(place: Place, rules_of_queue: Sequence[str] = (), group_prefix: str = "") -> Topology:
    """The queues and rules that an account and region should have.

    Args:
        place: the account and region, and the name of the queue.
        rules_of_queue: the names of the rules that deliver to that queue today.
        group_prefix: the rules match only events of Auto Scaling groups whose names begin with it.

    Raises:
        ValueError: a name would be longer than AWS allows.
    """
    clusters = provider_clusters(place.queue, rules_of_queue)
    if not clusters:
        return topology(place.account, place.region, place.queue, group_prefix)
    return provider_topology(place.account, place.region, clusters)


def differing_attributes(queue: EventQueue, found: Mapping[str, str]) -> Attributes:
    """The attributes that have to be set. If the queue has a customer's own KMS key, the key is kept, and SQS's
    encryption is not turned on.

    AWS's own KMS key is removed: EventBridge may not use that key, and could deliver nothing.
    """
    key = found.get("KmsMasterKeyId", "")
    managed = key.endswith(_MANAGED_KEY)
    differing = {
        name: value
        for name, value in queue.attributes.items()
        if not _same(name, value, found.get(name)) and (managed or not key or name != "SqsManagedSseEnabled")
    }
    return {**differing, "KmsMasterKeyId": ""} if managed else differing


def rule_differs(rule: Rule, found: Mapping[str, object]) -> bool:
    pattern = found.get("EventPattern")
    same = same_document(rule.pattern, pattern if isinstance(pattern, str) else None)
    return not same or found.get("State") != rule.state


def missing_targets(rule: Rule, found: Sequence[Mapping[str, object]]) -> tuple[Target, ...]:
    """Perdure's targets that the rule lacks or has with other fields. Other targets stay."""
    documents = {str(each.get("Id")): each for each in found}
    return tuple(target for target in rule.targets if not _matches(target.document, documents.get(target.id)))


def _matches(target: Document, found: Mapping[str, object] | None) -> bool:
    if found is None or any(found.get(name) for name in _INPUTS):
        return False
    for name, value in target.items():
        there = found.get(name)
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            if any(there.get(inner) != part for inner, part in value.items()):
                return False
        elif there != value:
            return False
    return True


def _same(name: str, value: str, found: str | None) -> bool:
    if name == "RedrivePolicy":
        return _texts(value) == _texts(found)
    return same_document(json.loads(value), found) if name == "Policy" else value == found


def _texts(document: str | None) -> dict[str, str]:
    """The document's values as text: AWS returns a redrive policy's number as a number or as text."""
    try:
        fields = json.loads(document or "{}")
    except ValueError:
        return {}
    return {str(name): str(value) for name, value in fields.items()} if isinstance(fields, dict) else {}
