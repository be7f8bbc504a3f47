"""Every call to OpenStack that the code makes, and why. A project's policy must allow these calls.

`deploy/iam/openstack.md` is rendered from this table. Calls are named as in the metric `yawol_openstack`. The rules are
those of OpenStack 2026.2 (`nova.policies`, `neutron.conf.policies`, `glance.policies`), with their default roles: the
project's `member` for changes, `reader` for the rest. On a network that another project owns and shares, a member may
by default neither choose ports' addresses nor set `allowed_address_pairs`; machines need the latter.
"""

from __future__ import annotations

from domain.model import Model


class Permission(Model):
    """If `rules` is empty, every user with a token may make the call."""

    api: str
    object: str
    operation: str
    request: str
    rules: tuple[str, ...]
    why: str

    @property
    def role(self) -> str:
        if not self.rules:
            return "any"
        return "reader" if self.operation in ("list", "get") else "member"


def _neutron(object_: str, operation: str, request: str, rules: str, why: str) -> Permission:
    return Permission(
        api="neutron", object=object_, operation=operation, request=request, rules=tuple(rules.split()), why=why
    )


def _nova(object_: str, operation: str, request: str, rules: str, why: str) -> Permission:
    named = tuple(f"os_compute_api:{rule}" for rule in rules.split())
    return Permission(api="nova", object=object_, operation=operation, request=request, rules=named, why=why)


_GROUPS = "/v2.0/security-groups"
_RULES = "/v2.0/security-group-rules"
_ADDRESSES = "allowed_address_pairs"

PERMISSIONS = (
    _neutron(
        "group",
        "list",
        f"GET {_GROUPS}",
        "get_security_group",
        "find a load balancer's security group; compare security groups in the sweep",
    ),
    _neutron(
        "group", "get", f"GET {_GROUPS}/ID", "get_security_group", "read the recorded security group and its rules"
    ),
    _neutron(
        "group",
        "create",
        f"POST {_GROUPS}",
        "create_security_group",
        "create one security group for each load balancer",
    ),
    _neutron(
        "group",
        "delete",
        f"DELETE {_GROUPS}/ID",
        "delete_security_group",
        "delete a security group with its load balancer",
    ),
    _neutron("rule", "create", f"POST {_RULES}", "create_security_group_rule", "allow clients, and VRRP"),
    _neutron("rule", "delete", f"DELETE {_RULES}/ID", "delete_security_group_rule", "delete unwanted rules"),
    _neutron(
        "port",
        "list",
        "GET /v2.0/ports",
        "get_port",
        "find the ports of a load balancer, a machine or a security group; compare ports in the sweep",
    ),
    _neutron("port", "get", "GET /v2.0/ports/ID", "get_port", "read the recorded port"),
    _neutron(
        "port",
        "create",
        "POST /v2.0/ports",
        f"create_port create_port:fixed_ips:subnet_id create_port:{_ADDRESSES}:ip_address",
        "create a port for the virtual address, and one for each machine",
    ),
    _neutron(
        "port",
        "update",
        "PUT /v2.0/ports/ID",
        f"update_port update_port:{_ADDRESSES}:ip_address",
        "set ports' security groups and allowed addresses; remove a group from its ports before deleting the group",
    ),
    _neutron(
        "port", "delete", "DELETE /v2.0/ports/ID", "delete_port", "delete a port with its load balancer or machine"
    ),
    _neutron(
        "floatingip", "list", "GET /v2.0/floatingips", "get_floatingip", "find floating IPs; compare them in the sweep"
    ),
    _neutron("floatingip", "get", "GET /v2.0/floatingips/ID", "get_floatingip", "read the recorded floating IP"),
    _neutron("floatingip", "create", "POST /v2.0/floatingips", "create_floatingip", "create the address for clients"),
    _neutron("floatingip", "update", "PUT /v2.0/floatingips/ID", "update_floatingip", "attach or detach a floating IP"),
    _neutron(
        "floatingip",
        "delete",
        "DELETE /v2.0/floatingips/ID",
        "delete_floatingip",
        "delete a floating IP with its load balancer",
    ),
    _nova(
        "server",
        "list",
        "GET /servers/detail",
        "servers:detail",
        "find a machine's server; compare servers in the sweep",
    ),
    _nova("server", "get", "GET /servers/ID", "servers:show", "wait until a server runs, or is gone"),
    _nova("server", "create", "POST /servers", "servers:create servers:create:attach_network", "create the machines"),
    _nova("server", "delete", "DELETE /servers/ID", "servers:delete", "delete the server of a deleted machine"),
    _nova(
        "servergroup",
        "list",
        "GET /os-server-groups",
        "os-server-groups:index",
        "find a load balancer's server group; compare server groups in the sweep",
    ),
    _nova(
        "servergroup", "create", "POST /os-server-groups", "os-server-groups:create", "spread machines, if requested"
    ),
    _nova(
        "servergroup",
        "delete",
        "DELETE /os-server-groups/ID",
        "os-server-groups:delete",
        "delete a server group with its load balancer",
    ),
    _nova("flavor", "list", "GET /flavors", "", "find a flavor that is given by name"),
    Permission(
        api="glance",
        object="image",
        operation="list",
        request="GET /v2/images",
        rules=("get_images",),
        why="find an image that is given by name",
    ),
)
