"""The workflows that an event goes to, and the order in which a batch is handled.

An instance's workflow gets the events themselves. A group's workflow gets the results of launches and terminations. It
is also woken, and then asks Auto Scaling for its instances' states and for further results. If the settings do not name
the event's account and region, the event is ignored, whatever instance it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.instances.events import EventKind, InstanceEvent
from domain.instances.workflow_ids import GroupKey, InstanceKey


def instance_of(event: InstanceEvent) -> InstanceKey | None:
    """The event's instance; None for an event of a dedicated host, or of a failed launch without an instance."""
    if not event.instance_id:
        return None
    return InstanceKey(account=event.account, region=event.region, instance_id=event.instance_id)


def group_of(event: InstanceEvent) -> GroupKey | None:
    return GroupKey(account=event.account, region=event.region, group=event.group) if event.group else None


def on_host(event: InstanceEvent, instances: Iterable[str]) -> tuple[InstanceEvent, ...]:
    """One event for each of these instances on the event's dedicated host. An event that names an instance itself is
    unchanged.
    """
    if event.instance_id:
        return (event,)
    return tuple(event.model_copy(update={"instance_id": each}) for each in sorted(instances))


def by_instance(events: Iterable[InstanceEvent]) -> dict[InstanceKey, tuple[InstanceEvent, ...]]:
    """The events of each instance without duplicates, in the order of their times. The instances with the most urgent
    events come first.
    """
    gathered: dict[InstanceKey, dict[str, InstanceEvent]] = {}
    for event in events:
        key = instance_of(event)
        if key is not None:
            gathered.setdefault(key, {}).setdefault(event.key, event)
    ordered = {key: tuple(sorted(found.values(), key=_moment)) for key, found in gathered.items()}
    return dict(sorted(ordered.items(), key=lambda item: urgency(item[1])))


def urgency(events: Sequence[InstanceEvent]) -> int:
    """The lowest rank of the events: 0 for notices of Spot and capacity reservations, hooks and ends, 1 for other
    states, 2 for all other events. Events of a low rank are handled first.
    """
    return min((_urgency(event) for event in events), default=2)


def _urgency(event: InstanceEvent) -> int:
    if event.urgent:
        return 0
    return 1 if event.kind is EventKind.STATE else 2


def _moment(event: InstanceEvent) -> tuple[object, ...]:
    return event.time, event.state.rank if event.state else -1, event.key
