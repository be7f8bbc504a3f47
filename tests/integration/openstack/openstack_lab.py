"""OpenStack's effects against the real control plane: what the tests of this folder work with.

Attempts run in Temporal's own `ActivityEnvironment`, numbered as the server would number them. Every load balancer has
a name of its own, so that nothing of another test is in the way.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import uuid4

import yaml
from temporalio.testing import ActivityEnvironment

from activities.openstack.observation import observe_load_balancer, observe_machine
from activities.openstack.projects import Projects
from activities.openstack.session import Api, Project
from activities.openstack.steps import await_server, carry_out
from domain.loadbalancers.cloud.deletion import remove_load_balancer, remove_machine
from domain.loadbalancers.cloud.folded_results import Brought, changed, machine_changed
from domain.loadbalancers.cloud.load_balancer import CloudPlan, plan_cloud
from domain.loadbalancers.cloud.machine import MachinePlan, ServedBalancer, ServerState, plan_machine
from domain.loadbalancers.cloud.objects import LoadBalancerCloud, MachineCloud, Server
from domain.loadbalancers.cloud.steps import CreateServer, Step
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from domain.resource import timestamp
from domain.writes import JsonPatch, merge
from engine.errors import Absent, Pending, Throttled, Unavailable
from engine.kube import NAMESPACE, SECRET, BlockingKube
from engine.settings import Settings
from localcloud.deployment import Deployment
from localcloud.openstack.control import OpenStackControl

R = TypeVar("R")
C = TypeVar("C", LoadBalancer, LoadBalancerMachine)

NAMESPACE_NAME = "lbs"
SECRET_NAME = "cloud"
# The server's patience, shortened: what it would wait for longer is asked for again after so many seconds.
LONGEST_WAIT = 1.0
USER_DATA = "#cloud-config\n# a token that no log may show\n"


class Lab:
    """What a test works with."""

    def __init__(
        self, deployment: Deployment, control: OpenStackControl, kube: BlockingKube, settings: Settings
    ) -> None:
        self.deployment = deployment
        self.control = control
        self.kube = kube
        self.settings = settings
        self.projects = Projects(kube, settings)
        clouds = yaml.safe_load((deployment.state.data("openstack") / "clouds.yaml").read_text())["clouds"]
        self.cloud: dict[str, Any] = clouds["perdure"]
        self.admin: dict[str, Any] = clouds["perdure-admin"]
        try:
            kube.get(NAMESPACE, "", NAMESPACE_NAME)
        except Absent:
            kube.create(NAMESPACE, {"metadata": {"name": NAMESPACE_NAME}})
        self.put_secret(SECRET_NAME)
        self._ids: dict[str, str] = {}

    # --- credentials ---

    def put_secret(self, name: str, cloud: dict[str, Any] | None = None, **changes: str) -> ProjectReference:
        """The Secret of that name, with these credentials and changes of them."""
        auth = (cloud or self.cloud)["auth"]
        fields = {
            "auth-url": auth["auth_url"],
            "username": auth["username"],
            "password": auth["password"],
            "domain-id": auth["user_domain_id"],
            "project-name": auth["project_name"],
            "region": self.cloud["region_name"],
            **changes,
        }
        lines = "\n".join(f"{key} = {value}" for key, value in fields.items())
        encoded = base64.b64encode(f"[Global]\n{lines}\n".encode()).decode()
        content = {"data": {"cloudprovider.conf": encoded}}
        try:
            self.kube.patch(SECRET, NAMESPACE_NAME, name, content)
        except Absent:
            self.kube.create(SECRET, {"metadata": {"name": name}, **content}, NAMESPACE_NAME)
        return ProjectReference(namespace=NAMESPACE_NAME, secret=name)

    def remove_secret(self, name: str) -> None:
        """Delete the Secret of that name."""
        self.kube.delete(SECRET, NAMESPACE_NAME, name)

    def project(self, reference: ProjectReference | None = None) -> Project:
        """The project that the lab's Secret leads to."""
        return self.projects.project(reference or ProjectReference(namespace=NAMESPACE_NAME, secret=SECRET_NAME))

    # --- attempts ---

    def run(self, effect: Callable[[], R], *, attempt: int = 1) -> R:
        """One attempt."""
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, attempt=attempt, started_time=datetime.now(UTC))
        return environment.run(effect)

    def attempt(self, step: Step, *, attempt: int = 1) -> Brought:
        """One attempt of a step."""
        return self.run(lambda: carry_out(self.project(), step, lambda: USER_DATA), attempt=attempt)

    def insist(self, effect: Callable[[], R], seconds: float = 60) -> R:
        """As the server does: attempt after attempt while the error passes by itself."""
        deadline, number = time.monotonic() + seconds, 1
        while True:
            try:
                return self.run(effect, attempt=number)
            except (Pending, Throttled, Unavailable) as error:
                if time.monotonic() > deadline:
                    raise
                wanted = error.delay.total_seconds() if error.delay else 0.1
                time.sleep(min(wanted, LONGEST_WAIT))
                number += 1

    def carry_out(self, step: Step) -> Brought:
        """A step, as often as it takes."""
        project = self.project()
        return self.insist(lambda: carry_out(project, step, lambda: USER_DATA))

    # --- load balancers and machines ---

    def network(self, name: str) -> str:
        """The id of a network."""
        return self._id(name, Api.NEUTRON, "/networks", "networks")

    def flavor(self) -> str:
        """The id of the smallest flavor."""
        return self._id("m1.tiny", Api.NOVA, "/flavors", "flavors")

    def image(self) -> str:
        """The id of the image."""
        return self._id("loadbalancer", Api.GLANCE, "/images", "images")

    def _id(self, name: str, api: Api, path: str, plural: str) -> str:
        if name not in self._ids:
            with closing(Project(self.project_credentials(), self.project().guard, self.settings)) as other:
                # Tenants of other projects have networks of the same name.
                listed = other.pages(api, plural, path, plural) if api is not Api.NEUTRON else self._networks(other)
            self._ids[name] = next(str(each["id"]) for each in listed if each["name"] == name)
        return self._ids[name]

    def _networks(self, project: Project) -> list[dict[str, object]]:
        found = project.get(Api.NEUTRON, "network", "/networks", what="all", holds="networks")
        assert isinstance(found, list)
        return found

    def project_credentials(self) -> Any:
        """The credentials of the lab's project."""
        from activities.openstack.credentials import Credentials

        auth = self.cloud["auth"]
        return Credentials(
            auth_url=auth["auth_url"],
            username=auth["username"],
            password=auth["password"],
            domain_id=auth["user_domain_id"],
            project_name=auth["project_name"],
        )

    def balancer(self, **changes: Any) -> LoadBalancer:
        """A LoadBalancer of which nothing is there yet."""
        body: dict[str, Any] = {
            "metadata": {"name": f"web--{uuid4().hex[:8]}", "namespace": NAMESPACE_NAME, "uid": str(uuid4())},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "ports": [
                    {"name": "http", "protocol": "TCP", "port": 8080},
                    {"name": "https", "protocol": "TCP", "port": 8443},
                ],
                "infrastructure": self.infrastructure(),
            },
        }
        return LoadBalancer.model_validate(merge(body, changes))

    def infrastructure(self) -> dict[str, Any]:
        """What its machines are made from."""
        return {
            "defaultNetwork": {"floatingNetID": self.network("external"), "networkID": self.network("tenant")},
            "flavor": {"flavorID": self.flavor()},
            "image": {"imageID": self.image()},
            "authSecretRef": {"name": SECRET_NAME, "namespace": NAMESPACE_NAME},
        }

    def machine(self, balancer: LoadBalancer, **changes: Any) -> LoadBalancerMachine:
        """A machine of it."""
        meta = balancer.metadata
        body: dict[str, Any] = {
            "metadata": {"name": f"{meta.name}-{uuid4().hex[:5]}", "namespace": meta.namespace, "uid": str(uuid4())},
            "spec": {
                "infrastructure": self.infrastructure(),
                "portID": balancer.status.port_id,
                "serverGroupID": balancer.status.server_group_id or "",
                "loadBalancerRef": {"name": meta.name, "namespace": meta.namespace},
            },
        }
        return LoadBalancerMachine.model_validate(merge(body, changes))

    def settle(self, balancer: LoadBalancer) -> tuple[LoadBalancer, LoadBalancerCloud]:
        """The LoadBalancer with everything, observed once and carried out by its own plans."""
        cloud = self.insist(lambda: observe_load_balancer(self.project(), balancer))
        for _ in range(10):
            plan: CloudPlan = plan_cloud(balancer, cloud, datetime.now(UTC))
            balancer = patched(balancer, plan.status)
            assert not plan.problem, plan.problem
            if plan.settled:
                return balancer, cloud
            for step in plan.steps:
                cloud = changed(cloud, self.carry_out(step))
        raise AssertionError(f"it does not settle: {plan.steps}")

    def boot(self, balancer: LoadBalancer, machine: LoadBalancerMachine) -> tuple[LoadBalancerMachine, MachineCloud]:
        """The machine with its port and an ACTIVE server."""
        cloud = self.insist(lambda: observe_machine(self.project(), machine))
        for _ in range(10):
            plan: MachinePlan = plan_machine(machine, cloud, ServedBalancer.of(balancer))
            machine = patched(machine, plan.status)
            assert not plan.problem, plan.problem
            if plan.settled:
                assert plan.server is ServerState.ACTIVE
                return machine, cloud
            for step in plan.steps:
                brought = self.carry_out(step)
                cloud = machine_changed(cloud, brought)
                if isinstance(step, CreateServer) and brought.server is not None:
                    cloud = machine_changed(cloud, Brought(server=self.await_server(brought.server.id)))
        raise AssertionError(f"it does not settle: {plan}")

    def await_server(self, server_id: str) -> Server:
        """The server, once it is not being built any more."""
        server = self.insist(lambda: await_server(self.project(), server_id))
        assert server is not None
        return server

    def remove_machine(self, machine: LoadBalancerMachine) -> None:
        """Everything of a machine goes."""
        machine = deleted(machine)
        cloud = self.insist(lambda: observe_machine(self.project(), machine))
        while steps := remove_machine(machine, cloud).steps:
            for step in steps:
                cloud = machine_changed(cloud, self.carry_out(step))

    def remove(self, balancer: LoadBalancer) -> None:
        """Everything of a LoadBalancer goes."""
        balancer = deleted(balancer)
        cloud = self.insist(lambda: observe_load_balancer(self.project(), balancer))
        while steps := remove_load_balancer(balancer, cloud).steps:
            for step in steps:
                cloud = changed(cloud, self.carry_out(step))

    def left(self, balancer: LoadBalancer) -> LoadBalancerCloud:
        """What is there of a LoadBalancer now, whatever its status says."""
        bare = patched(deleted(balancer), {"status": dict.fromkeys(balancer.status.model_dump(by_alias=True))})
        return self.insist(lambda: observe_load_balancer(self.project(), bare))


def patched(resource: C, patch: JsonPatch) -> C:
    """The resource after a merge patch."""
    body = resource.model_dump(mode="json", by_alias=True, exclude_none=True)
    return type(resource).model_validate(merge(body, patch))


def deleted(resource: C) -> C:
    """The resource, while it is being deleted."""
    return patched(resource, {"metadata": {"deletionTimestamp": timestamp(datetime.now(UTC))}})
