"""Which instance's events are handled first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.instances.event_routing import instance_of
from domain.instances.events import EventKind, InstanceEvent
from domain.instances.workflow_ids import InstanceKey


def by_instance(events: Iterable[InstanceEvent]) -> dict[InstanceKey, tuple[InstanceEvent, ...]]:
    """The events of each instance without duplicates, ordered by time. The instances with the most urgent events come
    first.
    """
    gathered: dict[InstanceKey, dict[str, InstanceEvent]] = {}
    for event in events:
        key = instance_of(event)
        if key is not None:
            gathered.setdefault(key, {}).setdefault(event.key, event)
    ordered = {key: tuple(sorted(found.values(), key=_moment)) for key, found in gathered.items()}
    return dict(sorted(ordered.items(), key=lambda item: urgency(item[1])))


def urgency(events: Sequence[InstanceEvent]) -> int:
    """The lowest rank of the events: 0 for hooks, final states, and notices of Spot and capacity reservations; 1 for
    other states; 2 for the rest. The lowest is handled first.
    """
    ranks = (0 if event.urgent else 1 if event.kind is EventKind.STATE else 2 for event in events)
    return min(ranks, default=2)


def _moment(event: InstanceEvent) -> tuple[object, ...]:
    return event.time, event.state.rank if event.state else -1, event.key
