"""What a look at a whole project finds."""

from __future__ import annotations

from datetime import timedelta

import pytest
from lb_world import World, started

from domain.loadbalancers.cloud.drift_sweep import difference_of_balancer, difference_of_machine, orphans, owned_by
from domain.loadbalancers.cloud.objects import CloudPort, SecurityGroup, Server
from domain.loadbalancers.names import cloud_name
from domain.writes import merge


@pytest.fixture
def world() -> World:
    return started()


def differences(world: World) -> list[str]:
    """What differs, of the load balancer first, then of its machines."""
    balancer, project = world.balancer(), world.project
    found = [difference_of_balancer(balancer, project.of_balancer(), world.now)]
    for machine in world.machines():
        cloud = project.of_machine(cloud_name(machine.metadata), machine.spec.port_id)
        found.append(difference_of_machine(machine, cloud, balancer))
    return found


def owned(world: World, **metadata: str) -> set[str]:
    owners = (world.balancer(), *world.machines())
    restored = (merge(each.model_dump(mode="json"), {"metadata": metadata}) for each in owners)
    return owned_by(type(each).model_validate(body) for each, body in zip(owners, restored, strict=True))


def test_nothing_differs_where_all_is_settled(world: World) -> None:
    assert differences(world) == ["", "", ""]
    world.now += timedelta(days=30)
    assert differences(world) == ["", "", ""]


def test_a_port_that_lost_its_security_group_is_named_at_its_machine_alone(world: World) -> None:
    second = world.machines()[1]
    port = world.project.ports[str(second.status.default_port_id)]
    world.project.ports[port.id] = port.model_copy(update={"security_groups": ("default",)})
    assert differences(world) == ["", "", f"update port {port.id}"]


def test_a_lost_server_is_named(world: World) -> None:
    first = world.machines()[0]
    del world.project.servers[str(first.status.server_id)]
    assert differences(world) == ["", "its server is lost", ""]


def test_a_floating_ip_that_leads_elsewhere_is_named(world: World) -> None:
    (floating,) = world.project.floating.values()
    world.project.floating[floating.id] = floating.model_copy(update={"port_id": ""})
    assert differences(world) == [f"update floating IP {floating.id}", "", ""]


def test_a_status_that_was_changed_by_hand_is_named(world: World) -> None:
    world.objects["lb"]["web--shop"]["status"]["externalIP"] = "192.0.2.1"
    assert differences(world)[0] == "its status is not up to date"


def test_an_object_that_is_being_deleted_differs_from_nothing(world: World) -> None:
    world.project.floating.clear()
    world.project.servers.clear()
    for kind, name in (("lb", "web--shop"), *(("lbm", each) for each in world.objects["lbm"])):
        world.delete(kind, name)
    assert differences(world) == ["", "", ""]


def test_objects_that_a_restored_owner_records_are_no_orphans(world: World) -> None:
    project = world.project
    everything = (project.groups.values(), project.ports.values(), project.servers.values())
    assert orphans(*everything, owned(world, uid="another")) == ()


def test_only_an_object_with_a_mark_of_no_owner_is_an_orphan(world: World) -> None:
    project = world.project
    everything = (project.groups.values(), project.ports.values(), project.servers.values())
    assert orphans(*everything, owned(world)) == ()
    strangers = (
        [SecurityGroup(id="g", name="a/b", description="perdure:gone"), SecurityGroup(id="x", name="a/b")],
        [CloudPort(id="p", name="a/b", description="perdure:gone"), CloudPort(id="y", description="by hand")],
        [Server(id="s", name="b", uid="gone"), Server(id="z", name="b")],
    )
    assert [str(each) for each in orphans(*strangers, owned(world))] == [
        "security group g (a/b), made for gone",
        "port p (a/b), made for gone",
        "server s (b), made for gone",
    ]
