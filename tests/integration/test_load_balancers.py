"""Load balancers on a real OpenStack and a real API server: what is made in the cloud, retained, scaled and deleted.

Looked at from the cloud's side: what the machines' agents do and say is held by `machines/` and the demo.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import httpx
import pytest
import yaml
from waiting import eventually

from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from engine.errors import Absent, Conflict
from engine.kube import EVENT, NAMESPACE, SECRET, KubeApi
from engine.kube.json import at, text
from engine.settings import Settings
from localcloud.deployment import Deployment
from localcloud.openstack.control import OpenStackControl
from localcloud.state import Cloud
from tests.running.failed_servers import end

pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.timeout(400)]

SHOP = "shop"


class Project:
    """The project's member, as a plain HTTP client."""

    def __init__(self, deployment: Deployment) -> None:
        file = deployment.env()["OS_CLIENT_CONFIG_FILE"]
        with open(file, encoding="utf-8") as read:
            self.given: dict[str, str] = yaml.safe_load(read)["clouds"][deployment.env()["OS_CLOUD"]]["auth"]
        domain = {"id": self.given["user_domain_id"]}
        user = {"name": self.given["username"], "password": self.given["password"], "domain": domain}
        scope = {"project": {"name": self.given["project_name"], "domain": domain}}
        identity = {"methods": ["password"], "password": {"user": user}}
        self._http = httpx.Client(timeout=60, trust_env=False)
        body = {"auth": {"identity": identity, "scope": scope}}
        answer = self._http.post(f"{self.given['auth_url']}/auth/tokens", json=body)
        answer.raise_for_status()
        self._http.headers["X-Auth-Token"] = answer.headers["X-Subject-Token"]
        self._endpoints = {each["name"]: each["endpoints"][0]["url"] for each in answer.json()["token"]["catalog"]}

    def get(self, service: str, path: str) -> dict[str, Any]:
        answer = self._http.get(f"{self._endpoints[service]}{path}")
        answer.raise_for_status()
        return dict(answer.json())

    def close(self) -> None:
        self._http.close()

    def names(self, collection: str) -> list[str]:
        """The names (of floating IPs: descriptions) of what load balancers have in the project."""
        found = self.get("neutron", f"/v2.0/{collection}")[collection.replace("-", "_")]
        named = [str(each.get("name") or each.get("description") or "") for each in found]
        return sorted(name for name in named if name.startswith(f"{SHOP}/"))

    def servers(self) -> dict[str, str]:
        return {each["name"]: each["status"] for each in self.get("nova", "/servers/detail")["servers"]}

    def rules(self, group: str) -> int:
        groups = self.get("neutron", f"/v2.0/security-groups?name={group}")["security_groups"]
        return len(groups[0]["security_group_rules"]) if groups else 0


@pytest.fixture(scope="module")
def openstack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A whole deployment with OpenStack, worker and watcher."""
    deployment = Deployment(tmp_path_factory.mktemp("balancers"))
    deployment.up(clouds=(Cloud.OPENSTACK,), tether=True)
    yield deployment
    end(deployment)


@pytest.fixture
def project(openstack: Deployment) -> Iterator[Project]:
    found = Project(openstack)
    yield found
    found.close()


@pytest.fixture
async def shop(openstack: Deployment, project: Project) -> AsyncIterator[KubeApi]:
    """The API server, with a namespace that has the project's credentials."""
    async with await KubeApi.open(Settings(), kubeconfig=str(openstack.env()["KUBECONFIG"])) as kube:
        given = project.given
        conf = "\n".join(
            (
                "[Global]",
                f"auth-url={given['auth_url']}",
                f"username={given['username']}",
                f"password={given['password']}",
                f"domain-id={given['user_domain_id']}",
                f"project-name={given['project_name']}",
            )
        )
        secret = {"metadata": {"name": "cloud"}, "stringData": {"cloudprovider.conf": conf}}
        with suppress(Conflict):  # a test before has made both
            await kube.create(NAMESPACE, {"metadata": {"name": SHOP}})
            await kube.create(SECRET, secret, SHOP)
        yield kube


