"""What the instances' area watches, where it is served: the objects of Cluster API and its AWS provider.

| change of | wakes |
|---|---|
| AWSMachine | its instance: when it gets one, is paused or goes, when somebody edits our labels; a new one: the sweep |
| Machine | the instance of its AWSMachine: when its Node has joined or is ready, when it is paused or goes |
| AWSMachinePool | its group: when it has got one, when somebody edits our label; its instances: as its pause changes |

The lifecycles of the places' queues and rules are woken when a watcher begins. None of the kinds has a workflow by its
own name, and what we write there ourselves wakes nobody. An AWSMachine does not say
its account: where instances of several accounts are served in its region nobody is woken by it, and its instance is
found by its events and the sweep.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from domain.identity import Key
from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, MACHINE, THE_SWEEP
from domain.instances.constants import (
    EVENTS_ANNOTATION,
    GROUP_STATE_LABEL,
    INTERRUPTION_LABEL,
    PAUSED_ANNOTATION,
    PAUSED_CONDITION,
    STATE_LABEL,
)
from domain.instances.events import InstanceState
from domain.instances.names import InstanceKey, group_of_arn, instance_of_provider_id, region_of_provider_id
from domain.instances.places import places, served
from domain.instances.resources import Machine
from domain.instances.upkeep import key_of
from domain.levers import PAUSED
from engine.kube.json import JsonObject, mapping, sequence, text
from engine.settings import Settings
from starters.watch.index import Index
from starters.watch.kinds import Watched
from starters.watch.projection import Projection, View, chosen, own_write

AREA = "instances"

# A worker looks at its own mirror, which may hear of a change a little later than the watcher.
MIRRORED = 1.0

_OURS = (STATE_LABEL, INTERRUPTION_LABEL)
_HOLDS = (PAUSED_ANNOTATION, PAUSED)


def read_machine(obj: JsonObject) -> View:
    """An AWSMachine; settled once it tells a state."""
    labels, annotations = mapping(obj, "metadata", "labels"), mapping(obj, "metadata", "annotations")
    instance = text(obj, "spec", "instanceID") or instance_of_provider_id(text(obj, "spec", "providerID"))
    owners = sequence(obj, "metadata", "ownerReferences")
    owner = next((text(each, "name") for each in owners if text(each, "kind") == MACHINE.name), "")
    news = (instance, chosen(labels, _OURS), chosen(annotations, (*_HOLDS, EVENTS_ANNOTATION)), _held(obj))
    return View(
        fingerprint=(*news, owner),
        settled=not instance or labels.get(STATE_LABEL) in set(InstanceState),
        facts={
            "instance": instance,
            "region": region_of_provider_id(text(obj, "spec", "providerID")),
            "machine": owner,
            "state": text(obj, "metadata", "labels", STATE_LABEL),
            "interruption": text(obj, "metadata", "labels", INTERRUPTION_LABEL),
            "news": repr(news),
        },
    )


def read_owner(obj: JsonObject) -> View:
    """A Machine."""
    machine = Machine.model_validate(obj)
    news = (machine.node, machine.node_ready, machine.paused, chosen(machine.metadata.annotations, _HOLDS))
    return View(fingerprint=news, settled=True, facts={"news": repr(news)})


def read_pool(obj: JsonObject) -> View:
    """An AWSMachinePool; settled once it tells a state."""
    labels, annotations = mapping(obj, "metadata", "labels"), mapping(obj, "metadata", "annotations")
    group, held = text(obj, "spec", "providerID"), (chosen(annotations, _HOLDS), _held(obj))
    news = (group, chosen(labels, (GROUP_STATE_LABEL,)), chosen(annotations, (EVENTS_ANNOTATION,)), held)
    listed = (
        instance_of_provider_id(each) for each in sequence(obj, "spec", "providerIDList") if isinstance(each, str)
    )
    return View(
        fingerprint=news,
        settled=group_of_arn(group) is None or GROUP_STATE_LABEL in labels,
        facts={
            "group": group,
            "state": text(obj, "metadata", "labels", GROUP_STATE_LABEL),
            "news": repr(news),
            "held": repr(held),
            "instances": " ".join(each for each in listed if each),
        },
    )


def _held(obj: JsonObject) -> bool:
    """Whether its controller says that it holds the object."""
    conditions = {text(each, "type"): text(each, "status") for each in sequence(obj, "status", "conditions")}
    return conditions.get(PAUSED_CONDITION) == "True"


class Instances:
    """Whom changes concern, by the places that are served."""

    def __init__(self, settings: Settings) -> None:
        self._served = served(places(settings.instances_queues))
        accounts: defaultdict[str, set[str]] = defaultdict(set)
        for account, region in self._served:
            accounts[region].add(account)
        self._accounts: Mapping[str, str] = {
            region: next(iter(one)) for region, one in accounts.items() if len(one) == 1
        }

    def of_machine(self, before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
        """The instance of an AWSMachine, and the sweep where there was none."""
        if not _news(before, after):
            return set()
        found = {key for side in (before, after) if side is not None and (key := self._instance(side)) is not None}
        return found | _sweep_of_new(before, after)

    def of_owner(self, before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
        """The instance of a Machine's AWSMachine."""
        known = after or before
        if known is None or not _news(before, after):
            return set()
        machines = index.find(AWS_MACHINE.name, "machine", known.key.name)
        beside = (each for each in machines if each.key.namespace == known.key.namespace)
        return {key for each in beside if (key := self._instance(each)) is not None}

    def of_pool(self, before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
        """The group of an AWSMachinePool, and the sweep where there was none; its instances, where it is paused."""
        if not _news(before, after):
            return set()
        sides = [side for side in (before, after) if side is not None]
        groups = ((group_of_arn(side.fact("group")), side.key.cluster) for side in sides)
        found = {group.lifecycle_in(cluster) for group, cluster in groups if group is not None}
        found |= _sweep_of_new(before, after)
        if before and after and before.fact("held") != after.fact("held"):
            found |= self._in_pool(after)
        return found

    def _in_pool(self, pool: Projection) -> set[Key]:
        group = group_of_arn(pool.fact("group"))
        if group is None or (group.account, group.region) not in self._served:
            return set()
        keys = (
            InstanceKey(account=group.account, region=group.region, instance_id=each)
            for each in pool.fact("instances").split()
        )
        return {key.lifecycle_in(pool.key.cluster) for key in keys}

    def _instance(self, machine: Projection) -> Key | None:
        account = self._accounts.get(machine.fact("region"))
        instance = machine.fact("instance")
        if not (account and instance):
            return None
        key = InstanceKey(account=account, region=machine.fact("region"), instance_id=instance)
        return key.lifecycle_in(machine.key.cluster)


def _sweep_of_new(before: Projection | None, after: Projection | None) -> set[Key]:
    """The look in bulk, where an object is new to it."""
    if before is not None or after is None:
        return set()
    return {THE_SWEEP.model_copy(update={"cluster": after.key.cluster})}


def _news(before: Projection | None, after: Projection | None) -> bool:
    """Whether somebody else has changed what we look at."""
    if before is None or after is None:
        return True
    same = (before.fact("news"), before.deleting) == (after.fact("news"), after.deleting)
    return not same and not own_write(before, after)


def opened_for(settings: Settings) -> tuple[Key, ...]:
    """The lifecycles of the queues and rules, where Perdure keeps these."""
    if not settings.instances_setup:
        return ()
    return tuple(key_of(place, settings.cluster) for place in places(settings.instances_queues))


def watched_for(settings: Settings) -> tuple[Watched, ...]:
    """What is watched where instances are served."""
    if not settings.instances_queues:
        return ()
    whom = Instances(settings)
    return tuple(
        Watched(kind=kind, read=read, dependents=dependents, has_workflow=False, gathers=MIRRORED)
        for kind, read, dependents in (
            (AWS_MACHINE, read_machine, whom.of_machine),
            (AWS_MACHINE_POOL, read_pool, whom.of_pool),
            (MACHINE, read_owner, whom.of_owner),
        )
    )
