"""Observes the cloud objects of one load balancer or machine, or of a whole project.

A LoadBalancer takes 3 calls, and one more call each for server groups, for an existing floating IP, and for the ports
that use a group about to be deleted. A machine takes 2 calls, and a whole project 5.

Lists may lag. So if a list lacks a recorded object of one load balancer or machine, the object is read by its id. Only
this read shows whether the object is gone. Server groups are not read by id. A failed call fails the observation: a
missing answer never counts as absence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from activities.openstack import responses
from activities.openstack.session import Api, Project
from domain.loadbalancers.cloud.deletion import remove_load_balancer
from domain.loadbalancers.cloud.load_balancer import security_groups_of
from domain.loadbalancers.cloud.objects import (
    CloudPort,
    FloatingIp,
    LoadBalancerCloud,
    MachineCloud,
    SecurityGroup,
    Server,
    ServerGroup,
)
from domain.loadbalancers.cloud.steps import DeleteSecurityGroup
from domain.loadbalancers.ip_addresses import same_address
from domain.loadbalancers.names import cloud_name
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from engine.errors import Absent

# The first microversion of Nova with soft policies for server groups.
SERVER_GROUPS = "2.15"
# Nova returns at most its limit (1,000 by default) of server groups, without a link to the next page. So a page with at
# least this many groups may have a successor.
_GROUPS_PER_PAGE = 100


class _Identified(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_Identified)


class ProjectCloud:
    def __init__(
        self,
        *,
        security_groups: Iterable[SecurityGroup] = (),
        ports: Iterable[CloudPort] = (),
        floating_ips: Iterable[FloatingIp] = (),
        servers: Iterable[Server] = (),
        server_groups: Iterable[ServerGroup] = (),
    ) -> None:
        self.security_groups = tuple(security_groups)
        self.ports = tuple(ports)
        self.floating_ips = tuple(floating_ips)
        self.servers = tuple(servers)
        self.server_groups = tuple(server_groups)
        self._groups = _Index(self.security_groups, lambda each: each.name)
        self._ports = _Index(self.ports, lambda each: each.name)
        self._floating_ips = _Index(self.floating_ips, lambda each: each.description)
        self._servers = _Index(self.servers, lambda each: each.name)
        self._server_groups = _Index(self.server_groups, lambda each: each.name)

    def of_load_balancer(self, balancer: LoadBalancer) -> LoadBalancerCloud:
        name, status = cloud_name(balancer.metadata), balancer.status
        users = balancer.spec.existing_floating_ip
        brought = tuple(each for each in self.floating_ips if users and same_address(each.address, users))
        cloud = LoadBalancerCloud(
            security_groups=self._groups.candidates(name, status.group_id),
            ports=self._ports.candidates(name, status.port_id),
            floating_ips=_distinct((*self._floating_ips.candidates(name, status.floating_id), *brought)),
            server_groups=self._server_groups.candidates(name, status.server_group_id)
            if _may_have_server_groups(balancer)
            else (),
        )
        going = {each.id for each in security_groups_of(balancer, cloud).ours} if balancer.metadata.deleting else set()
        in_use = tuple(each for each in self.ports if going & set(each.security_groups)) if going else ()
        return cloud.model_copy(update={"group_users": in_use})

    def of_machine(self, machine: LoadBalancerMachine) -> MachineCloud:
        name, status = cloud_name(machine.metadata), machine.status
        return MachineCloud(
            ports=self._ports.candidates(name, status.default_port_id, status.port_id),
            servers=self._servers.candidates(machine.metadata.name, status.server_id),
            virtual_port=self._ports.by_id.get(machine.spec.port_id),
        )


def observe_project(project: Project) -> ProjectCloud:
    return ProjectCloud(
        security_groups=list_security_groups(project),
        ports=list_ports(project),
        floating_ips=list_floating_ips(project),
        servers=list_servers(project),
        server_groups=list_server_groups(project),
    )


def observe_load_balancer(project: Project, balancer: LoadBalancer) -> LoadBalancerCloud:
    name, status = cloud_name(balancer.metadata), balancer.status
    groups = list_security_groups(project, ("name", name))
    ports = list_ports(project, ("name", name))
    floating = list_floating_ips(project, ("description", name))
    if balancer.spec.existing_floating_ip:
        floating += list_floating_ips(project, ("floating_ip_address", balancer.spec.existing_floating_ip))
    cloud = LoadBalancerCloud(
        security_groups=_with_recorded(groups, status.group_id, lambda id_: get_security_group(project, id_)),
        ports=_with_recorded(ports, status.port_id, lambda id_: get_port(project, id_)),
        floating_ips=_with_recorded(_distinct(floating), status.floating_id, lambda id_: get_floating_ip(project, id_)),
        server_groups=_server_groups_for(project, balancer, name),
    )
    return cloud.model_copy(update={"group_users": _group_users(project, balancer, cloud)})


def observe_security_group(project: Project, balancer: LoadBalancer) -> LoadBalancerCloud:
    name, recorded = cloud_name(balancer.metadata), balancer.status.group_id
    groups = list_security_groups(project, ("name", name))
    found = _with_recorded(groups, recorded, lambda id_: get_security_group(project, id_))
    return LoadBalancerCloud(security_groups=found, groups_only=True)


def observe_machine(project: Project, machine: LoadBalancerMachine) -> MachineCloud:
    name, status, reference = cloud_name(machine.metadata), machine.status, machine.spec.load_balancer_ref
    virtual = f"{reference.namespace}/{reference.name}"
    found = list_ports(project, ("name", name), ("name", virtual))
    ports: tuple[CloudPort, ...] = tuple(each for each in found if each.name == name)
    for recorded in (status.default_port_id, status.port_id):
        ports = _with_recorded(ports, recorded, lambda id_: get_port(project, id_))
    servers = servers_named(project, machine.metadata.name)
    return MachineCloud(
        ports=ports,
        servers=_with_recorded(servers, status.server_id, lambda id_: get_server(project, id_)),
        virtual_port=_virtual_port(project, machine, found),
    )


# --- single objects: None if they do not exist ---


def get_security_group(project: Project, id_: str) -> SecurityGroup | None:
    return _got(project, Api.NEUTRON, "group", "/security-groups", "security_group", id_, responses.security_group)


def get_port(project: Project, id_: str) -> CloudPort | None:
    return _got(project, Api.NEUTRON, "port", "/ports", "port", id_, responses.port)


def get_floating_ip(project: Project, id_: str) -> FloatingIp | None:
    return _got(project, Api.NEUTRON, "floatingip", "/floatingips", "floatingip", id_, responses.floating_ip)


def get_server(project: Project, id_: str) -> Server | None:
    return _got(project, Api.NOVA, "server", "/servers", "server", id_, responses.server)


def _got(
    project: Project, api: Api, kind: str, path: str, singular: str, id_: str, read: Callable[[object], T]
) -> T | None:
    try:
        return read(project.get(api, kind, f"{path}/{id_}", what=id_, holds=singular))
    except Absent:
        return None


# --- lists ---


def servers_named(project: Project, name: str) -> tuple[Server, ...]:
    """The servers of exactly this name. Nova itself treats a name as a pattern."""
    return tuple(each for each in list_servers(project, ("name", name)) if each.name == name)


def list_server_groups(project: Project) -> tuple[ServerGroup, ...]:
    found: list[ServerGroup] = []
    while True:
        listed = project.get(
            Api.NOVA,
            "servergroup",
            "/os-server-groups",
            what="all",
            holds="server_groups",
            operation="list",
            query=(("offset", str(len(found))),) if found else (),
            version=SERVER_GROUPS,
        )
        page = [responses.server_group(each) for each in listed] if isinstance(listed, list) else []
        found += page
        if len(page) < _GROUPS_PER_PAGE:
            return tuple(found)


def list_security_groups(project: Project, *query: tuple[str, str]) -> tuple[SecurityGroup, ...]:
    listed = project.pages(Api.NEUTRON, "group", "/security-groups", "security_groups", query=query)
    return tuple(map(responses.security_group, listed))


def list_ports(project: Project, *query: tuple[str, str]) -> tuple[CloudPort, ...]:
    return tuple(map(responses.port, project.pages(Api.NEUTRON, "port", "/ports", "ports", query=query)))


def list_floating_ips(project: Project, *query: tuple[str, str]) -> tuple[FloatingIp, ...]:
    listed = project.pages(Api.NEUTRON, "floatingip", "/floatingips", "floatingips", query=query)
    return tuple(map(responses.floating_ip, listed))


def list_servers(project: Project, *query: tuple[str, str]) -> tuple[Server, ...]:
    return tuple(map(responses.server, project.pages(Api.NOVA, "server", "/servers/detail", "servers", query=query)))


# --- parts of an observation ---


def _server_groups_for(project: Project, balancer: LoadBalancer, name: str) -> tuple[ServerGroup, ...]:
    if not _may_have_server_groups(balancer):
        return ()
    recorded = balancer.status.server_group_id
    return tuple(each for each in list_server_groups(project) if each.name == name or each.id == recorded)


def _may_have_server_groups(balancer: LoadBalancer) -> bool:
    status, policy = balancer.status, balancer.spec.options.server_group_policy
    return bool(policy or status.server_group_id or status.server_group_name or balancer.metadata.deleting)


def _group_users(project: Project, balancer: LoadBalancer, cloud: LoadBalancerCloud) -> tuple[CloudPort, ...]:
    """The ports that still use the security groups, if deleting the groups is the next step; otherwise empty."""
    if not balancer.metadata.deleting:
        return ()
    going = [step.id for step in remove_load_balancer(balancer, cloud).steps if isinstance(step, DeleteSecurityGroup)]
    return list_ports(project, *(("security_groups", id_) for id_ in going)) if going else ()


def _virtual_port(project: Project, machine: LoadBalancerMachine, found: Iterable[CloudPort]) -> CloudPort | None:
    wanted = machine.spec.port_id
    if not wanted or machine.metadata.deleting:
        return None
    return next((each for each in found if each.id == wanted), None) or get_port(project, wanted)


def _with_recorded(found: Iterable[T], recorded: str | None, get: Callable[[str], T | None]) -> tuple[T, ...]:
    listed = tuple(found)
    if not recorded or any(each.id == recorded for each in listed):
        return listed
    answer = get(recorded)
    return listed if answer is None else (*listed, answer)


def _distinct(found: Iterable[T]) -> tuple[T, ...]:
    return tuple({each.id: each for each in found}.values())


class _Index(Generic[T]):
    def __init__(self, found: Iterable[T], name: Callable[[T], str]) -> None:
        self.by_id: dict[str, T] = {}
        self._by_name: dict[str, list[T]] = defaultdict(list)
        for each in found:
            self.by_id[each.id] = each
            self._by_name[name(each)].append(each)

    def candidates(self, name: str, *recorded: str | None) -> tuple[T, ...]:
        others = (self.by_id[id_] for id_ in recorded if id_ and id_ in self.by_id)
        return _distinct((*self._by_name.get(name, ()), *others))
