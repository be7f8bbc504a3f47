"""Creates what a load balancer's project needs: an image, flavors, networks. Runs once at every `up`.

Networks have loopback addresses (Neutron accepts them without DHCP), so processes can listen on floating IPs. Objects
that are found by name stay unchanged.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import openstack

from . import environment
from .front import PREPARATION

IMAGE = "loadbalancer"
FLAVORS = (("m1.tiny", 64, 1, 1), ("m1.small", 512, 2, 5))
EXTERNAL = "external"
TENANT = "tenant"
ROUTER = "router"


def main() -> None:
    cloud: Any = openstack.connect(cloud=os.environ["PERDURE_OPENSTACK_ADMIN"], app_name=PREPARATION)
    if cloud.image.find_image(IMAGE) is None:
        cloud.image.create_image(
            name=IMAGE,
            disk_format="raw",
            container_format="bare",
            visibility="public",
            data=b"\0" * 512,
            min_disk=0,
            min_ram=0,
        )
    for name, ram, vcpus, disk in FLAVORS:
        if cloud.compute.find_flavor(name) is None:
            cloud.compute.create_flavor(name=name, ram=ram, vcpus=vcpus, disk=disk)
    external = _ensure_external(cloud, os.environ["PERDURE_OPENSTACK_EXTERNAL"])
    for project in (os.environ["PERDURE_OPENSTACK_PROJECT"], "admin"):
        project_id = cloud.identity.find_project(project, ignore_missing=False).id
        tenant = _ensure_tenant(cloud, project_id, os.environ["PERDURE_OPENSTACK_TENANT"], external.id)
        if project == os.environ["PERDURE_OPENSTACK_PROJECT"]:
            _settle(external.id, tenant.id)


def _ensure_external(cloud: Any, cidr: str) -> Any:
    network = cloud.network.find_network(EXTERNAL) or cloud.network.create_network(
        name=EXTERNAL,
        is_router_external=True,
        provider_network_type="flat",
        provider_physical_network=EXTERNAL,
        is_shared=False,
    )
    if cloud.network.find_subnet(EXTERNAL, network_id=network.id) is None:
        cloud.network.create_subnet(
            name=EXTERNAL, network_id=network.id, ip_version=4, cidr=cidr, is_dhcp_enabled=False
        )
    return network


def _settle(external_id: str, tenant_id: str) -> None:
    settings = {
        "FLOATING_NET_ID": external_id,
        "NETWORK_ID": tenant_id,
        "FLAVOR_NAME": FLAVORS[0][0],
        "IMAGE_NAME": IMAGE,
    }
    lines = [f"{name}={value}\n" for name, value in settings.items()]
    path = Path(environment.HOME) / "project.env"
    path.with_suffix(".new").write_text("".join(lines))
    path.with_suffix(".new").replace(path)


def _ensure_tenant(cloud: Any, project_id: str, cidr: str, external_id: str) -> Any:
    owned = {"project_id": project_id}
    network = cloud.network.find_network(TENANT, **owned) or cloud.network.create_network(name=TENANT, **owned)
    subnet = cloud.network.find_subnet(TENANT, network_id=network.id) or cloud.network.create_subnet(
        name=TENANT, network_id=network.id, ip_version=4, cidr=cidr, is_dhcp_enabled=False, **owned
    )
    router = cloud.network.find_router(ROUTER, **owned) or cloud.network.create_router(
        name=ROUTER, external_gateway_info={"network_id": external_id}, **owned
    )
    attached = cloud.network.ports(device_id=router.id, device_owner="network:router_interface")
    if not any(attached):
        cloud.network.add_interface_to_router(router, subnet_id=subnet.id)
    return network


if __name__ == "__main__":
    main()
