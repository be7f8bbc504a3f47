from __future__ import annotations

from typing import ClassVar, Self

from domain.decision import Action, Queue
from domain.loadbalancers.constants import READY_SINCE_ANNOTATION
from domain.loadbalancers.fleet_silence import Fleet
from domain.loadbalancers.machine_health import Timings
from domain.loadbalancers.object_world import ObjectWorld
from domain.loadbalancers.resources import LoadBalancerMachine, LoadBalancerSet
from domain.model import Model
from domain.notices import normal
from domain.writes import JsonPatch


class SetWorld(ObjectWorld):
    about: ClassVar[str] = "machine_set"

    machine_set: LoadBalancerSet = LoadBalancerSet()
    machines: tuple[LoadBalancerMachine, ...] = ()  # its machines (`selectors.machines_of`), oldest first
    taken: frozenset[str] = frozenset()  # names of machines that do not, or no longer, belong to the set
    fleet: Fleet | None = None  # counts of all machines of the installation; None until requested
    timings: Timings = Timings()
    noted: bool = False  # this pass has recorded when all machines became ready (`set_status.readiness_patch`)

    def written(self, patch: JsonPatch, resource_version: str, *, gone: bool = False) -> Self:
        world = super().written(patch, resource_version, gone=gone)
        return world.model_copy(update={"noted": self.noted or READY_SINCE_ANNOTATION in str(patch)})

    def with_machine(self, name: str, machine: LoadBalancerMachine | None) -> Self:
        others = [each for each in self.machines if each.metadata.name != name]
        if len(others) == len(self.machines):
            return self.model_copy(update={"machines": (*others, *([machine] if machine else []))})
        remaining = (machine if each.metadata.name == name else each for each in self.machines)
        return self.model_copy(update={"machines": tuple(each for each in remaining if each)})


class FoundMachine(Model):
    machine: LoadBalancerMachine | None = None


class _MachineAction(Action):
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    result: ClassVar[type[Model] | None] = FoundMachine
    slot_by: ClassVar[str] = "name"

    machine_set: LoadBalancerSet
    name: str

    def fold(self, world: SetWorld, result: Model | None) -> SetWorld:  # type: ignore[override]
        assert isinstance(result, FoundMachine)  # noqa: S101 - the activity's type
        return world.with_machine(self.name, result.machine)


class CreateMachine(_MachineAction):
    """Create the machine, or find the machine that an earlier attempt created.

    If a person removed that machine from the set by changing its labels, its name stays taken, and the set still lacks
    a machine.
    """

    activity: ClassVar[str] = "loadbalancers.create_machine"
    title: ClassVar[str] = "create LoadBalancerMachine {name}"

    def fold(self, world: SetWorld, result: Model | None) -> SetWorld:  # type: ignore[override]
        found = super().fold(world, result)
        known = any(each.metadata.name == self.name for each in found.machines)
        return found if known else found.model_copy(update={"taken": found.taken | {self.name}})


class PatchMachine(_MachineAction):
    """Patch a machine and its status; either patch may be empty.

    A status patch replaces the whole list of conditions, which the agent writes as well. So the patch succeeds only if
    the machine's resourceVersion is `version`.
    """

    activity: ClassVar[str] = "loadbalancers.patch_machine"
    title: ClassVar[str] = "patch LoadBalancerMachine {name}"

    patch: JsonPatch = {}
    status: JsonPatch = {}
    version: str = ""


class DeleteMachine(_MachineAction):
    activity: ClassVar[str] = "loadbalancers.delete_machine"
    title: ClassVar[str] = "delete LoadBalancerMachine {name}"

    def fold(self, world: SetWorld, result: Model | None) -> SetWorld:  # type: ignore[override]
        return super().fold(world, result).with_news(normal("Deleted", f"Deleted loadBalancerMachine {self.name}"))
