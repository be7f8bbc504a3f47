"""`perdure demo resilience` as a person or a CI job runs it: real processes killed, all clouds compared in the end."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import parse_qs, urlsplit

import boto3
import httpx
import pytest
from claim_domain import NAMES
from product import perdure

from domain.accounts import ACCOUNT
from domain.claims import RESOURCE_CLAIM
from domain.loadbalancers import LOAD_BALANCER_MACHINE, SERVICE
from engine.kube import CONFIG_MAP, KubeApi
from engine.settings import Settings
from localcloud.demo.loadbalancer import ours
from localcloud.deployment import Deployment
from localcloud.objects import key_of
from localcloud.openstack import build
from localcloud.openstack.project import project_session
from localcloud.progress import Silence
from localcloud.services import TEMPORAL, WATCH, WORKER
from localcloud.state import Cloud

pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.timeout(1200)]

DEMO_SECONDS = 500.0


@pytest.fixture
def openstack(fresh: Deployment) -> Deployment:
    """A deployment with AWS and OpenStack that stays up when the demo ends."""
    build.find_programs(Silence())
    fresh.up(clouds=(Cloud.AWS, Cloud.OPENSTACK), tether=True)
    return fresh


def test_nothing_is_lost_in_kills_and_a_stray_object_fails_the_audit(openstack: Deployment) -> None:
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
    again = perdure(openstack, "demo", "resilience", "--exit", seconds=DEMO_SECONDS)
    assert again.returncode == 1, again.stdout + again.stderr
    for stray in ("AWS account of stray", r"claimed resource of guid-stray \[0\]", "security group of stray"):
        assert re.search(f"{stray}: recorded none, held .*: leaked", again.stderr), again.stdout + again.stderr


def _the_link_lists_the_lifecycles(deployment: Deployment, said: str) -> None:
    """The printed link opens the web UI, whose API finds the demo's objects by the link's query."""
    found = re.search(r"The lifecycles of this demo in Temporal's web UI: (\S+)$", said, re.MULTILINE)
    assert found, said
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
            key_of(kind, obj).workflow_id
            for kind in kinds
            for obj in (await kube.list(kind)).items
            if kind is not SERVICE or ours(obj)
        }
    assert {id_.partition("/")[0] for id_ in found} == {kind.name for kind in kinds}
    return found


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
