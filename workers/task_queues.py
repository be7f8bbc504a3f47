"""The task queues: one per area for workflow tasks, and one or more per area for activities.

Each queue has its own slots, so that a hanging API never takes another API's slots. Temporal enforces the rate limit of
calls to AWS Organizations and Support over all workers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from temporalio import activity

from domain.areas import area_of
from domain.decision import Queue, World
from domain.identity import task_queue
from engine import worker_slots
from engine.settings import Settings
from workers.registry import actions

# The queues whose activities call boto3 or keystoneauth1.
BLOCKING = (Queue.AWS, Queue.AWS_ORGANIZATION, Queue.LOAD_BALANCERS, Queue.INSTANCES_AWS)
SLOTS: dict[str, int] = {
    Queue.AWS: worker_slots.AWS,
    Queue.AWS_ORGANIZATION: worker_slots.ORGANIZATION,
    Queue.LOAD_BALANCERS: worker_slots.OPENSTACK,
    Queue.INSTANCES_AWS: worker_slots.AWS,
    Queue.THREESCALE: worker_slots.THREESCALE,
}


def rate_of(queue: str, settings: Settings) -> float | None:
    """The most activities per second; None for no limit."""
    return settings.worker_organization_rate if queue == Queue.AWS_ORGANIZATION else None


def by_queue(activities: Iterable[Callable[..., object]]) -> Mapping[str, Sequence[Callable[..., object]]]:
    """The activities by the name of their task queue, which here lacks the cluster's name.

    Raises:
        KeyError: an activity belongs to no action.
    """
    known = actions()
    queues: dict[str, list[Callable[..., object]]] = defaultdict(list)
    for each in activities:
        definition = activity._Definition.must_from_callable(each)
        queues[known[definition.name or ""].queue].append(each)
    return queues


def queues_of(served: Iterable[str], cluster: str) -> set[tuple[str, str]]:
    """The task queues that a cluster's workers of these areas poll, each with `workflow` or `activity`."""
    wanted = set(served)
    found = {(area, "workflow") for area in wanted}
    for action in actions().values():
        # Actions outside of areas' packages belong to accounts, whose workers poll the shared queues.
        if (area_of(action.__module__) or "accounts") in wanted:
            found.add((action.queue, "activity"))
    return {(task_queue(plain, cluster), kind) for plain, kind in found}


def observing_queues(area: str) -> set[str]:
    """The activity queues on which an area's objects are observed; the shared write activities run there, too."""
    observations = (each for each in actions().values() if each.result is not None and issubclass(each.result, World))
    return {each.queue for each in observations if area_of(each.__module__) == area}
