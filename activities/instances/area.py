from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from activities.aws.queue_account_roles import Places
from activities.clients import Clients
from activities.instances.auto_scaling_groups import GroupActivities
from activities.instances.aws_queries import AskActivities, ServedPlaces
from activities.instances.cache import InstanceCache
from activities.instances.disruption_budget import Disruptions
from activities.instances.event_topology_upkeep import TopologyActivities
from activities.instances.machine_replacement import MachineActivities
from activities.instances.node_drain import NodeActivities
from activities.instances.observation import LookActivities
from activities.instances.periodic_resync import SweepActivities
from activities.instances.state_verification import Checks
from activities.instances.terminations import TerminationActivities
from activities.instances.webhook_notifications import NotificationActivities
from domain.instances.interruption_policy import ReactionPolicy
from domain.instances.periodic_resync import SWEEP_INTERVAL
from domain.instances.served_queues import places, with_queues
from engine import worker_slots
from engine.kube.informer_cache import Store


async def activities(clients: Clients, stack: AsyncExitStack) -> Sequence[Callable[..., object]]:
    settings, client, kube = clients.settings, clients.temporal, clients.kube
    cache = InstanceCache(kube, await stack.enter_async_context(Store(kube)), nodes=settings.instances_nodes)
    callers = Places(connections=worker_slots.AWS, observing=settings.observing)
    every_place = places(settings.instances_queues)
    served = ServedPlaces(every_place, callers)
    checks = await stack.enter_async_context(Checks(served, client, cluster=settings.cluster))
    policy, observing = ReactionPolicy.of(settings.instances_reactions), settings.observing
    disruptions = Disruptions(kube, settings.watch_lease_namespace, settings.instances_disruptions)
    return [
        *NotificationActivities(kube, cache, settings.watch_lease_namespace).all(),
        *LookActivities(kube, cache, checks, policy, observing=observing).all(),
        *MachineActivities(kube, cache, disruptions).all(),
        *AskActivities(served).all(),
        *NodeActivities(kube, disruptions).all(),
        *TerminationActivities(kube, served).all(),
        *GroupActivities(kube, cache, served, observing=observing).all(),
        *SweepActivities(client, cache, served, settings.sweep or SWEEP_INTERVAL).all(),
        *TopologyActivities(
            with_queues(every_place),
            callers.caller,
            group_prefix=settings.instances_group_prefix,
            observing=observing,
        ).all(),
    ]
