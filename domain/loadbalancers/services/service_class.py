"""Which Services an installation serves: by class, from the annotation `className` or `spec.loadBalancerClass`.

Kubernetes clears `spec.loadBalancerClass` when a Service gets another type. Then only the annotation shows which
installation's finalizer the Service has. Without the annotation, every installation removes the finalizer.
"""

from __future__ import annotations

from domain.loadbalancers.constants import DEFAULT_CLASS, GROUP
from domain.loadbalancers.services.objects import LOAD_BALANCER_TYPE, Installation, Service


def serves(installation: Installation, service: Service) -> bool:
    wanted = _class_of(service)
    if not wanted:
        return installation.unclassed or "" in installation.classes
    return wanted in (installation.classes or (DEFAULT_CLASS,))


def wants_balancer(installation: Installation, service: Service) -> bool:
    of_type = service.spec.type == LOAD_BALANCER_TYPE
    return of_type and serves(installation, service) and not service.metadata.deleting


def concerns(installation: Installation, service: Service) -> bool:
    return wants_balancer(installation, service) or (service.held and drops_finalizer(installation, service))


def drops_finalizer(installation: Installation, service: Service) -> bool:
    unclassed = service.spec.type != LOAD_BALANCER_TYPE and not _class_of(service)
    return unclassed or installation.release_foreign or serves(installation, service)


def _class_of(service: Service) -> str:
    return service.metadata.annotations.get(f"{GROUP}/className", "") or service.spec.load_balancer_class or ""
