"""One of a LoadBalancer's objects in the cloud: what to do for it now, and what the status says of it."""

from __future__ import annotations

from domain.loadbalancers.cloud.ownership import Owner
from domain.loadbalancers.cloud.steps import Step
from domain.loadbalancers.resources import LoadBalancer
from domain.model import Model
from domain.notices import Notice


class Part(Model):
    """Steps, fields of the status by their Python names, what a person is told, and what only a person can mend."""

    steps: tuple[Step, ...] = ()
    status: dict[str, object] = {}
    notices: tuple[Notice, ...] = ()
    problem: str = ""


def owner_of(balancer: LoadBalancer, recorded: str | None, name: str | None) -> Owner:
    """The LoadBalancer as the owner of objects of which its status has this id and this name."""
    return Owner(uid=balancer.metadata.uid, recorded=recorded or "", inherited=bool(name) and not recorded)


def contested(what: str, name: str) -> Part:
    """Somebody else has an object of the name."""
    return Part(
        problem=f"a {what} named {name} exists that is not ours: rename or delete it, or record its id in the status"
    )
