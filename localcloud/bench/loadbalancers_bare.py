"""The cloud objects of some load balancers, made by a bare script: what the control plane itself needs for them.

    python loadbalancers_bare.py COUNT FLAVOR IMAGE FLOATING_NETWORK NETWORK NAMESPACE

Runs in OpenStack's own environment, which has openstacksdk, and knows nothing of the product. For each load balancer:
a security group, its rules in one call, the port with the virtual address, a floating IP on it, a machine's port and a
server, which waits for nothing but what it needs. So many at once as the APIs have threads. It ends when every server
runs, and prints the seconds since its first call and what it has made, as JSON. Names are as yawol gives them: another
row has these objects taken over.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

AT_ONCE = 8
LOOK_SECONDS = 0.5
# As long as a machine's real user data, which Nova keeps.
USER_DATA = base64.b64encode(b"#cloud-config\n" + b"#" * 6_000).decode()


def main() -> None:
    """Make them."""
    import openstack

    count, flavor, image, floating_network, network, namespace = sys.argv[1:]
    cloud: Any = openstack.connect(cloud=os.environ["OS_CLOUD"])
    flavor_id, image_id = cloud.compute.find_flavor(flavor).id, cloud.image.find_image(image).id
    cloud.network.get("/")  # finds the API before the clock runs

    def one(name: str) -> dict[str, str]:
        path = f"{namespace}/{name}"
        group = cloud.network.create_security_group(name=path)
        cloud.network.create_security_group_rules(rules(group.id, path))
        port = cloud.network.create_port(name=path, network_id=network, security_groups=[group.id])
        address = port.fixed_ips[0]["ip_address"]
        floating = cloud.network.create_ip(floating_network_id=floating_network, description=path, port_id=port.id)
        own = cloud.network.create_port(
            name=f"{path}-machine",
            network_id=network,
            security_groups=[group.id],
            allowed_address_pairs=[{"ip_address": address}],
        )
        server = cloud.compute.create_server(
            name=f"{name}-machine",
            flavor_id=flavor_id,
            image_id=image_id,
            user_data=USER_DATA,
            networks=[{"uuid": network, "port": own.id}],
        )
        return {
            "name": name,
            "group": group.id,
            "port": port.id,
            "address": address,
            "floating": floating.id,
            "external": floating.floating_ip_address,
            "own": own.id,
            "own_address": own.fixed_ips[0]["ip_address"],
            "server": server.id,
        }

    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        made = list(threads.map(one, [f"bare-{number}" for number in range(int(count))]))
    wanted = {each["server"] for each in made}
    while not wanted <= {each.id for each in cloud.compute.servers(status="ACTIVE")}:
        time.sleep(LOOK_SECONDS)
    print(json.dumps({"seconds": time.monotonic() - began, "made": made}))


def rules(group: str, path: str) -> list[dict[str, object]]:
    """Those of a load balancer with one port, but for the two that each group is born with."""
    found: list[dict[str, object]] = []
    for ethertype, icmp, anywhere in (("IPv4", "icmp", "0.0.0.0/0"), ("IPv6", "ipv6-icmp", "::/0")):
        both: dict[str, object] = {
            "security_group_id": group,
            "description": path,
            "direction": "ingress",
            "ethertype": ethertype,
        }
        found.append(both | {"protocol": "vrrp", "remote_group_id": group})
        found.append(both | {"protocol": icmp, "port_range_min": 1, "port_range_max": 8})
        tcp = {"protocol": "tcp", "port_range_min": 18080, "port_range_max": 18080, "remote_ip_prefix": anywhere}
        found.append(both | tcp)
    return found


if __name__ == "__main__":
    main()
