r"""The steps towards a machine's cloud objects: its own port, which may also use the virtual address, and its server.

    port --> server BUILD --> ACTIVE
                        \--> ERROR: the machine is given up, its set creates another

A lost server is not recreated for the same machine: another machine replaces this one, and has the full boot time.
In all other states of the server, only the agent's reports decide whether the machine is replaced.
"""

from __future__ import annotations

from enum import StrEnum

from domain.loadbalancers.cloud.objects import CloudPort, MachineCloud, Server
from domain.loadbalancers.cloud.ownership import Owner, Selection, mark_of, marked_for, select
from domain.loadbalancers.cloud.steps import CreatePort, CreateServer, DeletePort, DeleteServer, Step, UpdatePort
from domain.loadbalancers.ip_addresses import bare_addresses, ip_version
from domain.loadbalancers.names import cloud_name
from domain.loadbalancers.resources import DebugSettings, LoadBalancer, LoadBalancerMachine
from domain.model import Model
from domain.resource import timestamp
from domain.writes import JsonPatch, difference


class ServedBalancer(Model):
    """The parts of a LoadBalancer that its machines depend on. `group_id` is empty until the security group exists."""

    uid: str
    group_id: str = ""
    debug: DebugSettings = DebugSettings()

    @classmethod
    def of(cls, balancer: LoadBalancer) -> ServedBalancer:
        return cls(
            uid=balancer.metadata.uid, group_id=balancer.status.group_id or "", debug=balancer.spec.debug_settings
        )


class ServerState(StrEnum):
    ABSENT = "absent"  # not created yet
    BUILDING = "building"
    ACTIVE = "active"
    FAILED = "failed"  # Nova could not create it
    LOST = "lost"  # it existed and is gone
    STOPPED = "stopped"  # exists, but is neither building nor active


class MachinePlan(Model):
    steps: tuple[Step, ...] = ()
    status: JsonPatch = {}  # the merge patch of the machine's status; empty if up to date
    server: ServerState = ServerState.ABSENT
    fault: str = ""  # Nova's message about a failed server
    problem: str = ""
    settled: bool = False  # no step is left, and the server is no longer being built

    @property
    def given_up(self) -> bool:
        return self.server in (ServerState.FAILED, ServerState.LOST)


def plan_machine(machine: LoadBalancerMachine, cloud: MachineCloud, balancer: ServedBalancer) -> MachinePlan:
    servers, ports = machine_servers(machine, cloud), machine_ports(machine, cloud)
    server, port = servers.selected, ports.selected
    state = _state(machine, server)
    facts: dict[str, object] = {}
    if port is not None:
        facts.update(
            default_port_id=port.id,
            default_port_name=cloud_name(machine.metadata),
            default_port_ip=port.address or None,
        )
    if server is not None:
        # As in yawol, the creation time is recorded only once the server is built.
        known = server.created_at if state is not ServerState.BUILDING else None
        created = timestamp(known) if known else machine.status.creation_timestamp
        facts.update(server_id=server.id, creation_timestamp=created)
    change = difference(machine.status, machine.status.model_copy(update=facts))
    address = virtual_address(cloud.virtual_port)
    problem = _problem(machine, cloud, address, balancer.group_id)
    base = MachinePlan(
        status={"status": change} if change else {},
        server=state,
        fault=server.fault if server else "",
        problem=problem,
    )
    if base.given_up or problem:
        return base
    steps: list[Step] = [DeleteServer(id=each.id) for each in servers.doubles]
    # A duplicate port may be attached to a duplicate server, so servers are deleted first.
    steps.extend(DeletePort(id=each.id) for each in ports.doubles if not servers.doubles)
    steps.extend(_port_steps(machine, port, cloud.virtual_port, balancer.group_id))
    if server is None and port is not None:
        steps.append(_creation(machine, port, address, balancer.debug))
    settled = not steps and state not in (ServerState.ABSENT, ServerState.BUILDING)
    return base.model_copy(update={"steps": tuple(steps), "settled": settled})


