"""InterruptionPolicy, and the fields of Cluster API's objects that Perdure reads or writes."""

from domain.instances.resources.aws_machine import AWSMachine, AWSMachineSpec
from domain.instances.resources.aws_machine_pool import AWSMachinePool, AWSMachinePoolSpec
from domain.instances.resources.interruption_policy import InterruptionPolicy
from domain.instances.resources.machine import Machine, MachineSpec, MachineStatus, NodeReference
from domain.instances.resources.machine_deployment import MachineDeployment, MachineSet
from domain.instances.resources.node import Node

__all__ = [
    "AWSMachine",
    "AWSMachinePool",
    "AWSMachinePoolSpec",
    "AWSMachineSpec",
    "InterruptionPolicy",
    "Machine",
    "MachineDeployment",
    "MachineSet",
    "MachineSpec",
    "MachineStatus",
    "Node",
    "NodeReference",
]
