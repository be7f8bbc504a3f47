"""What a machine lacks in the cloud: its port, its server, and the way out of both."""

from __future__ import annotations

from typing import Any

import pytest
from lb_objects import machine
from lb_project import Project

from domain.loadbalancers.cloud.deletion import remove_machine
from domain.loadbalancers.cloud.machine import MachinePlan, ServedBalancer, ServerState, plan_machine, virtual_address
from domain.loadbalancers.cloud.objects import CloudPort, FixedIp, Server
from domain.loadbalancers.cloud.ownership import mark_of
from domain.loadbalancers.cloud.steps import CreateServer
from domain.loadbalancers.resources import DebugSettings, LoadBalancerMachine
from domain.writes import merge

NAME = "web--shop-aaaa-00001"
PORT_NAME = f"lbs/{NAME}"
UID = f"uid-of-{NAME}"


def project() -> Project:
    """A project with the virtual address."""
    found = Project()
    addresses = (FixedIp(address="10.1.0.4"), FixedIp(address="fd00::4"), FixedIp(address="10.1.0.5"))
    found.ports["port-1"] = CloudPort(id="port-1", name="lbs/web--shop", fixed_ips=addresses)
    return found


def fresh(**changes: Any) -> LoadBalancerMachine:
    """A machine that has nothing yet."""
    return machine(status={"serverID": None}, **changes)


def plan(of: LoadBalancerMachine, where: Project, debug: DebugSettings | None = None) -> MachinePlan:
    cloud = where.of_machine(PORT_NAME, "port-1")
    return plan_machine(of, cloud, ServedBalancer(uid="", group_id="sg-1", debug=debug or DebugSettings()))


def settle(of: LoadBalancerMachine, where: Project) -> tuple[LoadBalancerMachine, MachinePlan]:
    for _ in range(10):
        found = plan(of, where)
        of = LoadBalancerMachine.model_validate(merge(of.model_dump(mode="json"), found.status))
        if not found.steps:
            return of, found
        where.carry_out(found.steps)
    raise AssertionError("it does not settle")


def test_a_machine_gets_a_port_and_then_a_server_in_two_calls() -> None:
    where = project()
    of, found = settle(fresh(), where)
    assert where.calls == ["CreatePort", "CreateServer"]
    port = next(each for each in where.ports.values() if each.name == PORT_NAME)
    assert (port.network_id, port.security_groups) == ("net", ("sg-1",))
    assert set(port.allowed_addresses) == {"10.1.0.4", "fd00::4", "10.1.0.5"}
    (server,) = where.servers.values()
    assert (server.name, server.uid) == (NAME, UID)
    status = of.status
    assert (status.default_port_id, status.default_port_name, status.default_port_ip, status.server_id) == (
        port.id,
        PORT_NAME,
        port.address,
        server.id,
    )
    assert (found.server, found.settled) == (ServerState.BUILDING, False)


def test_the_server_is_made_as_the_machine_says() -> None:
    where = project()
    infrastructure = {
        "defaultNetwork": {"networkID": "net", "subnetID": "sub"},
        "additionalNetworks": [{"networkID": "b"}, {"networkID": "a"}],
        "flavor": {"flavorID": "small"},
        "image": {"imageName": "alpine"},
        "availabilityZone": "zone",
    }
    of = fresh(spec={"infrastructure": infrastructure, "serverGroupID": "group"})
    first = plan(of, where)
    where.carry_out(first.steps)
    (step,) = plan(of, where, DebugSettings(enabled=True, sshkey_name="key")).steps
    assert isinstance(step, CreateServer)
    assert (step.network_id, step.additional_networks, step.availability_zone) == ("net", ("b", "a"), "zone")
    assert (step.flavor.id, step.image.name, step.server_group_id, step.key_name) == ("small", "alpine", "group", "key")


def test_a_key_without_debugging_is_no_key() -> None:
    where = project()
    of = fresh()
    where.carry_out(plan(of, where).steps)
    (step,) = plan(of, where, DebugSettings(sshkey_name="key")).steps
    assert isinstance(step, CreateServer)
    assert step.key_name == ""


@pytest.mark.parametrize(
    ("status", "state", "given_up", "settled"),
    [
        ("BUILD", ServerState.BUILDING, False, False),
        ("ACTIVE", ServerState.ACTIVE, False, True),
        ("ERROR", ServerState.FAILED, True, False),
        ("SHUTOFF", ServerState.STOPPED, False, True),
        ("DELETED", ServerState.LOST, True, False),
    ],
)
def test_a_servers_state_is_taken_from_nova(status: str, state: ServerState, given_up: bool, settled: bool) -> None:
    where = project()
    of, _ = settle(fresh(), where)
    (server,) = where.servers.values()
    where.servers[server.id] = server.model_copy(update={"status": status, "fault": "No valid host"})
    found = plan(of, where)
    assert (found.server, found.given_up, found.settled, found.steps) == (state, given_up, settled, ())
    assert found.fault == "No valid host"


