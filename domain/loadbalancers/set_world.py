"""What the decision about a LoadBalancerSet sees, and what it does with its machines."""

from __future__ import annotations

from typing import ClassVar, Self

from domain.decision import Action, Queue
from domain.loadbalancers.constants import READY_SINCE_ANNOTATION
from domain.loadbalancers.fleet import Fleet
from domain.loadbalancers.health import Timings
from domain.loadbalancers.object_world import ObjectWorld
from domain.loadbalancers.resources import LoadBalancerMachine, LoadBalancerSet
from domain.model import Model
from domain.writes import JsonPatch


class SetWorld(ObjectWorld):
    """One LoadBalancerSet.

    Attributes:
        machine_set: as it was observed, and changed by own writes since.
        machines: its machines (`scaling.machines_of`), oldest first.
        taken: names that machines have which are not the set's, or not any more.
        fleet: all machines of the installation; None until they are asked for.
        noted: this pass has noted that its machines are ready (`set_status.readiness_patch`).
    """

    about: ClassVar[str] = "machine_set"

    machine_set: LoadBalancerSet = LoadBalancerSet()
    machines: tuple[LoadBalancerMachine, ...] = ()
    taken: frozenset[str] = frozenset()
    fleet: Fleet | None = None
    timings: Timings = Timings()
    noted: bool = False

    def written(self, patch: JsonPatch, resource_version: str, *, gone: bool = False) -> Self:
        """This world after a write of the set."""
        world = super().written(patch, resource_version, gone=gone)
        return world.model_copy(update={"noted": self.noted or READY_SINCE_ANNOTATION in str(patch)})

    def with_machine(self, name: str, machine: LoadBalancerMachine | None) -> Self:
        """A machine as it is now, None if it is gone."""
        others = [each for each in self.machines if each.metadata.name != name]
        if len(others) == len(self.machines):
            return self.model_copy(update={"machines": (*others, *([machine] if machine else []))})
        kept = (machine if each.metadata.name == name else each for each in self.machines)
        return self.model_copy(update={"machines": tuple(each for each in kept if each)})


class FoundMachine(Model):
    """A machine after an action, None if it is gone or is not the set's."""

    machine: LoadBalancerMachine | None = None


class _MachineAction(Action):
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    result: ClassVar[type[Model] | None] = FoundMachine
    slot_by: ClassVar[str] = "name"

    machine_set: LoadBalancerSet
    name: str

    def fold(self, world: SetWorld, result: Model | None) -> SetWorld:  # type: ignore[override]
        """The machine as it is now."""
        assert isinstance(result, FoundMachine)  # noqa: S101 - the activity's type
        return world.with_machine(self.name, result.machine)


class CreateMachine(_MachineAction):
    """Make a machine, or find the one of its name that was made before.

    A person may have taken that one out of its set by its labels: its name is taken then, and its place is not.
    """

    activity: ClassVar[str] = "loadbalancers.create_machine"
    title: ClassVar[str] = "create LoadBalancerMachine {name}"

    def fold(self, world: SetWorld, result: Model | None) -> SetWorld:  # type: ignore[override]
        """One more, or another name that is taken."""
        found = super().fold(world, result)
        known = any(each.metadata.name == self.name for each in found.machines)
        return found if known else found.model_copy(update={"taken": found.taken | {self.name}})


class PatchMachine(_MachineAction):
    """Merge patches of one machine and of its status; either may be empty.

    A patch of the status replaces what the agent has written as a whole, so it is for the machine of this version only.
    """

    activity: ClassVar[str] = "loadbalancers.patch_machine"
    title: ClassVar[str] = "patch LoadBalancerMachine {name}"

    patch: JsonPatch = {}
    status: JsonPatch = {}
    version: str = ""


class DeleteMachine(_MachineAction):
    """Ask for the deletion of a machine: its own lifecycle takes it out of the cloud."""

    activity: ClassVar[str] = "loadbalancers.delete_machine"
    title: ClassVar[str] = "delete LoadBalancerMachine {name}"
