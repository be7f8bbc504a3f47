"""OpenStack in the local deployment: it is the real one, can be disturbed and counted, and survives crashes."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from waiting import until

from localcloud import services
from localcloud.control import ControlRefusedError
from localcloud.deployment import Deployment
from localcloud.machines.contract import FloatingIp, Server
from localcloud.openstack import build
from localcloud.openstack.configuration import APIS
from localcloud.openstack.contract import FaultKind
from localcloud.openstack.control import OpenStackControl
from localcloud.openstack.loopback import Networks
from localcloud.openstack.programs import cache_directory
from localcloud.state import Cloud
from tests.running.failed_servers import end
from tests.running.programs import ROOT

# The first start takes half a minute on two idle cores, several times that on busy ones.
pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.timeout(400)]

# Runs in OpenStack's own environment, which has its client's library.
WITH_THE_SDK = """
import json, openstack
cloud = openstack.connect()
print(json.dumps({
    "project": cloud.current_project.name,
    "images": [image.name for image in cloud.image.images()],
    "flavors": sorted(flavor.name for flavor in cloud.compute.flavors()),
    "networks": sorted(network.name for network in cloud.network.networks()),
}))
"""


class User:
    """The project's member, as a plain HTTP client: one token, every call counted once."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        clouds = yaml.safe_load(Path(deployment.env()["OS_CLIENT_CONFIG_FILE"]).read_text())["clouds"]
        given = clouds[deployment.env()["OS_CLOUD"]]["auth"]
        domain = {"id": given["user_domain_id"]}
        user = {"name": given["username"], "password": given["password"], "domain": domain}
        scope = {"project": {"name": given["project_name"], "domain": domain}}
        identity = {"methods": ["password"], "password": {"user": user}}
        self._http = httpx.Client(timeout=60, trust_env=False)
        answer = self._http.post(
            f"{given['auth_url']}/auth/tokens", json={"auth": {"identity": identity, "scope": scope}}
        )
        answer.raise_for_status()
        self.project = str(answer.json()["token"]["project"]["id"])
        self._http.headers["X-Auth-Token"] = answer.headers["X-Subject-Token"]
        self.endpoints = {entry["name"]: entry["endpoints"][0]["url"] for entry in answer.json()["token"]["catalog"]}

    def send(self, service: str, method: str, path: str, body: object = None) -> httpx.Response:
        headers = {"X-OpenStack-Nova-API-Version": "2.90"} if service == "nova" else {}
        return self._http.request(method, f"{self.endpoints[service]}{path}", json=body, headers=headers)

    def call(self, service: str, method: str, path: str, body: object = None) -> dict[str, Any]:
        answer = self.send(service, method, path, body)
        answer.raise_for_status()
        return dict(answer.json()) if answer.content else {}

    def close(self) -> None:
        self._http.close()

    def network(self, name: str) -> str:
        return str(self.call("neutron", "GET", f"/v2.0/networks?name={name}")["networks"][0]["id"])

    def create_port(self, name: str) -> dict[str, Any]:
        body = {"port": {"name": name, "network_id": self.network("tenant")}}
        return dict(self.call("neutron", "POST", "/v2.0/ports", body)["port"])

    def ports(self, name: str) -> list[dict[str, Any]]:
        return list(self.call("neutron", "GET", f"/v2.0/ports?name={name}")["ports"])

    def create_server(self, name: str, port: str) -> str:
        image = self.call("glance", "GET", "/v2/images?name=loadbalancer")["images"][0]["id"]
        flavors = self.call("nova", "GET", "/flavors")["flavors"]
        server = {
            "name": name,
            "imageRef": image,
            "flavorRef": next(flavor["id"] for flavor in flavors if flavor["name"] == "m1.tiny"),
            "networks": [{"port": port}],
            "user_data": base64.b64encode(b"#cloud-config\n").decode(),
        }
        return str(self.call("nova", "POST", "/servers", {"server": server})["server"]["id"])

    def server(self, server: str) -> dict[str, Any]:
        return dict(self.call("nova", "GET", f"/servers/{server}")["server"])

    def await_status(self, server: str, status: str, seconds: float = 60) -> dict[str, Any]:
        until(lambda: self.server(server)["status"] == status, f"server {status}", seconds)
        return self.server(server)


