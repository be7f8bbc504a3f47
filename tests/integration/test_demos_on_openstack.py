"""`perdure demo loadbalancer` and `resilience` as a person or a CI job runs them, one after the other.

The one goes the whole way from a Service to a client's bytes; in the other, processes are killed, and all clouds are
compared in the end.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import boto3
import httpx
import pytest
from claim_domain import NAMES
from product import perdure
from waiting import until

from domain.accounts import ACCOUNT
from domain.claims import RESOURCE_CLAIM
from domain.loadbalancers import LOAD_BALANCER_MACHINE, SERVICE
from engine.kube import CONFIG_MAP, KubeApi
from engine.kube.json import key_of
from engine.settings import Settings
from localcloud.aws.control import Emulator
from localcloud.demo.cloud_audit import audit
from localcloud.demo.loadbalancer import ours
from localcloud.deployment import Deployment
from localcloud.openstack import build
from localcloud.openstack.project import project_session
from localcloud.progress import Silence
from localcloud.services import AWS, TEMPORAL, WATCH, WORKER
from localcloud.state import Cloud
from tests.running.failed_servers import end

pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.timeout(1200)]

DEMO_SECONDS = 560.0
STRAYS = {"AWS account of stray", "claimed resource of guid-stray [0]", "security group of stray"}


@pytest.fixture(scope="module")
def openstack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment with AWS and OpenStack that stays up when a demo ends."""
    build.find_programs(Silence())
    deployment = Deployment(tmp_path_factory.mktemp("demos"))
    deployment.up(clouds=(Cloud.AWS, Cloud.OPENSTACK), tether=True)
    yield deployment
    end(deployment)


def test_the_demo_of_a_load_balancer_settles_with_all_requests_answered(openstack: Deployment) -> None:
    done = perdure(openstack, "demo", "loadbalancer", "--exit", seconds=DEMO_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in (
        "The Service's address is 127.",
        "The first request was answered",
        "2 machines are ready",
        "40 requests to http://127.",
        "has the address; requests are answered again",
        "A new machine is ready in its place",
    ):
        assert line in done.stdout, done.stdout


def test_nothing_is_lost_in_kills_and_a_stray_object_is_audited(openstack: Deployment) -> None:
    played = perdure(openstack, "demo", "resilience", "--exit", seconds=DEMO_SECONDS)
    assert played.returncode == 0, played.stdout + played.stderr
    # Each service is started again once per kill.
    kills = {name: openstack.service(name).restarts for name in (WORKER, WATCH, TEMPORAL)}
    assert kills == {WORKER: 2, WATCH: 2, TEMPORAL: 1}, played.stdout
    assert "one to one: nothing leaked, duplicated or missing" in played.stdout
    for thing in ("AWS account", "access key", "support case", "ResourceHandle", "claimed resource"):
        assert re.search(rf"^ +{thing} .* agreed$", played.stdout, re.MULTILINE), thing
    for thing in ("floating IP", "security group", "port", "server", "running machine"):
        assert re.search(rf"^ +{thing} .* agreed$", played.stdout, re.MULTILINE), thing
    _the_link_lists_the_lifecycles(openstack, played.stdout)

    _put_strays(openstack)
    until(lambda: asyncio.run(_leaked(openstack)) == STRAYS, "the audit finds what is stray, and that alone")


@pytest.mark.slow
def test_a_repetition_fails_for_what_is_stray(fresh: Deployment) -> None:
    build.find_programs(Silence())
    fresh.up(clouds=(Cloud.AWS, Cloud.OPENSTACK), tether=True)
    played = perdure(fresh, "demo", "resilience", "--exit", seconds=DEMO_SECONDS)
    assert "Applied pool.yaml" in played.stdout
    _put_strays(fresh)
    played = perdure(fresh, "demo", "resilience", "--exit", seconds=DEMO_SECONDS)
    assert "Enlarged the AccountPool" in played.stdout
    assert played.returncode == 1, played.stdout + played.stderr
    for stray in STRAYS:
        assert re.search(f"{re.escape(stray)}: recorded none, held .*: leaked", played.stderr), played.stderr


def _the_link_lists_the_lifecycles(deployment: Deployment, text: str) -> None:
    """The printed link opens the web UI, whose API finds the demo's objects by the link's query."""
    found = re.search(r"The lifecycles of this demo in Temporal's web UI: (\S+)$", text, re.MULTILINE)
    assert found, text
    link = urlsplit(found[1])
    assert "text/html" in httpx.get(found[1]).headers["Content-Type"]
    api = f"{link.scheme}://{link.netloc}/api/v1{link.path}"
    answer = httpx.get(api, params={"query": parse_qs(link.query)["query"][0]})
    assert answer.status_code == 200, answer.text
    listed = {each["execution"]["workflowId"] for each in answer.json()["executions"]}
    assert asyncio.run(_lifecycles(deployment)) <= listed


async def _lifecycles(deployment: Deployment) -> set[str]:
    kinds = (ACCOUNT, RESOURCE_CLAIM, SERVICE, LOAD_BALANCER_MACHINE)
    async with await KubeApi.open(Settings(), "tests", deployment.env()["KUBECONFIG"]) as kube:
        found = {
            key_of(kind.name, obj).workflow_id
            for kind in kinds
            for obj in (await kube.list(kind)).items
            if kind is not SERVICE or ours(obj)
        }
    assert {id_.partition("/")[0] for id_ in found} == {kind.name for kind in kinds}
    return found


async def _leaked(deployment: Deployment) -> set[str]:
    """What the demo's audit finds in the clouds that no custom resource records."""
    async with await KubeApi.open(Settings(), "tests", deployment.env()["KUBECONFIG"]) as kube:
        with Emulator(deployment.service(AWS).url or "") as emulator:
            lines = await audit(kube, deployment, emulator)
    return {f"{line.thing} of {line.owner}" for line in lines if line.problem.startswith("leaked")}


def _put_strays(deployment: Deployment) -> None:
    """One thing in each cloud that no custom resource knows."""
    env = deployment.env()
    session = boto3.Session(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], region_name="us-east-1")
    organizations = session.client("organizations", endpoint_url=env["AWS_ENDPOINT_URL"])
    organizations.create_account(Email="stray@example.com", AccountName="stray")
    project_session(deployment).post(
        "/v2.0/security-groups",
        json={"security_group": {"name": "stray"}},
        endpoint_filter={"service_type": "network", "interface": "public"},
    )
    asyncio.run(_put_stray_resource(deployment))


async def _put_stray_resource(deployment: Deployment) -> None:
    marks = {NAMES.resource_handle_name_annotation: "guid-stray", NAMES.resource_index_annotation: "0"}
    async with await KubeApi.open(Settings(), "tests", deployment.env()["KUBECONFIG"]) as kube:
        await kube.create(CONFIG_MAP, {"metadata": {"name": "exam-stray", "annotations": marks}}, "labs")
