"""The objects of Cluster API and its AWS provider, with the fields that Perdure reads or writes and no others."""

from domain.instances.resources.aws_machine import AWSMachine, AWSMachineSpec
from domain.instances.resources.aws_machine_pool import AWSMachinePool, AWSMachinePoolSpec
from domain.instances.resources.machine import Machine, MachineSpec, MachineStatus, NodeReference

__all__ = [
    "AWSMachine",
    "AWSMachinePool",
    "AWSMachinePoolSpec",
    "AWSMachineSpec",
    "Machine",
    "MachineSpec",
    "MachineStatus",
    "NodeReference",
]
