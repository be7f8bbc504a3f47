"""The area's custom resources with all of yawol's fields, including deprecated names.

Reading is tolerant: durations and times stay text. Where yawol distinguishes an absent field from an empty one, an
absent field is None.
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