async def test_a_load_balancer_lives_in_the_cloud_from_its_creation_to_its_deletion(
    openstack: Deployment, shop: KubeApi, project: Project
) -> None:
    await shop.create(LOAD_BALANCER, balancer(project), SHOP)

    await eventually(lambda: running(project, 2), "two servers run", seconds=120)
    found = await shop.get(LOAD_BALANCER, SHOP, "web")
    assert text(found, "status", "externalIP")
    assert project.names("security-groups") == project.names("floatingips") == [f"{SHOP}/web"]
    machines = [text(each, "metadata", "name") for each in (await shop.list(LOAD_BALANCER_MACHINE, SHOP)).items]
    assert sorted(project.servers()) == sorted(machines)
    assert project.names("ports") == sorted([f"{SHOP}/web", *(f"{SHOP}/{name}" for name in machines)])
    assert [at(each, "spec", "replicas") for each in (await shop.list(LOAD_BALANCER_SET, SHOP)).items] == [2]

    events = [each for each in (await shop.list(EVENT, SHOP)).items if text(each, "reason") == "Created"]
    assert sorted(text(each, "involvedObject", "name") for each in events) == sorted(machines)
    assert {text(each, "source", "component") for each in events} == {"LoadBalancerSet"}

    rules = project.rules(f"{SHOP}/web")
    port = {"port": 443, "protocol": "TCP", "nodePort": 30443, "targetPort": 443}
    await shop.patch(LOAD_BALANCER, SHOP, "web", {"spec": {"ports": [*ports(), port]}}, field_manager="kubectl")
    await eventually(lambda: holds(lambda: project.rules(f"{SHOP}/web") == rules + 2), "the new port is let in")
    assert sorted(project.servers()) == sorted(machines), "no machine is replaced for a port"

    await shop.patch(LOAD_BALANCER, SHOP, "web", {"spec": {"replicas": 1}}, field_manager="kubectl")
    await eventually(lambda: running(project, 1), "one server is left", seconds=90)

    last = next(iter(project.servers()))
    await shop.delete(LOAD_BALANCER_MACHINE, SHOP, last)
    await eventually(lambda: holds(lambda: len(project.servers()) == 1 and last not in project.servers()), "a new one")

    await shop.delete(LOAD_BALANCER, SHOP, "web")
    await eventually(lambda: gone(shop), "the LoadBalancer is gone", seconds=120)
    assert project.servers() == {}
    assert [project.names(each) for each in ("security-groups", "floatingips", "ports")] == [[], [], []]


@pytest.mark.complete
async def test_an_object_whose_answer_is_lost_is_made_once(
    openstack: Deployment, shop: KubeApi, project: Project
) -> None:
    with OpenStackControl.of(openstack) as control:
        control.clear()
        for service in ("neutron", "nova"):
            control.fault(service, method="POST", kind="cut", count=3)  # done, but the answer is lost
        await shop.create(LOAD_BALANCER, balancer(project), SHOP)
        await eventually(lambda: running(project, 2), "two servers run", seconds=150)
        control.clear()
    assert project.names("security-groups") == project.names("floatingips") == [f"{SHOP}/web"]
    assert len(project.names("ports")) == 3
    await shop.delete(LOAD_BALANCER, SHOP, "web")
    await eventually(lambda: gone(shop), "the LoadBalancer is gone", seconds=120)
    assert project.servers() == {}


BIRTH = (
    ("neutron", "POST", "/security-groups$"),
    ("neutron", "POST", "/security-group-rules$"),
    ("neutron", "POST", "/ports$"),
    ("neutron", "POST", "/floatingips$"),
    ("nova", "POST", "/servers$"),
)
END = (
    ("nova", "DELETE", "/servers/"),
    ("neutron", "DELETE", "/floatingips/"),
    ("neutron", "DELETE", "/ports/"),
    ("neutron", "DELETE", "/security-groups/"),
)


