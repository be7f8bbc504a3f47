"""InterruptionPolicy, and the fields of Cluster API's objects that Perdure reads or writes."""

from domain.instances.resources.cluster_api import AWSMachine, AWSMachinePool, Machine, MachineDeployment, MachineSet
from domain.instances.resources.interruption_policy import InterruptionPolicy
from domain.instances.resources.node import Node

__all__ = [
    "AWSMachine",
    "AWSMachinePool",
    "InterruptionPolicy",
    "Machine",
    "MachineDeployment",
    "MachineSet",
    "Node",
]
