"""What `why` says of load balancers, their sets and machines along their lives."""

from __future__ import annotations

import pytest
from lb_objects import NOW, Json, ago, balancer, balancer_world, condition, healthy, machine, machine_world
from lb_world import MINUTE, SPEC, World

from domain.decision import Decision
from domain.loadbalancers.balancer_lifecycle import decide_balancer
from domain.loadbalancers.machine.lifecycle import decide_machine
from domain.loadbalancers.names import cloud_name
from domain.loadbalancers.set_lifecycle import decide_set


def lines_of(world: World) -> list[str]:
    """Of the LoadBalancer, its sets and its machines, in this order."""
    machines = world.machines()
    found: list[Decision] = []
    shop = world.balancer()
    found.append(decide_balancer(balancer_world(shop, world.project.of_balancer(), world.sets()), world.now))
    for one in world.sets():
        found.append(decide_set(world.set_world(one.metadata.name), world.now))
    for each in machines:
        cloud = world.project.of_machine(cloud_name(each.metadata), each.spec.port_id)
        found.append(decide_machine(machine_world(each, shop, cloud), world.now))
    return [
        f"{message.phase}: {message.why}{f' <- {message.waits_for[0]}' if message.waits_for else ''}"
        for message in found
    ]


def started(replicas: int = 1) -> World:
    world = World({**SPEC, "replicas": replicas})
    world.settle()
    return world


def test_the_events_of_a_load_balancer_show_its_first_server_to_its_first_report() -> None:
    world = started()
    (set_name,) = (each.metadata.name for each in world.sets())
    lacking = f"ready machines of {set_name}: 0 of 1"
    assert lines_of(world) == [
        f"Starting: {lacking} <- {lacking}",
        "Scaling: ready machines: 0 of 1 <- ready machines: 0 of 1",
        "Provisioning: Nova builds its server <- Nova builds its server",
    ]
    world.nova()
    assert lines_of(world)[2] == (
        "Booting: its server runs, and its agent has not reported yet <- its agent's first report"
    )
    world.run(2 * MINUTE)
    assert lines_of(world) == [
        "Ready: everything is up to date",
        "Ready: its machines are ready",
        "Ready: it serves traffic",
    ]


YOUNG, OLD = {"creationTimestamp": ago(minutes=1)}, {"creationTimestamp": ago(minutes=11)}
LONG_MARKED = {**OLD, "annotations": {"perdure.dev/marked-for-deletion-at": ago(minutes=3)}}
ILL = [condition("ConfigReady"), condition("EnvoyReady", "False", since=ago(minutes=1)), condition("EnvoyUpToDate")]


@pytest.mark.parametrize(
    ("conditions", "metadata", "phase", "why"),
    [
        ([], YOUNG, "Booting", "its server runs, and its agent has not reported yet"),
        (healthy(), YOUNG, "Ready", "it serves traffic"),
        (ILL, YOUNG, "Running", "its agent reports a problem: condition EnvoyReady is in status False"),
        ([], OLD, "Marked", "it is replaced unless it recovers: no conditions set"),
        ([], LONG_MARKED, "GivenUp", "its set replaces it: no conditions set"),
    ],
)
def test_a_machine_reports_its_phase(conditions: list[Json], metadata: Json, phase: str, why: str) -> None:
    finalizer = {"finalizers": ["yawol.stackit.cloud/controller4"]}
    found = machine(conditions=conditions, metadata={**finalizer, **metadata})
    decision = decide_machine(machine_world(found, balancer()), NOW)
    assert (decision.phase, decision.why[: len(why)]) == (phase, why)
