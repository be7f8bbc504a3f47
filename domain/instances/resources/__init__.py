"""The objects of Cluster API and its AWS provider, with the fields that Perdure reads or writes and no others."""

from domain.instances.resources.aws_machine import AWSMachine, AWSMachineSpec, AWSMachineStatus
from domain.instances.resources.aws_machine_pool import AWSMachinePool, AWSMachinePoolSpec, LifecycleHook
from domain.instances.resources.machine import Machine, MachineSpec, MachineStatus, NodeReference

__all__ = [
    "AWSMachine",
    "AWSMachinePool",
    "AWSMachinePoolSpec",
    "AWSMachineSpec",
    "AWSMachineStatus",
    "LifecycleHook",
    "Machine",
    "MachineSpec",
    "MachineStatus",
    "NodeReference",
]
