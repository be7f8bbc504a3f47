"""The workflows that an event goes to. `event_urgency.py` sorts instances by urgency.

An instance's workflow gets the events themselves. An event that names a group wakes the group's workflow, which asks
Auto Scaling about the group. The group's workflow also gets the results of launches and terminations from their events.
If the settings do not name the event's account and region, the event is ignored, whatever instance it names.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.instances.events import InstanceEvent
from domain.instances.workflow_ids import GroupKey, InstanceKey


def instance_of(event: InstanceEvent) -> InstanceKey | None:
    """The event's instance; None for an event of a dedicated host, or of a failed launch without an instance."""
    if not event.instance_id:
        return None
    return InstanceKey(account=event.account, region=event.region, instance_id=event.instance_id)


def group_of(event: InstanceEvent) -> GroupKey | None:
    return GroupKey(account=event.account, region=event.region, group=event.group) if event.group else None


def on_host(event: InstanceEvent, instances: Iterable[str]) -> tuple[InstanceEvent, ...]:
    """One event for each of the `instances` of the event's dedicated host. An event that names an instance is returned
    unchanged.
    """
    if event.instance_id:
        return (event,)
    return tuple(event.model_copy(update={"instance_id": each}) for each in sorted(instances))
