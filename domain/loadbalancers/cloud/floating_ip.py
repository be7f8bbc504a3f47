"""The floating IP of an external LoadBalancer: one that Perdure created, or one that the user already has.

A recorded floating IP counts as gone only after a 404 (`activities/openstack/observation.py`). The user's floating IP
is never created, deleted, or taken from another port. A released address is lost for good, so Perdure deletes only
floating IPs whose description is the LoadBalancer's name.
"""

from __future__ import annotations

from domain.loadbalancers.cloud.objects import CloudPort, FloatingIp, LoadBalancerCloud
from domain.loadbalancers.cloud.ownership import Selection, select
from domain.loadbalancers.cloud.parts import Part, address_of, keeps, owner_of
from domain.loadbalancers.cloud.steps import CreateFloatingIp, DeleteFloatingIp, UpdateFloatingIp
from domain.loadbalancers.constants import KEEP_FLOATING_IP_ANNOTATION
from domain.loadbalancers.ip_addresses import same_address
from domain.loadbalancers.names import cloud_name
from domain.loadbalancers.resources import LoadBalancer
from domain.notices import warning

_USER_MANAGED = " (user managed)"


def plan_floating_ip(balancer: LoadBalancer, cloud: LoadBalancerCloud, port: CloudPort | None) -> Part:
    if balancer.internal:
        return _none(balancer, cloud, port)
    if balancer.spec.existing_floating_ip:
        return _users(balancer, cloud, port, balancer.spec.existing_floating_ip)
    if port is None:
        return Part()
    name, found = cloud_name(balancer.metadata), floating_ips_of(balancer, cloud, port)
    if found.selected is not None:
        return _leading_to(port, found.selected, name)
    gone = balancer.status.floating_id
    notices = [warning("Failed", f"floating IP {gone} does not exist any more: another one is created")] if gone else []
    # A detached floating IP with our description was left by a deleted LoadBalancer of the same name, or belongs to
    # another cluster. To use its address, a person sets existingFloatingIP to the address.
    notices += [
        warning(
            "Failed",
            f"floating IP {each.address} has the description {name}, but may have another owner: it is not used",
        )
        for each in found.strangers
        if not each.port_id
    ]
    network = balancer.spec.infrastructure.floating_net
    return Part(
        steps=(CreateFloatingIp(description=name, network_id=network, port_id=port.id),), notices=tuple(notices)
    )


def floating_ips_of(balancer: LoadBalancer, cloud: LoadBalancerCloud, port: CloudPort | None) -> Selection[FloatingIp]:
    """The floating IPs with this LoadBalancer's name or recorded id, split into own and foreign.

    The recorded floating IP is own. Of the others, those at `port` are own, and those at another port are foreign.
    Detached ones follow the rules of `ownership.py`.
    """
    recorded = balancer.status.floating_id or ""
    named = (each for each in cloud.floating_ips if _described(balancer, each) or each.id == recorded)

    def mark(each: FloatingIp) -> str:
        leads_to_us = port is not None and each.port_id == port.id
        return balancer.metadata.uid if leads_to_us else each.port_id

    return select(named, owner_of(balancer, recorded, balancer.status.floating_name), mark)


def deleted_floating_ips(
    balancer: LoadBalancer, cloud: LoadBalancerCloud, port: CloudPort | None
) -> tuple[DeleteFloatingIp, ...]:
    users = balancer.spec.existing_floating_ip
    ours = (each for each in floating_ips_of(balancer, cloud, port).ours if _described(balancer, each))
    return tuple(DeleteFloatingIp(id=each.id) for each in ours if not (users and same_address(each.address, users)))


def _described(balancer: LoadBalancer, floating: FloatingIp) -> bool:
    return floating.description == cloud_name(balancer.metadata)


def _leading_to(port: CloudPort, floating: FloatingIp, name: str, description: str | None = None) -> Part:
    target = None if floating.port_id == port.id else port.id
    step = UpdateFloatingIp(floating_ip_id=floating.id, port_id=target, description=description)
    found = {"floating_id": floating.id, "floating_name": name, "external_ip": floating.address}
    return Part(
        steps=(step,) if target is not None or description is not None else (),
        # Until the floating IP is attached to the port, no client can use its address.
        status=found if target is None else {},
    )


def _users(balancer: LoadBalancer, cloud: LoadBalancerCloud, port: CloudPort | None, address: str) -> Part:
    name = cloud_name(balancer.metadata)
    held = next((each for each in cloud.floating_ips if each.id == balancer.status.floating_id), None)
    if port is not None and held is not None and not same_address(held.address, address):
        # As in yawol the recorded floating IP stays: clients use it, and Neutron refuses a second one for the port.
        why = f"the address is {held.address} and cannot be changed to {address}: create another LoadBalancer"
        return _leading_to(port, held, name).model_copy(update={"notices": (warning("Failed", why),)})
    floating = next((each for each in cloud.floating_ips if same_address(each.address, address)), None)
    if floating is None:
        return Part(problem=f"there is no floating IP {address} in the project: create it or correct the address")
    if port is None:
        return Part()
    if floating.port_id not in ("", port.id):
        return Part(problem=f"floating IP {address} already belongs to port {floating.port_id}: detach it there")
    # The description must differ from those of our own floating IPs, which are deleted with the load balancer.
    description = f"{name}{_USER_MANAGED}" if floating.description == name else None
    return _leading_to(port, floating, name, description)


def _none(balancer: LoadBalancer, cloud: LoadBalancerCloud, port: CloudPort | None) -> Part:
    """The steps for an internal LoadBalancer, which needs no floating IP: delete Perdure's floating IP, detach any
    other.
    """
    retained = keeps(balancer, KEEP_FLOATING_IP_ANNOTATION)
    deleted = () if retained else deleted_floating_ips(balancer, cloud, port)
    going = {step.id for step in deleted}
    detached = tuple(
        UpdateFloatingIp(floating_ip_id=each.id, port_id="")
        for each in cloud.floating_ips
        if port is not None and each.port_id == port.id and each.id not in going
    )
    steps = (*deleted, *detached)
    # The recorded id may be the only way to find the floating IP, so the id is cleared only after the last step.
    forgotten = {} if steps else {"floating_id": None, "floating_name": None}
    return Part(steps=steps, status={**forgotten, "external_ip": address_of(balancer, port)})
