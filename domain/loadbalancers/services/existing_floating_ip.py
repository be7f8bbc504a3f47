"""The annotation `existingFloatingIP`: the user's floating IP as the address (`cloud/floating_ip.py` attaches it).

While the annotation is unreadable, no LoadBalancer is created. After the creation, a changed annotation takes effect in
two cases: the Service has the new address already; or the Service has no address, and the floating IP requested before
does not work yet. If the Service has only other addresses, the change is ignored with a warning.
"""

from __future__ import annotations

from domain.loadbalancers.constants import GROUP
from domain.loadbalancers.ip_addresses import ip_version, same_address
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.services.objects import Service
from domain.notices import Notice, warning


def read_address(requested: str) -> tuple[str | None, str]:
    """The address, or why it is unreadable."""
    if not requested or ip_version(requested):
        return requested or None, ""
    return None, f"annotation {GROUP}/existingFloatingIP: {requested!r} is not an IP address such as 203.0.113.7"


def creation_problem(unreadable: str) -> str:
    # A LoadBalancer that is created without the address would keep another address for good.
    return (
        f"validation failed: {unreadable}. No load balancer is created until the annotation is corrected."
        if unreadable
        else ""
    )


def ignored(unreadable: str) -> tuple[Notice, ...]:
    return (warning("update", f"Could not read {unreadable}. Ignoring it."),) if unreadable else ()


def address_to_store(
    service: Service, balancer: LoadBalancer, requested: str | None
) -> tuple[str | None, tuple[Notice, ...]]:
    stored = balancer.spec.existing_floating_ip
    if requested is None or requested == stored:
        return stored, ()
    addresses = [ingress.ip for ingress in service.ingress if ingress.ip]
    if addresses and not any(same_address(requested, address) for address in addresses):
        return stored, (warning("Failed", "adding a different ExistingFloatingIP is not supported after LB creation"),)
    missing = stored and not balancer.status.external_ip
    return (requested, ()) if addresses or missing else (stored, ())
