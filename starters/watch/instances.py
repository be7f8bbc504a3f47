"""What the instances area watches, if it is served; `domain/instances/relations.py` says which lifecycles are woken.

The lifecycles of queues and rules are woken at each start.
"""

from __future__ import annotations

from domain.identity import Key
from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, INTERRUPTION_POLICY, MACHINE, MACHINE_DEPLOYMENT
from domain.instances.constants import GROUP_STATE_LABEL, INTERRUPTION_LABEL, STATE_LABEL
from domain.instances.event_topology_upkeep import key_of
from domain.instances.events import InstanceState
from domain.instances.provider_ids import group_of_arn, instance_of_node, instance_of_provider_id
from domain.instances.relations import WatchedNode, relations_of
from domain.instances.served_queues import places, served, with_queues
from engine.kube.json import JsonObject, mapping, text
from engine.kube.reflector import Followed
from engine.settings import Settings
from starters.watch.projection import View
from starters.watch.watched_kinds import Pacing, Watched, read_nothing

AREA = "instances"

# Seconds in which wakes gather, because a worker's informer cache may receive a change later than the watcher's.
CACHED = 1.0


def read_machine(obj: JsonObject) -> View:
    return _labelled(obj, text(obj, "spec", "instanceID") or instance_of_provider_id(text(obj, "spec", "providerID")))


def read_node(obj: JsonObject) -> View:
    instance = instance_of_node(text(obj, "spec", "providerID"))
    return _labelled(obj, instance, instance=instance)


def _labelled(obj: JsonObject, its_instance: str, **facts: str) -> View:
    """An AWSMachine or Node. It is settled if its label shows a state, or if it has no EC2 instance."""
    state = text(obj, "metadata", "labels", STATE_LABEL)
    return View(
        fingerprint=(),
        settled=not its_instance or state in set(InstanceState),
        facts={"state": state, "interruption": text(obj, "metadata", "labels", INTERRUPTION_LABEL), **facts},
    )


def read_pool(obj: JsonObject) -> View:
    labels = mapping(obj, "metadata", "labels")
    group = group_of_arn(text(obj, "spec", "providerID"))
    return View(
        fingerprint=(),
        settled=group is None or GROUP_STATE_LABEL in labels,
        facts={"state": text(labels, GROUP_STATE_LABEL)},
    )


def opened_for(settings: Settings) -> tuple[Key, ...]:
    if not settings.instances_setup:
        return ()
    return tuple(key_of(place, settings.cluster) for place in with_queues(places(settings.instances_queues)))


def watched_for(settings: Settings) -> tuple[Watched, ...]:
    if not settings.instances_queues:
        return ()
    nodes = settings.instances_nodes
    relations = relations_of(served(places(settings.instances_queues)), nodes=nodes)
    reads = {
        **({WatchedNode.kind_of: read_node} if nodes else {}),
        AWS_MACHINE: read_machine,
        AWS_MACHINE_POOL: read_pool,
        MACHINE: read_nothing,
        MACHINE_DEPLOYMENT: read_nothing,
        INTERRUPTION_POLICY: read_nothing,
    }
    return tuple(
        Watched(Followed(kind), read=read, relations=relations, pacing=Pacing(gathers=CACHED))
        for kind, read in reads.items()
    )
