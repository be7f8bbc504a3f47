"""The lifecycle of an Auto Scaling group, and the sweep over all accounts and regions.

Both consist of passes (`domain.passes`): one activity observes, decides and acts. A group's workflow asks Auto Scaling
when it is woken. The label follows from the answer, and from results of launches and terminations that events report.
These results are remembered, because Auto Scaling may list them only later. The sweep finds instances and groups whose
state differs from their label, and wakes their workflows.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar, Self

from domain.decision import Queue
from domain.instances.machine_pool_labels import GroupRecord, merged
from domain.model import Model
from domain.passes import Observation, PassedWorld, Sweep


class GroupWorld(PassedWorld):
    known: GroupRecord = GroupRecord()

    def recall(self, before: Self) -> Self:
        return super().recall(before).model_copy(update={"known": before.known})

    def with_record(self, record: GroupRecord) -> Self:
        return self.model_copy(update={"known": merged(self.known, record)})


class LookAtGroup(Observation):
    """Observe a group and label its machine pools. `memory` has results of launches and terminations from events."""

    activity: ClassVar[str] = "instances.look_at_group"
    title: ClassVar[str] = "observe group {key.name}"
    queue: ClassVar[str] = Queue.INSTANCES
    result: ClassVar[type[Model] | None] = GroupWorld
    start_to_close: ClassVar[timedelta] = timedelta(seconds=90)

    memory: GroupRecord = GroupRecord()


class SweepInstances(Sweep):
    activity: ClassVar[str] = "instances.sweep"
    title: ClassVar[str] = "observe all instances"
    compares: ClassVar[str] = "instances"
    queue: ClassVar[str] = Queue.INSTANCES
    start_to_close: ClassVar[timedelta] = timedelta(minutes=10)