def test_a_server_that_has_disappeared_is_not_made_again() -> None:
    where = project()
    of, _ = settle(fresh(), where)
    where.servers.clear()
    found = plan(of, where)
    assert (found.server, found.given_up, found.steps) == (ServerState.LOST, True, ())


def test_a_server_of_a_similar_name_is_not_ours() -> None:
    where = project()
    where.servers["other"] = Server(id="other", name=f"{NAME}-2", status="ERROR")
    assert plan(fresh(), where).server is ServerState.ABSENT


def test_a_server_of_our_name_that_says_another_machine_is_not_ours() -> None:
    where = project()
    where.servers["other"] = Server(id="other", name=NAME, status="ACTIVE", uid="another-uid")
    of = fresh()
    assert plan(of, where).server is ServerState.ABSENT
    assert not remove_machine(of, where.of_machine(PORT_NAME, "port-1")).steps


def test_a_machine_that_is_taken_over_needs_no_call_at_all() -> None:
    where = project()
    of, _ = settle(fresh(), where)
    for port in list(where.ports.values()):
        where.ports[port.id] = port.model_copy(update={"description": ""})
    (server,) = where.servers.values()
    where.servers[server.id] = server.model_copy(update={"uid": "", "status": "ACTIVE"})
    found = plan(of, where)
    assert (found.steps, found.settled) == ((), True)


def test_an_unrecorded_server_of_yawols_is_adopted() -> None:
    where = project()
    where.servers["vm"] = Server(id="vm", name=NAME, status="ACTIVE")
    of, _ = settle(fresh(), where)
    assert of.status.server_id == "vm"
    assert "CreateServer" not in where.calls


@pytest.mark.parametrize(
    "drift",
    [
        {"security_groups": ("default",)},
        {"allowed_addresses": ()},
        {"allowed_addresses": ("10.1.0.4",)},
    ],
)
def test_drift_of_the_port_is_put_right_in_one_call(drift: dict[str, Any]) -> None:
    """W24."""
    where = project()
    of, _ = settle(fresh(), where)
    port = next(each for each in where.ports.values() if each.name == PORT_NAME)
    where.ports[port.id] = port.model_copy(update=drift)
    assert len(plan(of, where).steps) == 1
    settle(of, where)
    assert where.ports[port.id] == port


def test_the_spelling_and_order_of_addresses_do_not_matter() -> None:
    where = project()
    of, _ = settle(fresh(), where)
    port = next(each for each in where.ports.values() if each.name == PORT_NAME)
    where.ports[port.id] = port.model_copy(update={"allowed_addresses": ("fd00::4/128", "10.1.0.5/32", "10.1.0.4")})
    assert plan(of, where).steps == ()


@pytest.mark.parametrize(
    ("group", "addresses", "message"),
    [
        ("", ("10.1.0.5",), "no security group yet"),
        ("sg-1", ("fd00::4",), "has no IPv4 address"),
        ("sg-1", None, "does not exist"),
    ],
)
def test_the_blocker_of_a_machine_is_reported(group: str, addresses: tuple[str, ...] | None, message: str) -> None:
    """W29: machines hand over an IPv4 address only; a machine without one reports that and is not made in vain."""
    where = project()
    if addresses is None:
        del where.ports["port-1"]
    else:
        fixed = tuple(FixedIp(address=each) for each in addresses)
        where.ports["port-1"] = where.ports["port-1"].model_copy(update={"fixed_ips": fixed})
    cloud = where.of_machine(PORT_NAME, "port-1")
    found = plan_machine(fresh(), cloud, ServedBalancer(uid="", group_id=group))
    assert message in found.problem
    assert found.steps == ()


def test_the_virtual_address_is_the_last_ipv4() -> None:
    assert virtual_address(project().ports["port-1"]) == "10.1.0.5"
    assert virtual_address(None) == ""


def test_doubles_that_carry_our_mark_go() -> None:
    where = project()
    of, _ = settle(fresh(), where)
    where.servers["double"] = Server(id="double", name=NAME, status="ACTIVE", uid=UID)
    where.ports["double"] = CloudPort(id="double", name=PORT_NAME, description=mark_of(UID), device_id="double")
    settle(of, where)
    assert "double" not in where.servers
    assert "double" not in where.ports
    assert where.calls[-2:] == ["DeleteServer", "DeletePort"]


def test_the_server_goes_before_the_port_and_nothing_is_left() -> None:
    where = project()
    of, _ = settle(fresh(), where)
    before = len(where.calls)
    while (removal := remove_machine(of, where.of_machine(PORT_NAME, "port-1"))).steps:
        where.carry_out(removal.steps)
    assert where.calls[before:] == ["DeleteServer", "DeletePort"]
    assert where.left == ["port-1"]


def test_the_port_of_an_older_release_goes_too() -> None:
    where = project()
    where.ports["old"] = CloudPort(id="old", name=PORT_NAME)
    where.ports["new"] = CloudPort(id="new", name=PORT_NAME)
    of = machine(status={"serverID": None, "portID": "old", "defaultPortID": "new", "defaultPortName": PORT_NAME})
    where.carry_out(remove_machine(of, where.of_machine(PORT_NAME, "port-1")).steps)
    assert where.left == ["port-1"]