@pytest.fixture(scope="module")
def openstack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment of OpenStack alone."""
    deployment = Deployment(tmp_path_factory.mktemp("openstack"))
    deployment.up(clouds=(Cloud.OPENSTACK,), only=services.OPENSTACK, tether=True)
    yield deployment
    end(deployment)


@pytest.fixture
def control(openstack: Deployment) -> Iterator[OpenStackControl]:
    with OpenStackControl.of(openstack) as control:
        control.clear()
        control.reset_ledger()
        yield control
        control.clear()


@pytest.fixture
def user(openstack: Deployment) -> Iterator[User]:
    user = User(openstack)
    yield user
    user.close()


# It is the real one.


def test_every_service_of_openstack_is_healthy(openstack: Deployment) -> None:
    status = openstack.status()

    assert status.healthy
    assert [row.name for row in status.services] == list(services.OPENSTACK)


def test_the_env_file_leads_clients_to_a_furnished_project(openstack: Deployment) -> None:
    plan = openstack.state.plan().openstack
    assert plan is not None
    script = f'. "{openstack.state.env_file}"; exec "{plan.python}" -c "$0"'

    output = subprocess.run(["sh", "-c", script, WITH_THE_SDK], capture_output=True, text=True, check=True).stdout

    found = json.loads(output)
    assert found["project"] == "perdure"
    assert "loadbalancer" in found["images"]
    assert found["flavors"] == ["m1.small", "m1.tiny"]
    assert found["networks"] == ["external", "tenant"]


def test_a_server_with_a_floating_address_becomes_active_and_goes(openstack: Deployment, user: User) -> None:
    networks = Networks(int((openstack.state.data("openstack") / "loopback").read_text()))
    port = user.create_port("whole")
    wanted = {"floatingip": {"floating_network_id": user.network("external"), "port_id": port["id"]}}
    floating_ip = user.call("neutron", "POST", "/v2.0/floatingips", wanted)["floatingip"]

    server = user.create_server("whole", port["id"])
    user.await_status(server, "ACTIVE")

    assert user.ports("whole")[0]["status"] == "ACTIVE"
    assert floating_ip["status"] == "ACTIVE"
    assert ip_address(port["fixed_ips"][0]["ip_address"]) in ip_network(networks.tenant)
    assert ip_address(floating_ip["floating_ip_address"]) in ip_network(networks.external)

    user.call("nova", "DELETE", f"/servers/{server}")
    until(lambda: user.send("nova", "GET", f"/servers/{server}").status_code == 404, "server gone")
    user.call("neutron", "DELETE", f"/v2.0/ports/{port['id']}")
    path = f"/v2.0/floatingips/{floating_ip['id']}"
    assert user.call("neutron", "GET", path)["floatingip"]["status"] == "DOWN"
    user.call("neutron", "DELETE", path)


def test_the_work_of_a_hypervisor_and_a_router_is_recorded(openstack: Deployment, user: User) -> None:
    ground = openstack.state.data("openstack") / "ground"
    port = user.create_port("ground")
    fixed_address = port["fixed_ips"][0]["ip_address"]
    wanted = {"floatingip": {"floating_network_id": user.network("external"), "port_id": port["id"]}}
    floating_ip = user.call("neutron", "POST", "/v2.0/floatingips", wanted)["floatingip"]
    lead = ground / "floatingips" / f"{floating_ip['id']}.json"

    def leads_to() -> tuple[str, str | None]:
        found = FloatingIp.model_validate_json(lead.read_bytes())
        return found.address, found.fixed_address

    assert leads_to() == (floating_ip["floating_ip_address"], fixed_address)

    id_ = user.create_server("ground", port["id"])
    user.await_status(id_, "ACTIVE")
    path = ground / "servers" / f"{id_}.json"
    server = Server.model_validate_json(path.read_bytes())
    assert (server.name, server.project, server.addresses) == ("ground", user.project, (fixed_address,))
    assert base64.b64decode(server.user_data) == b"#cloud-config\n"
    assert server.running

    user.call("nova", "POST", f"/servers/{id_}/action", {"os-stop": None})
    user.await_status(id_, "SHUTOFF")
    assert not Server.model_validate_json(path.read_bytes()).running
    user.call("nova", "POST", f"/servers/{id_}/action", {"os-start": None})
    user.await_status(id_, "ACTIVE")
    started = Server.model_validate_json(path.read_bytes())
    assert started.running
    assert started.boot != server.boot

    user.call("nova", "DELETE", f"/servers/{id_}")
    until(lambda: user.send("nova", "GET", f"/servers/{id_}").status_code == 404, "server gone")
    assert not path.exists()
    user.call("neutron", "DELETE", f"/v2.0/ports/{port['id']}")
    assert leads_to() == (floating_ip["floating_ip_address"], None)
    user.call("neutron", "DELETE", f"/v2.0/floatingips/{floating_ip['id']}")
    assert not lead.exists()


def test_the_catalog_names_every_api_where_it_listens(openstack: Deployment, user: User) -> None:
    listening = {name: openstack.service(name).url for name in APIS}

    assert {name: f"{httpx.URL(url).copy_with(path='')}" for name, url in user.endpoints.items()} == listening


# It can be disturbed.


def test_a_call_is_refused_before_its_effect(user: User, control: OpenStackControl) -> None:
    control.fault("neutron", "POST", "/ports$", count=1, status=409, type="OverQuota", message="Quota exceeded")
    body = {"port": {"name": "refused", "network_id": user.network("tenant")}}

    answer = user.send("neutron", "POST", "/v2.0/ports", body)

    assert answer.status_code == 409
    assert answer.json()["NeutronError"]["type"] == "OverQuota"
    assert user.ports("refused") == []
    assert user.send("neutron", "POST", "/v2.0/ports", body).status_code == 201


def test_a_call_is_refused_after_its_effect(user: User, control: OpenStackControl) -> None:
    control.fault("neutron", "POST", "/ports$", kind=FaultKind.AFTER, count=1, status=504)
    body = {"port": {"name": "lost", "network_id": user.network("tenant")}}

    assert user.send("neutron", "POST", "/v2.0/ports", body).status_code == 504
    assert len(user.ports("lost")) == 1


def test_an_answer_is_cut_off_after_its_effect(user: User, control: OpenStackControl) -> None:
    control.fault("neutron", "POST", "/ports$", kind=FaultKind.CUT, count=1)
    body = {"port": {"name": "cut", "network_id": user.network("tenant")}}

    with pytest.raises(httpx.RemoteProtocolError):
        user.send("neutron", "POST", "/v2.0/ports", body)

    assert len(user.ports("cut")) == 1


def test_nova_throttles_with_a_delay_and_strikes_the_chosen_call_only(user: User, control: OpenStackControl) -> None:
    control.fault("nova", "GET", "/servers", skip=1, count=1, status=429, headers={"Retry-After": "2"})

    answers = [user.send("nova", "GET", "/servers") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 429, 200]
    assert answers[1].headers["Retry-After"] == "2"
    assert "overLimit" in answers[1].json()
    assert control.faults("nova")[0].hits == 1


def test_a_fault_of_another_project_leaves_ours_alone(user: User, control: OpenStackControl) -> None:
    control.fault("neutron", project="0" * 32)
    user.ports("any")

    assert user.send("neutron", "GET", "/v2.0/ports").status_code == 200
    control.fault("neutron", project=user.project)
    assert user.send("neutron", "GET", "/v2.0/ports").status_code == 503


def test_a_fault_that_means_nothing_is_refused(control: OpenStackControl) -> None:
    with pytest.raises(ControlRefusedError, match="regular expression"):
        control.fault("nova", path="(")


def test_a_slow_boot_is_slow_and_a_failed_one_says_why(user: User, control: OpenStackControl) -> None:
    control.boots(boot_delay=4, boot_abort="^doomed")
    began = time.monotonic()
    slow = user.create_server("slow", user.create_port("slow")["id"])
    doomed = user.create_server("doomed", user.create_port("doomed")["id"])

    assert user.server(slow)["status"] == "BUILD"
    assert "aborted" in user.await_status(doomed, "ERROR")["fault"]["message"]
    user.await_status(slow, "ACTIVE")
    assert time.monotonic() - began >= 4


# It is counted.


def test_the_ledger_counts_each_call_of_a_client_once_and_none_of_the_services(
    openstack: Deployment, control: OpenStackControl
) -> None:
    user = User(openstack)
    port = user.create_port("counted")
    server = user.create_server("counted", port["id"])
    user.server(server)
    user.close()

    ledger = control.ledger(recent=True)

    assert ledger.by_route() == {
        "glance GET /v2/images": 1,
        "keystone POST /v3/auth/tokens": 1,
        "neutron GET /v2.0/networks": 1,
        "neutron POST /v2.0/ports": 1,
        "nova GET /v2.1/flavors": 1,
        "nova GET /v2.1/servers/{id}": 1,
        "nova POST /v2.1/servers": 1,
    }
    assert ledger.tokens() == 1
    assert ledger.mutating() == 2
    assert ledger.calls(project=user.project) == 6
    assert [call.method for call in ledger.recent] == ["POST", "GET", "POST", "GET", "GET", "POST", "GET"]


# It survives.


@pytest.mark.parametrize("name", ["nova", "neutron", "mariadb"])
def test_a_killed_service_comes_back_with_all_that_was_there(openstack: Deployment, user: User, name: str) -> None:
    port = user.create_port(f"before-{name}")
    server = user.create_server(f"before-{name}", port["id"])
    user.await_status(server, "ACTIVE")

    pid = openstack.kill(name)
    openstack.wait_service(name, other_than_pid=pid)

    for service, path in (("nova", f"/servers/{server}"), ("neutron", "/v2.0/ports"), ("glance", "/v2/images")):
        until(lambda: user.send(service, "GET", path).status_code == 200, f"{service} answers")  # noqa: B023
    assert user.server(server)["status"] == "ACTIVE"
    assert user.ports(f"before-{name}")[0]["id"] == port["id"]
    other = user.create_server(f"after-{name}", user.create_port(f"after-{name}")["id"])
    user.await_status(other, "ACTIVE")


def test_faults_outlive_the_process_that_they_disturb(openstack: Deployment, control: OpenStackControl) -> None:
    control.fault("keystone", "GET", "/v3$", id="lasting", count=2)
    control.boots(boot_delay=7)
    pid = openstack.kill("keystone")

    openstack.wait_service("keystone", other_than_pid=pid)

    assert [fault.id for fault in control.faults("keystone")] == ["lasting"]
    assert control.boots().boot_delay == 7


def test_a_rest_loses_nothing(openstack: Deployment, user: User) -> None:
    port = user.create_port("rested")
    openstack.down()

    openstack.up(clouds=(Cloud.OPENSTACK,), only=services.OPENSTACK, tether=True)

    again = User(openstack)
    assert [found["id"] for found in again.ports("rested")] == [port["id"]]
    assert len(again.call("neutron", "GET", "/v2.0/networks?name=tenant")["networks"]) == 1
    again.close()


# Its build.


def test_an_interrupted_build_leaves_nothing_that_would_be_found(openstack: Deployment, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    if (cache_directory() / "mariadb").is_dir():
        (cache / "mariadb").symlink_to(cache_directory() / "mariadb")
    program = (
        "import sys; from pathlib import Path; from localcloud.openstack.build import find_programs; "
        "from localcloud.progress import Silence; find_programs(Silence(), Path(sys.argv[1]))"
    )
    building = subprocess.Popen([sys.executable, "-c", program, str(cache)], cwd=ROOT)
    environment = cache / build.recipe() / "environment"
    until((environment / "bin" / "python").exists, "the environment is begun")

    building.send_signal(signal.SIGKILL)
    building.wait()

    assert not build.is_built(cache)
    until(lambda: not _processes_with(str(environment)), "the installer has ended with its parent")


def _processes_with(words: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_text().replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if words in line and process.name != str(os.getpid()):
            found.append(line)
    return found