def machine_ports(machine: LoadBalancerMachine, cloud: MachineCloud) -> Selection[CloudPort]:
    status = machine.status
    recorded = status.default_port_id or status.port_id or ""
    inherited = bool(status.default_port_name) and not recorded
    owner = Owner(uid=machine.metadata.uid, recorded=recorded, inherited=inherited, unique=True)
    return select(cloud.ports, owner, lambda each: marked_for(each.description))


def machine_servers(machine: LoadBalancerMachine, cloud: MachineCloud) -> Selection[Server]:
    """The machine's servers. Nova matches names as patterns, so servers are filtered by the exact name.

    A server of this name without Perdure's mark also counts as the machine's, because yawol neither marks servers nor
    records their names in advance. The name suffices, because its suffix is practically unique.
    """
    meta, recorded = machine.metadata, machine.status.server_id
    named = tuple(each for each in cloud.servers if each.name == meta.name or each.id == recorded)
    owner = Owner(uid=meta.uid, recorded=recorded or "", inherited=True, unique=True)
    return select(named, owner, lambda each: each.uid)


def virtual_address(port: CloudPort | None) -> str:
    found = [each.address for each in port.fixed_ips if ip_version(each.address) == 4] if port else []
    return found[-1] if found else ""


def _state(machine: LoadBalancerMachine, server: Server | None) -> ServerState:
    if server is None:
        return ServerState.LOST if machine.status.server_id else ServerState.ABSENT
    states = {
        "BUILD": ServerState.BUILDING,
        "ACTIVE": ServerState.ACTIVE,
        "ERROR": ServerState.FAILED,
        "DELETED": ServerState.LOST,
        "SOFT_DELETED": ServerState.LOST,
    }
    return states.get(server.status.upper(), ServerState.STOPPED)


def _problem(machine: LoadBalancerMachine, cloud: MachineCloud, address: str, security_group_id: str) -> str:
    if not security_group_id:
        return "its LoadBalancer has no security group yet"
    if cloud.virtual_port is None:
        return f"port {machine.spec.port_id} with the virtual address does not exist"
    if not address:
        return f"port {machine.spec.port_id} has no IPv4 address, and machines support only IPv4"
    return ""


def _port_steps(
    machine: LoadBalancerMachine, port: CloudPort | None, virtual: CloudPort | None, security_group_id: str
) -> tuple[Step, ...]:
    allowed = tuple(each.address for each in virtual.fixed_ips) if virtual else ()
    infrastructure = machine.spec.infrastructure
    if port is None:
        create = CreatePort(
            name=cloud_name(machine.metadata),
            description=mark_of(machine.metadata.uid),
            network_id=infrastructure.network,
            subnet_id=infrastructure.subnet,
            security_groups=(security_group_id,),
            allowed_addresses=allowed,
        )
        return (create,)
    grouped = port.security_groups == (security_group_id,)
    may_answer = bare_addresses(port.allowed_addresses) == bare_addresses(allowed)
    if grouped and may_answer:
        return ()
    update = UpdatePort(
        port_id=port.id,
        security_groups=None if grouped else (security_group_id,),
        allowed_addresses=None if may_answer else allowed,
    )
    return (update,)


def _creation(machine: LoadBalancerMachine, port: CloudPort, address: str, debug: DebugSettings) -> CreateServer:
    infrastructure = machine.spec.infrastructure
    return CreateServer(
        name=machine.metadata.name,
        namespace=machine.metadata.namespace,
        load_balancer=machine.spec.load_balancer_ref,
        virtual_address=address,
        uid=machine.metadata.uid,
        flavor=infrastructure.flavor,
        image=infrastructure.image,
        availability_zone=infrastructure.availability_zone,
        port_id=port.id,
        network_id=infrastructure.network,
        additional_networks=tuple(each.network_id for each in infrastructure.additional_networks or ()),
        key_name=debug.sshkey_name if debug.enabled else "",
        server_group_id=machine.spec.server_group_id,
    )
