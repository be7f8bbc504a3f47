"""MachineDeployment and MachineSet: they replace a Machine, and show whether replicas may be changed."""

from __future__ import annotations

from typing import ClassVar

from domain.identity import Kind
from domain.instances import MACHINE_DEPLOYMENT, MACHINE_SET
from domain.instances.resources.machine import HeldObject, HeldStatus
from domain.resource import CustomResource, KubeModel


class MachineDeploymentSpec(KubeModel):
    """The desired number of Machines."""

    replicas: int | None = None
    paused: bool = False


class MachineDeploymentStatus(HeldStatus):
    """Counts of Machines."""

    replicas: int = 0
    updated_replicas: int = 0  # made from the current template


class MachineDeployment(HeldObject):
    """Machines made from one template, through MachineSets of its own."""

    kind_of: ClassVar[Kind] = MACHINE_DEPLOYMENT

    spec: MachineDeploymentSpec = MachineDeploymentSpec()
    status: MachineDeploymentStatus = MachineDeploymentStatus()

    @property
    def paused(self) -> bool:
        return self.spec.paused or super().paused


class MachineSet(CustomResource):
    """Machines of one revision of a template; read only to find their owner."""

    kind_of: ClassVar[Kind] = MACHINE_SET