@pytest.mark.chaos
@pytest.mark.timeout(900)
async def test_a_worker_that_is_killed_within_each_effect_leaves_one_of_each_and_then_none(
    openstack: Deployment, shop: KubeApi, project: Project
) -> None:
    """Row h: the call is under way when its worker dies, and has its effect all the same."""
    async with await KubeApi.open(Settings(), kubeconfig=str(openstack.env()["KUBECONFIG"])) as kube:
        with OpenStackControl.of(openstack) as control:
            control.clear()
            making = asyncio.create_task(killed_within(openstack, control, BIRTH))
            await kube.create(LOAD_BALANCER, balancer(project), SHOP)
            await making
            await eventually(lambda: running(project, 2), "two servers run", seconds=240)
            await eventually(
                lambda: holds(lambda: settled_in(project)), "one of each, two machines' ports", seconds=120
            )
            ending = asyncio.create_task(killed_within(openstack, control, END))
            await kube.delete(LOAD_BALANCER, SHOP, "web")
            await ending
            await eventually(lambda: gone(kube), "the LoadBalancer is gone", seconds=240)
        assert project.servers() == {}
        assert [project.names(each) for each in ("security-groups", "floatingips", "ports")] == [[], [], []]


async def killed_within(
    openstack: Deployment, control: OpenStackControl, calls: Sequence[tuple[str, str, str]]
) -> None:
    for service, method, path in calls:
        fault = control.fault(service, method, path, kind="delay", delay_seconds=3, count=1)
        what = f"{method} {path} is under way"
        await eventually(lambda s=service, f=fault: holds(lambda: hits(control, s, f.id) > 0), what, seconds=240)  # type: ignore[misc]
        pid = await asyncio.to_thread(openstack.kill, "worker", signal.SIGKILL)
        await asyncio.to_thread(openstack.wait_service, "worker", other_than_pid=pid)


def hits(control: OpenStackControl, service: str, id_: str) -> int:
    return next((fault.hits for fault in control.faults(service) if fault.id == id_), 0)


def settled_in(project: Project) -> bool:
    return (
        project.names("security-groups") == project.names("floatingips") == [f"{SHOP}/web"]
        and len(project.names("ports")) == 3
        and len(project.servers()) == 2
    )


async def running(project: Project, count: int) -> bool:
    servers = project.servers()
    return len(servers) == count and set(servers.values()) == {"ACTIVE"}


async def holds(condition: Callable[[], bool]) -> bool:
    return condition()


async def gone(kube: KubeApi) -> bool:
    try:
        await kube.get(LOAD_BALANCER, SHOP, "web")
    except Absent:
        return True
    return False


def ports() -> list[dict[str, object]]:
    return [{"port": 80, "protocol": "TCP", "nodePort": 30080, "targetPort": 80}]


def balancer(project: Project) -> dict[str, object]:
    networks = {each["name"]: each["id"] for each in project.get("neutron", "/v2.0/networks")["networks"]}
    flavors = {each["name"]: each["id"] for each in project.get("nova", "/flavors")["flavors"]}
    image = project.get("glance", "/v2/images?name=loadbalancer")["images"][0]["id"]
    return {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"yawol.stackit.cloud/loadbalancer": f"web-{time.monotonic_ns()}"}},
            "ports": ports(),
            "endpoints": [{"name": "node-1", "addresses": ["127.0.0.1"]}],
            "infrastructure": {
                "networkID": networks["tenant"],
                "floatingNetID": networks["external"],
                "flavor": {"flavor_id": flavors["m1.tiny"]},
                "image": {"image_id": image},
                "authSecretRef": {"name": "cloud", "namespace": SHOP},
            },
        },
    }
