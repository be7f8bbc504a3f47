"""What the audit of load balancers finds: a world that fits, and what is wrong with it, one thing at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from lb_objects import NOW
from lb_world import World, started

from activities.openstack.observation import ProjectCloud
from domain.loadbalancers.cloud.objects import CloudPort, FloatingIp, SecurityGroup, Server, ServerGroup
from domain.loadbalancers.machine.api_access import access_objects
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancer
from domain.reading import Malformed, read_all
from engine.errors import ApiError, Denied
from starters.cli.audits import audits
from starters.cli.audits.loadbalancers.findings import Owners, Snapshot, findings, is_a_machines

REFERENCE = ProjectReference(namespace="lbs", secret="cloud")
WHERE = "Secret lbs/cloud"
MACHINE = "web--shop-ogwzb3hasmo2o2tj-0a1b2"


@pytest.fixture
def world() -> World:
    return started(options={"serverGroupPolicy": ""})


def owners(world: World) -> Owners:
    machines = tuple(world.machines())
    rights = frozenset((each.metadata.namespace, each.metadata.name) for each in machines)
    balancers = (world.balancer(),) if world.objects["lb"] else ()
    return Owners(balancers, tuple(world.sets()), machines, (), rights)


def cloud(world: World) -> ProjectCloud:
    project = world.project
    return ProjectCloud(
        security_groups=project.groups.values(),
        ports=project.ports.values(),
        floating_ips=project.floating.values(),
        servers=project.servers.values(),
        server_groups=project.server_groups.values(),
    )


def snapshot(world: World, **changes: Any) -> Snapshot:
    clouds: dict[ProjectReference, ProjectCloud | ApiError] = {REFERENCE: cloud(world)}
    return dataclasses.replace(Snapshot(owners(world), owners(world), clouds), **changes)


def lines_of(found: Snapshot) -> list[str]:
    return [f"{each.subject}: {each.problem}" for each in findings(found, NOW + timedelta(minutes=5))]


def test_a_world_that_fits_has_no_findings(world: World) -> None:
    assert lines_of(snapshot(world)) == []
    assert lines_of(Snapshot()) == []


def add(world: World, **found: Any) -> None:
    """Objects that another client has put into the project."""
    for kind, each in found.items():
        getattr(world.project, kind)[each.id] = each


@pytest.mark.parametrize(
    ("kind", "found", "expected"),
    [
        (
            "groups",
            SecurityGroup(id="g", name="lbs/old", description="perdure:gone"),
            f"security group g (lbs/old), {WHERE}: created for gone, which does not exist",
        ),
        (
            "ports",
            CloudPort(id="p", name="lbs/old", description="perdure:gone"),
            f"port p (lbs/old), {WHERE}: created for gone, which does not exist",
        ),
        (
            "servers",
            Server(id="s", name="old", uid="gone"),
            f"server s (old), {WHERE}: created for gone, which does not exist",
        ),
        (
            "groups",
            SecurityGroup(id="g", name="lbs/old"),
            f"security group g, {WHERE}: has no mark of Perdure, and is named after lbs/old, which does not exist",
        ),
        (
            "ports",
            CloudPort(id="p", name="lbs/old"),
            f"port p, {WHERE}: has no mark of Perdure, and is named after lbs/old, which does not exist",
        ),
        (
            "floating",
            FloatingIp(id="f", address="203.0.113.9", description="lbs/old"),
            f"floating IP f (203.0.113.9), {WHERE}: has no mark of Perdure, "
            "and is named after lbs/old, which does not exist",
        ),
        (
            "server_groups",
            ServerGroup(id="n", name="lbs/old", policy="affinity"),
            f"server group n, {WHERE}: has no mark of Perdure, and is named after lbs/old, which does not exist",
        ),
        (
            "servers",
            Server(id="s", name=MACHINE),
            f"server s, {WHERE}: has no mark of Perdure, and is named after lbs/{MACHINE}, which does not exist",
        ),
        (
            "groups",
            SecurityGroup(id="g", name="lbs/web--shop"),
            "LoadBalancer lbs/web--shop: security group g has its name, but does not belong to it",
        ),
        (
            "floating",
            FloatingIp(id="f", address="203.0.113.9", description="lbs/web--shop", port_id="elsewhere"),
            "LoadBalancer lbs/web--shop: floating IP f has its name, but does not belong to it",
        ),
    ],
)
def test_an_object_without_an_owner_in_the_cloud_is_reported(
    world: World, kind: str, found: Any, expected: str
) -> None:
    add(world, **{kind: found})
    assert lines_of(snapshot(world)) == [expected]


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("groups", SecurityGroup(id="g", name="other-cluster/web")),
        ("groups", SecurityGroup(id="g", name="default")),
        ("ports", CloudPort(id="p", name="")),
        ("floating", FloatingIp(id="f", address="203.0.113.9", description="lbs/web--shop (user managed)")),
        ("floating", FloatingIp(id="f", address="203.0.113.9", description="for the shop")),
        ("servers", Server(id="s", name="web--shop-by-hand")),
        ("servers", Server(id="s", name="other-ogwzb3hasmo2o2tj-0a1b2")),
    ],
)
def test_objects_that_may_belong_to_others_are_not_reported(world: World, kind: str, found: Any) -> None:
    add(world, **{kind: found})
    assert lines_of(snapshot(world)) == []


def test_an_owner_that_existed_before_or_after_the_look_is_one(world: World) -> None:
    add(world, ports=CloudPort(id="p", name="lbs/new", description="perdure:new-uid"))
    new = LoadBalancer.model_validate(
        {"metadata": {"namespace": "lbs", "name": "new", "uid": "new-uid", "deletionTimestamp": "2026-05-01T12:00:00Z"}}
    )
    there = dataclasses.replace(owners(world), balancers=(world.balancer(), new))
    assert lines_of(snapshot(world, before=there)) == []
    assert lines_of(snapshot(world, owners=there)) == []


def lose_server(world: World) -> str:
    machine = world.machines()[0]
    del world.project.servers[str(machine.status.server_id)]
    return f"LoadBalancerMachine lbs/{machine.metadata.name}: has drifted: its server is lost"


def double_port(world: World) -> str:
    port = world.project.ports[str(world.balancer().status.port_id)]
    add(world, ports=port.model_copy(update={"id": "port-999"}))
    return "LoadBalancer lbs/web--shop: has drifted: delete port port-999"


def inherited_port(world: World) -> str:
    port = world.project.ports[str(world.balancer().status.port_id)]
    add(world, ports=port.model_copy(update={"id": "port-999", "description": ""}))
    return "LoadBalancer lbs/web--shop: port port-999 has its name, but does not belong to it"


def close_rules(world: World) -> str:
    (group,) = world.project.groups.values()
    world.project.groups[group.id] = group.model_copy(update={"rules": ()})
    return "LoadBalancer lbs/web--shop: has drifted: "


@pytest.mark.parametrize(
    "spoil", [lose_server, double_port, inherited_port, close_rules], ids=lambda each: each.__name__
)
def test_drift_is_reported_at_its_owner(world: World, spoil: Callable[[World], str]) -> None:
    expected = spoil(world)
    assert lines_of(snapshot(world))[0].startswith(expected)


def test_drift_of_a_paused_object_is_reported_with_the_way_out(world: World) -> None:
    close_rules(world)
    world.objects["lb"]["web--shop"]["metadata"].setdefault("annotations", {})["perdure.dev/paused"] = "true"
    (found,) = findings(snapshot(world), NOW)
    assert "perdure resume" in found.advice


def test_there_is_no_drift_where_the_project_cannot_be_observed(world: World) -> None:
    refused = Denied("create token: 401", code="Unauthorized")
    (line,) = lines_of(snapshot(world, clouds={REFERENCE: refused}))
    assert line == f"{WHERE}: its project, used by 3 objects, cannot be read: create token: 401"


def test_machines_sets_and_roles_without_their_owner_are_reported(world: World) -> None:
    name = world.machines()[0].metadata.name
    lost = dataclasses.replace(owners(world), balancers=(), rights=frozenset({("lbs", name), ("lbs", "former")}))
    lines = lines_of(Snapshot(lost, owners(world), {}))
    (machine_set,) = world.sets()
    gone = "belongs to LoadBalancer lbs/web--shop, which does not exist"
    assert lines == [
        f"LoadBalancerSet lbs/{machine_set.metadata.name}: {gone}",
        *(f"LoadBalancerMachine lbs/{each.metadata.name}: {gone}" for each in world.machines()),
        "Role lbs/former: gives rights to the agent of a machine that does not exist",
    ]


def test_an_unreadable_object_is_reported_and_still_owns_what_it_has(world: World) -> None:
    body = world.objects["lb"]["web--shop"]
    good, bad = read_all(LoadBalancer, [{**body, "spec": {**body["spec"], "replicas": "many"}}])
    assert good == ()
    (malformed,) = bad
    assert isinstance(malformed, Malformed)
    half = dataclasses.replace(owners(world), balancers=(), malformed=bad)
    (line,) = lines_of(snapshot(world, owners=half, before=half))
    assert line.startswith("LoadBalancer lbs/web--shop: cannot be read: spec.replicas: ")


def test_drift_in_a_project_that_two_secrets_lead_to_is_reported_once(world: World) -> None:
    expected = double_port(world)
    copy = ProjectReference(namespace="elsewhere", secret="copy")
    lines = lines_of(snapshot(world, clouds={REFERENCE: cloud(world), copy: cloud(world)}))
    assert [line for line in lines if line == expected] == [expected]


def test_a_machines_role_is_known_by_its_rules(world: World) -> None:
    machine = world.machines()[0]
    (role,) = (each for each in access_objects(machine) if each["kind"] == "Role")
    assert is_a_machines(role)
    assert not is_a_machines({**role, "metadata": {"name": "operators"}})
    assert not is_a_machines({"metadata": {"name": "a"}, "rules": [{"resources": ["pods"], "resourceNames": ["a"]}]})


def test_the_area_has_joined() -> None:
    assert "loadbalancers" in audits()
