"""How the audit of load balancers looks: over real HTTP at a small cloud, with reading calls alone."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from lb_objects import NOW, balancer
from os_cloud import SmallCloud

from activities.openstack.projects import Projects
from domain.identity import Kind
from engine.errors import Absent, Denied
from engine.kube import BlockingKube
from engine.kube.api import Listing
from engine.settings import Settings
from starters.cli.audits.loadbalancers import observe
from starters.cli.audits.loadbalancers.findings import findings

CONFIGURATION = """[Global]
auth-url = {url}/v3
username = u
password = p
domain-id = default
project-id = project
"""


class PaperCluster(BlockingKube):
    """Objects by kind, as an API server would list them, but for kinds that these credentials may not list."""

    def __init__(self, **objects: list[dict[str, Any]]) -> None:
        self.objects = objects
        self.denied: set[str] = set()

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, object]:
        found = [each for each in self.objects.get(kind.name, []) if each["metadata"]["name"] == name]
        if not found:
            raise Absent(f"{kind.name} {namespace}/{name}")
        return found[0]

    def list(self, kind: Kind, namespace: str = "", **_: Any) -> Listing:
        if kind.name in self.denied:
            raise Denied(f"list {kind.plural}: forbidden")
        return Listing(items=list(self.objects.get(kind.name, [])), resource_version="1")


def cluster(cloud: SmallCloud, *, balancers: bool = True) -> PaperCluster:
    content = base64.b64encode(CONFIGURATION.format(url=cloud.url).encode()).decode()
    meta = {"name": "cloud", "namespace": "lbs", "resourceVersion": "1"}
    shop = balancer(status={"externalIP": None, "floatingID": None}).model_dump(mode="json", by_alias=True)
    return PaperCluster(
        LoadBalancer=[shop] if balancers else [],
        Secret=[{"metadata": meta, "data": {"cloudprovider.conf": content}}, {"metadata": {"name": "other"}}],
        Role=[{"metadata": {"name": "operators"}, "rules": [{"resources": ["pods"]}]}],
    )


def lines_of(kube: PaperCluster, *, thorough: bool = False) -> list[str]:
    projects = Projects(kube, Settings(mode="observe"))
    try:
        found = observe(kube, projects, thorough)
    finally:
        projects.close()
    return [f"{each.subject}: {each.problem}" for each in findings(found, NOW)]


def test_a_project_is_five_lists_and_nothing_is_changed(cloud: SmallCloud) -> None:
    assert lines_of(cluster(cloud)) == ["LoadBalancer lbs/web--shop: has drifted: create security group lbs/web--shop"]
    assert sorted(cloud.calls) == [
        "GET /v2.0/floatingips",
        "GET /v2.0/ports",
        "GET /v2.0/security-groups",
        "GET /v2.1/os-server-groups",
        "GET /v2.1/servers/detail",
    ]


def test_a_project_that_no_object_names_any_more_is_found_by_its_secret(cloud: SmallCloud) -> None:
    cloud.put("security-groups", name="lbs/web--shop", description="perdure:gone")
    kube = cluster(cloud, balancers=False)
    assert lines_of(kube) == []
    assert cloud.calls == []
    (line,) = lines_of(kube, thorough=True)
    assert line.endswith("(lbs/web--shop), Secret lbs/cloud: created for gone, which does not exist")


def test_a_denied_list_is_reported_and_the_rest_is_audited(
    cloud: SmallCloud, capsys: pytest.CaptureFixture[str]
) -> None:
    kube = cluster(cloud)
    kube.denied = {"Role", "Secret"}
    assert len(lines_of(kube, thorough=True)) == 1
    output = capsys.readouterr().err
    assert "skipped: Roles of machines in lbs" in output
    assert "only the projects of LoadBalancers are audited" in output


def test_a_project_without_credentials_is_reported(cloud: SmallCloud) -> None:
    kube = cluster(cloud)
    kube.objects["Secret"] = []
    (line,) = lines_of(kube)
    assert line.startswith("Secret lbs/cloud: its project, used by 1 objects, cannot be read: Secret lbs/cloud with an")


def test_a_silent_project_is_reported_and_its_objects_not_believed_lost(cloud: SmallCloud) -> None:
    kube = cluster(cloud)
    cloud.trouble = lambda call: "before" if "floatingips" in call else ""
    (line,) = lines_of(kube)
    assert "cannot be read" in line
