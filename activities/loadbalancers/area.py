"""The area's activities over one set of clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from activities.loadbalancers.balancers import LoadBalancerActivities
from activities.loadbalancers.ground import Ground
from activities.loadbalancers.machines import MachineActivities
from activities.loadbalancers.sets import SetActivities
from activities.loadbalancers.sweeps import SweepActivities
from activities.openstack.projects import Projects
from engine.kube import BlockingKube, KubeApi
from engine.settings import Settings

ACTIVITIES = (LoadBalancerActivities, SetActivities, MachineActivities, SweepActivities)


def activities(
    settings: Settings, kube: KubeApi, blocking: BlockingKube, projects: Projects
) -> Sequence[Callable[..., object]]:
    """Every activity, for the worker."""
    ground = Ground(kube, blocking, projects, settings)
    return [method for each in ACTIVITIES for method in each(ground).all()]
