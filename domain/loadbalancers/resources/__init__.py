"""The custom resources of the area, field for field as yawol's, its deprecated names included.

One file per kind; `infrastructure.py` and `shared.py` have what several of them say. Reading is tolerant: durations and
moments are the texts that were written. What is absent is None where yawol tells it from what is empty.
"""

from domain.loadbalancers.resources.infrastructure import (
    AdditionalNetwork,
    CredentialsReference,
    Flavor,
    Image,
    Infrastructure,
    Network,
)
from domain.loadbalancers.resources.load_balancer import (
    DebugSettings,
    Endpoint,
    LoadBalancer,
    LoadBalancerOptions,
    LoadBalancerSpec,
    LoadBalancerStatus,
    LogForward,
    Port,
)
from domain.loadbalancers.resources.load_balancer_machine import (
    LoadBalancerMachine,
    LoadBalancerReference,
    MachineCondition,
    MachineSpec,
    MachineStatus,
    Metric,
)
from domain.loadbalancers.resources.load_balancer_set import (
    HAS_MASTER,
    LoadBalancerSet,
    MachineTemplate,
    SetCondition,
    SetSpec,
    SetStatus,
)
from domain.loadbalancers.resources.shared import Expression, Selector

__all__ = [
    "HAS_MASTER",
    "AdditionalNetwork",
    "CredentialsReference",
    "DebugSettings",
    "Endpoint",
    "Expression",
    "Flavor",
    "Image",
    "Infrastructure",
    "LoadBalancer",
    "LoadBalancerMachine",
    "LoadBalancerOptions",
    "LoadBalancerReference",
    "LoadBalancerSet",
    "LoadBalancerSpec",
    "LoadBalancerStatus",
    "LogForward",
    "MachineCondition",
    "MachineSpec",
    "MachineStatus",
    "MachineTemplate",
    "Metric",
    "Network",
    "Port",
    "Selector",
    "SetCondition",
    "SetSpec",
    "SetStatus",
]
