"""What a step has brought folds into what was observed: as looking again would find it."""

from __future__ import annotations

import pytest
from lb_objects import NOW, balancer
from lb_project import Project

from domain.loadbalancers.cloud.deletion import remove_load_balancer
from domain.loadbalancers.cloud.folded_results import Brought, changed, machine_changed
from domain.loadbalancers.cloud.load_balancer import plan_cloud
from domain.loadbalancers.cloud.objects import CloudPort, FloatingIp, LoadBalancerCloud, MachineCloud, Server
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancer
from domain.writes import merge

NOTHING = {"status": None}


def unobserved(cloud: LoadBalancerCloud) -> LoadBalancerCloud:
    return cloud.model_copy(update={"group_users": ()})


@pytest.mark.parametrize("policy", ["", "anti-affinity"])
def test_a_whole_life_by_folding_is_the_life_by_looking(policy: str) -> None:
    project = Project()
    owner = balancer(spec={"options": {"serverGroupPolicy": policy}}, **NOTHING)
    cloud = LoadBalancerCloud()
    while not (plan := plan_cloud(owner, cloud, NOW)).settled:
        owner = LoadBalancer.model_validate(merge(owner.model_dump(mode="json", by_alias=True), plan.status))
        for step in plan.steps:
            cloud = changed(cloud, project.take(step))
            assert cloud == unobserved(project.of_balancer())
    while removal := remove_load_balancer(owner, cloud).steps:
        for step in removal:
            cloud = changed(cloud, project.take(step))
            assert cloud == unobserved(project.of_balancer())
    assert project.left == []


def test_another_ones_port_that_loses_the_group_becomes_none_of_ours() -> None:
    user = CloudPort(id="p-9", security_groups=("sg-1",))
    cloud = LoadBalancerCloud(group_users=(user,))
    freed = user.model_copy(update={"security_groups": ()})
    after = changed(cloud, Brought(port=freed))
    assert after.ports == ()
    assert after.group_users == (freed,)


def test_a_floating_ip_whose_port_is_gone_leads_nowhere() -> None:
    cloud = LoadBalancerCloud(ports=(CloudPort(id="p"),), floating_ips=(FloatingIp(id="f", address="a", port_id="p"),))
    after = changed(cloud, Brought(gone="p"))
    assert after.ports == ()
    assert [each.port_id for each in after.floating_ips] == [""]


def test_a_machines_server_is_known_by_its_last_look() -> None:
    cloud = machine_changed(MachineCloud(), Brought(server=Server(id="s", status="BUILD")))
    cloud = machine_changed(cloud, Brought(server=Server(id="s", status="ACTIVE")))
    assert [each.status for each in cloud.servers] == ["ACTIVE"]
    assert machine_changed(cloud, Brought(gone="s")).servers == ()


def test_a_secret_without_a_namespace_is_beside_its_object() -> None:
    infrastructure = {"authSecretRef": {"namespace": ""}, "projectID": "p"}
    reference = ProjectReference.of(balancer(metadata={"namespace": "here"}, spec={"infrastructure": infrastructure}))
    assert reference == ProjectReference(namespace="here", secret="cloud", project_id="p")
