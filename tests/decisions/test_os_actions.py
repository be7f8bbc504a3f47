"""Steps in the cloud as actions: each has one, and none is in another's way."""

from __future__ import annotations

import pytest

from domain.decision import Queue
from domain.identity import Key
from domain.loadbalancers import actions
from domain.loadbalancers.actions import CloudAction, ProjectReference
from domain.loadbalancers.cloud import steps
from domain.loadbalancers.cloud.objects import SecurityGroupRule
from domain.loadbalancers.cloud.steps import Step
from domain.loadbalancers.resources import Flavor, Image

PROJECT = ProjectReference(namespace="lbs", secret="cloud")
MACHINE = Key(kind="LoadBalancerMachine", namespace="lbs", name="m", uid="u")
BALANCER = Key(kind="LoadBalancer", namespace="lbs", name="web", uid="b")
RULE = SecurityGroupRule(direction="ingress", ethertype="IPv4", protocol="tcp", port_range_min=80, port_range_max=80)
STEPS: tuple[Step, ...] = (
    steps.CreateSecurityGroup(name="lbs/web", description="perdure:b"),
    steps.ChangeRules(security_group_id="sg", create=(RULE,), delete=("r",)),
    steps.CreatePort(name="lbs/web", description="perdure:b", network_id="n", security_groups=("sg",)),
    steps.UpdatePort(port_id="p", security_groups=()),
    steps.CreateFloatingIp(description="lbs/web", network_id="x", port_id="p"),
    steps.UpdateFloatingIp(floating_ip_id="f", port_id=""),
    steps.CreateServerGroup(name="lbs/web", policy="affinity"),
    steps.CreateServer(name="m", uid="u", flavor=Flavor(id="f"), image=Image(name="i"), port_id="p", network_id="n"),
    steps.DeleteSecurityGroup(id="1"),
    steps.DeletePort(id="1"),
    steps.DeleteFloatingIp(id="1"),
    steps.DeleteServerGroup(id="1"),
    steps.DeleteServer(id="1"),
)


def action_of(step: Step) -> CloudAction:
    """The action of the step's own name."""
    kind = getattr(actions, type(step).__name__)
    more = {"machine": MACHINE, "balancer": BALANCER, "virtual_address": "10.0.0.5"}
    found = kind(project=PROJECT, step=step, **(more if isinstance(step, steps.CreateServer) else {}))
    assert isinstance(found, CloudAction)
    return found


def test_every_step_has_its_action() -> None:
    assert {type(step) for step in STEPS} == set(Step.__subclasses__())


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_an_action_arrives_as_it_was_sent(step: Step) -> None:
    action = action_of(step)
    assert type(action).model_validate_json(action.model_dump_json(by_alias=True)) == action
    assert action.queue is Queue.OPENSTACK
    assert action.summary != type(step).__name__


def test_steps_of_one_plan_run_side_by_side() -> None:
    slots = [action_of(step).slot for step in (*STEPS, steps.DeletePort(id="2"))]
    assert len(set(slots)) == len(slots)
