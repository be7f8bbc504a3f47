"""Machines as processes: booted from user data, serving clients, failing as asked, gone with their server or host."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from crd_lab import install
from machines_lab import Lab, backend

from domain.loadbalancers import LOAD_BALANCER_MACHINE
from domain.loadbalancers.machine_health import health_of, is_master
from domain.loadbalancers.resources import LoadBalancerMachine
from engine.kube import KubeApi
from localcloud.deployment import Deployment
from localcloud.machines.contract import Fare, MachineState, MachineView

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture
async def lab(deployment: Deployment, kube: KubeApi, namespace: str, tmp_path: Path) -> AsyncIterator[Lab]:
    await install(kube)
    found = Lab(deployment, kube, namespace, tmp_path)
    await found.start()
    yield found
    found.stop()
    found.control.close()


def serving(machine: MachineView) -> bool:
    return machine.state is MachineState.UP and machine.priority == 160 and bool(machine.ports)


def is_down(machine: MachineView) -> bool:
    programs = (machine.agent_pid, machine.envoy_pid)
    return machine.state is MachineState.BOOTING and programs == (None, None) and not machine.master


def is_gone(pid: int | None) -> bool:
    return pid is not None and not Path(f"/proc/{pid}").exists()


async def test_a_server_boots_reports_and_serves_clients_at_every_address(lab: Lab) -> None:
    async with backend() as node_port:
        balancer = await lab.balancer(node_port)
        server_id = await lab.server(balancer, "web-1", 11)
        machine = await lab.seen("web-1", serving, "it serves")
        assert machine.address == f"{lab.network}.11"
        assert await lab.answered(lab.floating_address) == "heard hello"
        assert await lab.ask(lab.virtual_address) == "heard hello"
        assert not list(lab.home.glob("*/etc/yawol/kubeconfig.*"))

        reported = await _ready(lab, "web-1")
        assert is_master(reported)

        lab.delete(server_id)
        await lab.until(lambda: is_gone(machine.agent_pid) and is_gone(machine.envoy_pid), "its processes are gone")
        await lab.until(lambda: not (lab.home / server_id).exists(), "its disk is gone")
        assert await lab.ask(lab.floating_address) == ""


async def test_another_machine_takes_over_when_the_master_dies(lab: Lab) -> None:
    async with backend() as node_port:
        balancer = await lab.balancer(node_port)
        for number, name in ((11, "web-1"), (12, "web-2")):
            await lab.server(balancer, name, number)
        both = {name: await lab.seen(name, serving, "it serves") for name in ("web-1", "web-2")}
        assert await lab.answered(lab.floating_address) == "heard hello"

        master = next(each.name for each in lab.control.view().machines if each.master)
        other = next(name for name in both if name != master)
        lab.control.fare(Fare(server=f"^{master}$", boots=False))
        await lab.seen(other, lambda machine: machine.master, "it has the address")
        assert await lab.answered(lab.floating_address) == "heard hello"
        await lab.seen(master, is_down, "it is down")

        # Without Envoy a machine loses the address to a machine with Envoy.
        lab.control.fare(Fare(server=f"^{other}$", envoy=False))
        await lab.seen(master, lambda machine: machine.master and serving(machine), "it is back, and master")
        assert await lab.answered(lab.floating_address) == "heard hello"


async def test_a_machine_fares_as_it_was_asked_to(lab: Lab) -> None:
    lab.control.fare(Fare(server="^web-", boots=False))
    async with backend() as node_port:
        server_id = await lab.server(await lab.balancer(node_port), "web-1", 11)
        await lab.seen("web-1", is_down, "it does not boot")

        lab.control.fare(Fare(server="^web-", agent=False))
        silent = await lab.seen("web-1", lambda machine: machine.envoy_pid is not None, "Envoy runs")
        assert (silent.agent_pid, silent.priority) == (None, 150)

        lab.control.fare()
        served = await lab.seen("web-1", serving, "it serves")
        assert served.envoy_pid == silent.envoy_pid

        # What dies by itself is started again, as the image does it.
        assert served.agent_pid is not None
        os.kill(served.agent_pid, signal.SIGKILL)
        again = await lab.seen("web-1", lambda m: m.agent_pid not in (None, served.agent_pid), "another agent runs")
        assert again.envoy_pid == served.envoy_pid

        lab.switch(server_id, running=False)
        await lab.seen("web-1", lambda machine: machine.state is MachineState.OFF, "it is off")
        assert is_gone(served.envoy_pid)
        lab.switch(server_id, running=True)
        await lab.seen("web-1", serving, "it serves again")


async def test_a_killed_host_leaves_nothing_behind_and_the_next_one_resumes(lab: Lab) -> None:
    async with backend() as node_port:
        server_id = await lab.server(await lab.balancer(node_port), "web-1", 11)
        machine = await lab.seen("web-1", serving, "it serves")
        lab.control.fare(Fare(restart_delay=3))

        lab.stop(signal.SIGKILL)
        await lab.until(lambda: is_gone(machine.agent_pid) and is_gone(machine.envoy_pid), "its processes are gone")

        await lab.start()
        again = await lab.seen("web-1", serving, "it serves again")
        assert again.server_id == server_id
        assert await lab.answered(lab.floating_address) == "heard hello"
        assert [fare.restart_delay for fare in lab.control.fares()] == [3]


async def test_a_foreign_server_is_left_alone(lab: Lab) -> None:
    lab.built("other", f"{lab.network}.50", "#!/bin/sh\necho hello\n")
    found = await lab.seen("other", lambda machine: bool(machine.message), "it is reported")
    assert found.state is MachineState.FOREIGN
    assert "does not begin with #cloud-config" in found.message
    assert not list(lab.home.glob(f"{found.server_id}/*"))


async def _ready(lab: Lab, name: str) -> LoadBalancerMachine:
    found = None

    async def check() -> bool:
        nonlocal found
        found = LoadBalancerMachine.model_validate(await lab.kube.get(LOAD_BALANCER_MACHINE, lab.namespace, name))
        return health_of(found, datetime.now(UTC)).ready

    await lab.until(check, f"{name} is healthy")
    assert found is not None
    return found
