"""Creates load balancers' cloud objects without the product: `python loadbalancers_bare.py`, with JSON on its input.

The script runs in OpenStack's environment, which has openstacksdk.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

AT_ONCE = 8
LOOK_SECONDS = 0.5
BULK = 50
# As long as real user data, which Nova stores.
USER_DATA = base64.b64encode(b"#cloud-config\n" + b"#" * 6_000).decode()
COPIED = {
    "nova": ("instances", "instance_extra", "instance_info_caches", "instance_system_metadata"),
    "nova_api": ("instance_mappings", "request_specs"),
}

Request = Mapping[str, Any]
Json = dict[str, Any]


def main() -> None:
    import openstack

    request: Request = json.load(sys.stdin)
    cloud: Any = openstack.connect(cloud=os.environ["OS_CLOUD"])
    cloud.network.get("/")  # discovers the API before timing starts
    print(json.dumps({"whole": whole, "networks": networks, "servers": servers}[request["what"]](cloud, request)))


def whole(cloud: Any, request: Request) -> Json:
    make_server = builder(cloud, request)

    def one(name: str) -> Json:
        path = f"{request['namespace']}/{name}"
        group = cloud.network.create_security_group(name=path)
        cloud.network.create_security_group_rules(rules(group.id, path))
        port = cloud.network.create_port(name=path, network_id=request["network"], security_groups=[group.id])
        made = shown(name, group.id, port, floating_ip(cloud, request, path, port.id))
        wanted = machine_port(request, f"{path}-machine", group.id, made["address"])
        own = cloud.network.create_port(**wanted)
        server = make_server(f"{name}-machine", own.id)
        return {**made, "machines": [shown_machine(own, server.id)]}

    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        made = list(threads.map(one, request["names"]))
    await_active(cloud, {machine["server"] for each in made for machine in each["machines"]})
    return {"seconds": time.monotonic() - began, "made": made}


def networks(cloud: Any, request: Request) -> Json:
    paths = [f"{request['namespace']}/{name}" for name in request["names"]]
    groups = bulk(cloud, "security-groups", "security_groups", [{"name": path} for path in paths])
    wanted = [
        {"name": path, "network_id": request["network"], "security_groups": [group["id"]]}
        for group, path in zip(groups, paths, strict=True)
    ]
    ports = made_ports(cloud, wanted)

    def rest(group: Json, port: Any) -> Any:
        cloud.network.create_security_group_rules(rules(group["id"], port.name))  # one group per request
        return floating_ip(cloud, request, port.name, port.id)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        floating = list(threads.map(rest, groups, ports))
    rows = zip(request["names"], groups, ports, floating, strict=True)
    return {"made": [{**shown(name, group["id"], port, ip), "machines": []} for name, group, port, ip in rows]}


def servers(cloud: Any, request: Request) -> Json:
    wanted = [
        machine_port(request, f"{request['namespace']}/{each['name']}", each["group"], each["address"])
        for each in request["machines"]
    ]
    ports = made_ports(cloud, wanted)
    names = [each["name"] for each in request["machines"]]
    first = builder(cloud, request)(names[0], ports[0].id).id
    await_active(cloud, {first})
    ids = [first, *(str(uuid.uuid4()) for _ in names[1:])]
    copy_server(first, dict(zip(ids[1:], names[1:], strict=True)))
    return {"machines": [shown_machine(port, id_) for port, id_ in zip(ports, ids, strict=True)]}


# --- Neutron and Nova ---


def bulk(cloud: Any, path: str, plural: str, wanted: Sequence[Json]) -> list[Json]:
    made: list[Json] = []
    for some in in_parts(wanted):
        answer = cloud.network.post(f"/{path}", json={plural: some})
        answer.raise_for_status()
        made += answer.json()[plural]
    found = {each["name"]: each for each in made}
    return [found[each["name"]] for each in wanted]


def made_ports(cloud: Any, wanted: Sequence[Json]) -> list[Any]:
    found = {port.name: port for some in in_parts(wanted) for port in cloud.network.create_ports(some)}
    return [found[each["name"]] for each in wanted]


def floating_ip(cloud: Any, request: Request, path: str, port: str) -> Any:
    return cloud.network.create_ip(floating_network_id=request["floating_network"], description=path, port_id=port)


def machine_port(request: Request, path: str, group: str, address: str) -> Json:
    return {
        "name": path,
        "network_id": request["network"],
        "security_groups": [group],
        "allowed_address_pairs": [{"ip_address": address}],
    }


def builder(cloud: Any, request: Request) -> Any:
    flavor, image = cloud.compute.find_flavor(request["flavor"]).id, cloud.image.find_image(request["image"]).id

    def make(name: str, port: str) -> Any:
        nics = [{"uuid": request["network"], "port": port}]
        return cloud.compute.create_server(
            name=name, flavor_id=flavor, image_id=image, user_data=USER_DATA, networks=nics
        )

    return make


def await_active(cloud: Any, wanted: set[str]) -> None:
    while not wanted <= {each.id for each in cloud.compute.servers(status="ACTIVE")}:
        time.sleep(LOOK_SECONDS)


def rules(group: str, path: str) -> list[Json]:
    found: list[Json] = []
    for ethertype, icmp, anywhere in (("IPv4", "icmp", "0.0.0.0/0"), ("IPv6", "ipv6-icmp", "::/0")):
        both: Json = {
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


# --- Nova's database ---


def copy_server(first: str, names: Mapping[str, str]) -> None:
    import pymysql

    connection = pymysql.connect(unix_socket=os.environ["PERDURE_OPENSTACK_DATABASE"], user="root")
    with connection, connection.cursor() as cursor:
        for database, tables in COPIED.items():
            for table in tables:
                copy_rows(cursor, f"{database}.{table}", first, names)
        connection.commit()


def copy_rows(cursor: Any, table: str, first: str, names: Mapping[str, str]) -> None:
    identity = "uuid" if table.endswith(".instances") else "instance_uuid"
    cursor.execute(f"SELECT * FROM {table} WHERE {identity} = %s", (first,))  # noqa: S608 - a name of ours
    columns = [column[0] for column in cursor.description]
    rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    copies = [{**row, **renamed(row, identity, id_, name)} for id_, name in names.items() for row in rows]
    copied = [column for column in columns if column != "id"]
    quoted, places = ", ".join(f"`{column}`" for column in copied), ", ".join(["%s"] * len(copied))
    statement = f"INSERT INTO {table} ({quoted}) VALUES ({places})"  # noqa: S608
    cursor.executemany(statement, [tuple(copy[column] for column in copied) for copy in copies])


def renamed(row: Json, identity: str, id_: str, name: str) -> Json:
    return {identity: id_, **({"display_name": name, "hostname": name[:63]} if "hostname" in row else {})}


# --- answers ---


def shown(name: str, group: str, port: Any, floating: Any) -> Json:
    return {
        "name": name,
        "group": group,
        "port": port.id,
        "address": port.fixed_ips[0]["ip_address"],
        "floating": floating.id,
        "external": floating.floating_ip_address,
    }


def shown_machine(own: Any, server: str) -> Json:
    return {"own": own.id, "own_address": own.fixed_ips[0]["ip_address"], "server": server}


def in_parts(wanted: Iterable[Any]) -> Iterator[list[Any]]:
    every = list(wanted)
    for start in range(0, len(every), BULK):
        yield every[start : start + BULK]


if __name__ == "__main__":
    main()
