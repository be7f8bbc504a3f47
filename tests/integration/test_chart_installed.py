"""The Helm chart by the real Helm on a real API server, and the processes that it runs under the rights that it gives.

Every set of values in the chart's `ci/` is installed: the server checks each object strictly, and admits a pod of each
Deployment into a namespace that enforces the restricted Pod Security Standard. There are no nodes, so the commands of
the Deployments are started as local processes, with the variables of their ConfigMap and the tokens of their accounts;
each demo is played on them.
The kinds of KEDA and the Prometheus operator are served without their schemas, which no package index has: their shape
is held by what their documentation says.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm_program import find_helm
from product import process
from rich.console import Console
from service_accounts import kubeconfig_of
from waiting import eventually

from domain.accounts import ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.audit_report import CONFIG_MAP_NAME, reports_in
from domain.built_in_kinds import CUSTOM_RESOURCE_DEFINITION
from domain.claims import RESOURCE_CLAIM
from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER
from domain.threescale import PRODUCT
from engine.errors import Absent, Conflict, Denied
from engine.kube import CONFIG_MAP, NAMESPACE, SECRET, KubeApi
from engine.kube.json import JsonObject, at, sequence, text
from engine.settings import Settings
from localcloud import services
from localcloud.demo.scenarios import SCENARIOS
from localcloud.deployment import Deployment
from localcloud.openstack import build
from localcloud.progress import ConsoleNarrator, Silence
from localcloud.state import Cloud
from tests.running.audit_log import audit_events
from tests.running.failed_servers import end
from tests.running.programs import COMMAND, ROOT, command_line
from workers.task_queues import queues_of

pytestmark = [pytest.mark.slow, pytest.mark.integration]

CHART = Path(__file__).parents[2] / "deploy" / "chart" / "perdure"
SETS = sorted(path.stem for path in (CHART / "ci").glob("*.yaml"))
POD = Kind(name="Pod", group="", version="v1", plural="pods", area="")
SERVICE_ACCOUNT = Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area="")
TENANT = "chart-tenant"
# Served by operators that an installation has and this cluster has not.
FOREIGN = {
    "keda.sh/v1alpha1": {"ScaledObject": "scaledobjects", "TriggerAuthentication": "triggerauthentications"},
    "monitoring.coreos.com/v1": {
        **{"PodMonitor": "podmonitors", "ServiceMonitor": "servicemonitors", "PrometheusRule": "prometheusrules"}
    },
}
# What the local deployment decides for its processes.
LOCAL = ("TEMPORAL_", "PERDURE_HEALTH_", "PERDURE_METRICS_")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment of the module's own: definitions and roles of the whole cluster come and go."""
    found = Deployment(tmp_path_factory.mktemp("chart") / "state")
    found.up(only=services.SERVERS, tether=True)
    yield found
    end(found)


@pytest.fixture(scope="module")
async def kube(cluster: Deployment) -> AsyncIterator[KubeApi]:
    async with await KubeApi.open(Settings(), "tests", cluster.env()["KUBECONFIG"]) as api:
        for api_version, kinds in FOREIGN.items():
            for kind, plural in kinds.items():
                await api.create(CUSTOM_RESOURCE_DEFINITION, definition(api_version, kind, plural))
        for name in ("labs", "apis", TENANT):
            await api.create(NAMESPACE, {"metadata": {"name": name}})
        yield api


def definition(api_version: str, kind: str, plural: str) -> dict[str, Any]:
    group, _, version = api_version.partition("/")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}},
            ],
        },
    }


class Helm:
    """Helm on that cluster."""

    def __init__(self, program: Path, kubeconfig: str, home: Path) -> None:
        self._program = program
        self._environ = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": kubeconfig}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._program, *arguments], env=self._environ, capture_output=True, text=True, check=False, timeout=180
        )

    def __call__(self, *arguments: str) -> str:
        ran = self.run(*arguments)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def rendered(self, namespace: str, *values: str) -> list[dict[str, Any]]:
        output = self("template", "perdure", str(CHART), "--namespace", namespace, *values)
        return [obj for obj in yaml.safe_load_all(output) if obj]

    def install(self, namespace: str, *values: str, chart: Path = CHART) -> None:
        """As over what a replaced operator has left: its definitions and namespaces become the release's."""
        taken = ("--take-ownership", "--force-conflicts")
        self("install", "perdure", str(chart), "--namespace", namespace, *taken, *values)


@pytest.fixture(scope="module")
def program(request: pytest.FixtureRequest) -> Path:
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled(), ConsoleNarrator(Console(stderr=True)) as narrator:
        return find_helm(narrator)


@pytest.fixture(scope="module")
def helm(cluster: Deployment, program: Path, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(program, cluster.env()["KUBECONFIG"], tmp_path_factory.mktemp("helm"))


@asynccontextmanager
async def installed(
    kube: KubeApi, helm: Helm, namespace: str, *values: str, chart: Path = CHART
) -> AsyncIterator[list[dict[str, Any]]]:
    """A release in a namespace that admits restricted pods only; its objects."""
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    await kube.create(NAMESPACE, {"metadata": {"name": namespace, "labels": enforced}})
    # Every namespace has it where the controller of service accounts runs; Jobs without rights are this one's.
    await kube.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, namespace)
    try:
        helm.install(namespace, *values, chart=chart)
        yield helm.rendered(namespace, *values)
    finally:
        helm.run("uninstall", "perdure", "--namespace", namespace)
        await kube.delete(NAMESPACE, "", namespace)


def of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [obj for obj in objects if obj["kind"] == kind]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("values", SETS)
async def test_each_set_of_values_is_installed_and_its_pods_are_admitted(
    kube: KubeApi, helm: Helm, values: str
) -> None:
    if values == "accounts":  # its values say that its namespaces exist
        with suppress(Conflict):
            await kube.create(NAMESPACE, {"metadata": {"name": "aws-account-operator"}})
    namespace = (
        f"set-{values}"  # `poolboy` is also the namespace of a replaced operator, which a release creates and retains
    )
    async with installed(kube, helm, namespace, "--values", str(CHART / "ci" / f"{values}.yaml")) as objects:
        deployments = of_kind(objects, "Deployment")
        components = {each["metadata"]["labels"]["app.kubernetes.io/component"] for each in deployments}
        assert components >= ({"worker"} if values == "small" else {"worker", "watch"})
        scheduled = [each | {"spec": each["spec"]["jobTemplate"]["spec"]} for each in of_kind(objects, "CronJob")]
        for each in [*deployments, *of_kind(objects, "Job"), *scheduled]:
            template = at(each, "spec", "template")
            assert isinstance(template, dict)
            stored = await kube.create(POD, {**template, "metadata": {"name": each["metadata"]["name"]}}, namespace)
            account = template["spec"].get("serviceAccountName", "default")
            assert text(stored, "spec", "serviceAccountName") == account


async def test_the_values_of_poolboys_chart_come_to_the_same(helm: Helm) -> None:
    values = ("--values", str(CHART / "ci" / "poolboy.yaml"))
    objects = helm.rendered("perdure", *values)
    (settings,) = of_kind(objects, "ConfigMap")
    assert (
        settings["data"].items()
        >= {
            "OPERATOR_DOMAIN": "claims.example.org",
            "OPERATOR_NAMESPACE": "claims-operator",
            "MANAGE_CLAIMS_INTERVAL": "30",
            "MANAGE_HANDLES_INTERVAL": "45",
            "MANAGE_POOLS_INTERVAL": "5",
            "RESOURCE_REFRESH_INTERVAL": "300",
            "CLUSTER_DOMAIN": "apps.example.org",
        }.items()
    )
    assert {at(each, "spec", "group") for each in of_kind(objects, "CustomResourceDefinition")} == {
        "claims.example.org"
    }
    assert [each["metadata"]["name"] for each in of_kind(objects, "Namespace")] == ["claims-operator"]
    output = helm("install", "perdure", str(CHART), "--namespace", "perdure", "--dry-run=client", *values)
    without_effect = output.rpartition("no effect: ")[2].splitlines()[0]
    assert without_effect.startswith("affinity, enablePrometheusMetrics, nodeSelector, operatorMode, replicaCount, ")
    retained = ("crds.create=false", "namespace.create=false", "operatorDomain.name=", "operatorDomain.generate=true")
    other = helm.rendered("perdure", *values, *(part for each in retained for part in ("--set", each)))
    assert not of_kind(other, "CustomResourceDefinition")
    assert not of_kind(other, "Namespace")
    (settings,) = of_kind(other, "ConfigMap")
    assert settings["data"]["OPERATOR_DOMAIN"] == "poolboy.gpte.redhat.com"


def test_a_values_file_of_poolboy_with_another_name_keeps_its_domain(helm: Helm) -> None:
    (settings,) = of_kind(helm.rendered("perdure", "--set", "nameOverride=poolboy-dev"), "ConfigMap")
    assert settings["data"]["OPERATOR_DOMAIN"] == "poolboy-dev.gpte.redhat.com"


async def test_a_pod_that_may_write_its_root_as_root_would_not_be_admitted(kube: KubeApi, helm: Helm) -> None:
    async with installed(kube, helm, "lax") as objects:
        template = at(of_kind(objects, "Deployment")[0], "spec", "template")
        assert isinstance(template, dict)
        template["spec"]["securityContext"] = {}
        with pytest.raises(Exception, match="violates PodSecurity"):
            await kube.create(POD, {**template, "metadata": {"name": "lax"}}, "lax")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ("workers[0].name=a,workers[0].areas={instances}", "PERDURE_INSTANCES_QUEUES names no queue"),
        ("settings.PERDURE_INSTANCES_QUEUES=1/us-east-1", "no set of workers serves instances"),
        ("settings.PERDURE_MOOD=act", "PERDURE_MOOD"),
        ("settings.PERDURE_DRAIN=soon", "PERDURE_DRAIN"),
        ("workers[0].name=a,workers[0].areas={acounts}", "acounts|must be one of"),
        (
            "workers[0].name=a,workers[0].areas={claims},workers[1].name=a,workers[1].areas={accounts}",
            "two sets of workers are called",
        ),
        ("environment.TEMPORAL_API_KEY=abc", "TEMPORAL_API_KEY|propertyNames|pattern"),
        (
            "together=true,workers[0].name=a,workers[0].areas={claims},workers[1].name=b,workers[1].areas={accounts}",
            "`together` runs one process",
        ),
        ("together=true,workerDefaults.autoscaling.enabled=true", "autoscaling would end the watcher"),
        ("together=true,versioning.enabled=true,versioning.buildId=v1", "versions side by side need workers apart"),
        ("versioning.enabled=true,image.tag=" + "t" * 64, '"t{64}" cannot name a version, .* set versioning.buildId'),
        (f"versioning.enabled=true,image.tag={'t' * 64}", 't" cannot name a version, .* set versioning.buildId'),
        ("codec.enabled=true", "codec.enabled needs temporal.encryption.secretName"),
        ("codec.enabled=true,temporal.encryption.secretName=keys", "anybody could read every lifecycle"),
    ],
)
def test_values_that_cannot_work_are_refused_with_the_reason(helm: Helm, values: str, reason: str) -> None:
    ran = helm.run("template", "perdure", str(CHART), "--set", values)
    assert ran.returncode != 0
    assert re.search(reason, ran.stderr), ran.stderr


def test_dashboards_may_have_no_label_of_grafanas(helm: Helm) -> None:
    values = "monitoring.dashboards.enabled=true,monitoring.dashboards.labels.grafana_dashboard=null"
    objects = of_kind(helm.rendered("p", "--set", values), "ConfigMap")
    labels = [each["metadata"]["labels"] for each in objects if "-dashboard-" in each["metadata"]["name"]]
    assert labels
    assert all("grafana_dashboard" not in each for each in labels)


def test_a_small_installation_is_one_process_with_the_rights_of_all_three(helm: Helm) -> None:
    values = ("--values", str(CHART / "ci" / "small.yaml"))
    small = helm.rendered("p", *values)
    (process,) = of_kind(small, "Deployment")
    account = process["spec"]["template"]["spec"]["serviceAccountName"]
    assert process["spec"]["template"]["spec"]["containers"][0]["args"] == [
        "run",
        "--only",
        "accounts,claims,instances",
    ]
    assert [each["metadata"]["name"] for each in of_kind(small, "ServiceAccount")] == [account]
    bound = bindings_of(small)
    apart = bindings_of(helm.rendered("p", *values, "--set", "together=false"))
    assert bound.keys() == apart.keys()
    assert len(set.union(*apart.values())) == 3
    assert set.union(*bound.values()) == {account}


def test_the_account_that_the_workers_defaults_name_is_bound(helm: Helm) -> None:
    objects = helm.rendered("p", "--set", "workerDefaults.serviceAccount.name=shared")
    assert {each["spec"]["template"]["spec"]["serviceAccountName"] for each in of_kind(objects, "Deployment")} == {
        "shared",
        "perdure-watch",
    }
    assert set.union(*bindings_of(objects).values()) == {"shared", "perdure-watch"}


def bindings_of(objects: list[dict[str, Any]]) -> dict[tuple[str, str, str], set[str]]:
    """The accounts that each binding names, by its kind, namespace and name."""
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): {
            subject["name"] for subject in each["subjects"]
        }
        for kind in ("RoleBinding", "ClusterRoleBinding")
        for each in of_kind(objects, kind)
        if any(subject["kind"] == "ServiceAccount" for subject in each.get("subjects", ()))
    }


@pytest.mark.parametrize(
    ("given", "role", "binding", "where"),
    [("apis", "Role", "RoleBinding", "apis"), ("*", "ClusterRole", "ClusterRoleBinding", None)],
)
def test_secrets_of_3scale_are_seen_in_the_namespaces_that_are_given(
    helm: Helm, given: str, role: str, binding: str, where: str | None
) -> None:
    objects = helm.rendered("perdure", "--set-json", f'rbac.threescaleSecretNamespaces=["{given}"]')
    found = {each["kind"]: each for each in objects if each["metadata"]["name"] == "perdure-threescale-secrets"}
    assert found.keys() == {role, binding}
    assert {each["metadata"].get("namespace") for each in found.values()} == {where}
    assert found[binding]["roleRef"]["kind"] == role


def test_settings_reach_the_processes_as_they_were_meant(helm: Helm) -> None:
    values = {
        "PERDURE_WORKER_CACHED_WORKFLOWS": 10_000_000,
        "PERDURE_CLAIMS_OLDER_TEMPLATES": True,
        "PERDURE_SWEEP": "1h30m",
        "PERDURE_ACCOUNTS_PROTECTED": ["011111111111", "222222222222"],
    }
    objects = helm.rendered("anywhere", "--set-json", f"settings={json.dumps(values)}")
    (found,) = [obj for obj in of_kind(objects, "ConfigMap") if obj["metadata"]["name"] == "perdure-settings"]
    output = {name.removeprefix("PERDURE_").lower(): value for name, value in found["data"].items()}
    read = Settings.model_validate(output)
    assert (read.worker_cached_workflows, read.claims_older_templates) == (10_000_000, True)
    assert read.sweep.total_seconds() == 5400
    assert read.accounts_protected == ("011111111111", "222222222222")
    assert read.areas == ("accounts", "claims", "loadbalancers", "threescale")
    assert (read.watch_lease_namespace, read.watch_lease_name) == ("anywhere", "perdure-watch")


@pytest.mark.parametrize(
    ("key", "value", "image"),
    [
        ("tag", "1.4.0", "perdure:1.4.0"),
        ("digest", f"sha256:{'a' * 64}", f"perdure@sha256:{'a' * 64}"),
    ],
)
def test_an_older_version_runs_the_image_of_its_tag_or_digest(helm: Helm, key: str, value: str, image: str) -> None:
    retained = [{"buildId": "1.4.0", key: value}]
    values = {"enabled": True, "buildId": "1.5.0", "promote": False, "keep": retained}
    objects = helm.rendered("anywhere", "--set-json", f"versioning={json.dumps(values)}")
    images = {
        each["spec"]["template"]["metadata"]["labels"].get("perdure.dev/version"): container["image"]
        for each in of_kind(objects, "Deployment")
        for container in each["spec"]["template"]["spec"]["containers"]
    }
    assert images["1.4.0"] == image
    assert images["1.5.0"].startswith("perdure:")


@pytest.mark.parametrize("values", sorted((CHART / "ci").glob("*.yaml")), ids=lambda values: values.stem)
def test_the_network_policy_lets_traces_reach_their_collector(helm: Helm, values: Path) -> None:
    objects = helm.rendered("anywhere", "--values", str(values))
    collectors = [
        each["value"]
        for deployment in of_kind(objects, "Deployment")
        for container in deployment["spec"]["template"]["spec"]["containers"]
        for each in container.get("env", [])
        if each["name"] == "OTEL_EXPORTER_OTLP_ENDPOINT"
    ] + [
        each["data"]["OTEL_EXPORTER_OTLP_ENDPOINT"]
        for each in of_kind(objects, "ConfigMap")
        if "OTEL_EXPORTER_OTLP_ENDPOINT" in each.get("data", {})
    ]
    opened = {
        port["port"]
        for policy in of_kind(objects, "NetworkPolicy")
        for rule in policy["spec"]["egress"]
        for port in rule["ports"]
    }
    assert collectors or values.stem != "everything"
    assert {int(each.rsplit(":", 1)[1]) for each in collectors} <= opened


@pytest.mark.parametrize("named", ["", "west.example"])
def test_workers_are_scaled_by_what_their_own_cluster_has_to_do(helm: Helm, named: str) -> None:
    values = ("--values", str(CHART / "ci" / "everything.yaml"), "--set", f"settings.PERDURE_CLUSTER={named}")
    objects = helm.rendered("anywhere", *values)
    (scaled,) = of_kind(objects, "ScaledObject")
    requested = {(each["metadata"]["taskQueue"], each["metadata"]["queueTypes"]) for each in scaled["spec"]["triggers"]}
    assert requested == queues_of(["claims", "threescale"], named)
    (found,) = [obj for obj in of_kind(objects, "ConfigMap") if obj["metadata"]["name"] == "perdure-settings"]
    assert found["data"]["PERDURE_INSTALLATION"] == "perdure"
    assert Settings(cluster=named).worker_deployment == ("west-example-perdure" if named else "perdure")


async def test_an_upgrade_upgrades_the_definitions_and_an_uninstall_keeps_them(
    kube: KubeApi, helm: Helm, tmp_path: Path
) -> None:
    name = "accountpools.aws.managed.openshift.io"
    before = tmp_path / "perdure"
    shutil.copytree(CHART, before)
    path = before / "files" / "crds" / "aws.managed.openshift.io_accountpools.yaml"
    older = yaml.safe_load(path.read_text())
    retained = older["spec"]["versions"][0].pop("additionalPrinterColumns")
    path.write_text(yaml.safe_dump(older))
    async with installed(kube, helm, "upgraded", chart=before):
        assert not await columns(kube, name)
        helm("upgrade", "perdure", str(CHART), "--namespace", "upgraded")
        assert await columns(kube, name) == [column["name"] for column in retained]
    assert await columns(kube, name), "the release went, and the definition stayed"
    assert await kube.get(NAMESPACE, "", "aws-account-operator")


async def columns(kube: KubeApi, name: str) -> list[str]:
    """What the stored definition shows."""
    stored = await kube.get(CUSTOM_RESOURCE_DEFINITION, "", name)
    versions = [each for each in sequence(stored, "spec", "versions") if isinstance(each, dict)]
    return [text(column, "name") for each in versions for column in sequence(each, "additionalPrinterColumns")]


# Alike in their first 16 characters and, but for signs that Kubernetes' names do not take, in all of them.
VERSIONS = ("2026.11.23-release.1", "2026.11.23-release.2", "2026.11.23_release-2")


def built_in(api_version: str, *names: str) -> dict[str, Kind]:
    """Kinds of Kubernetes' own."""
    group, _, version = api_version.rpartition("/")
    plurals = {name: f"{name.lower()}s".replace("ys", "ies") for name in names}
    return {name: Kind(name=name, group=group, version=version, plural=plurals[name], area="") for name in names}


LABELS = "app.kubernetes.io/name=perdure,app.kubernetes.io/instance=perdure"
# What a release consists of, and an uninstall takes away.
OF_RELEASE = {
    **built_in("apps/v1", "Deployment"),
    **built_in("batch/v1", "Job", "CronJob"),
    **built_in("autoscaling/v2", "HorizontalPodAutoscaler"),
    **built_in("policy/v1", "PodDisruptionBudget"),
    **built_in("v1", "Service", "ConfigMap", "ServiceAccount"),
    **built_in("networking.k8s.io/v1", "NetworkPolicy"),
    **built_in("rbac.authorization.k8s.io/v1", "RoleBinding", "Role", "ClusterRoleBinding", "ClusterRole"),
    **built_in("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"),
}


def test_the_guide_names_every_kind_that_an_uninstall_may_leave(helm: Helm) -> None:
    guide = (ROOT / "docs" / "deployment.md").read_text()
    named = re.search(r"kubectl delete (\S+) \\\n +--all-namespaces -l (\S+)", guide)
    assert named is not None
    assert named[1].split(",") == [kind.plural for kind in OF_RELEASE.values()]
    assert named[2] == LABELS
    found = {each["kind"] for values in SETS for each in helm.rendered("p", "-f", str(CHART / "ci" / f"{values}.yaml"))}
    installed_once = {"CustomResourceDefinition", "Namespace"}  # retained on purpose
    elsewhere = {kind for kinds in FOREIGN.values() for kind in kinds}
    assert found - installed_once - elsewhere - set(OF_RELEASE) == set()


@pytest.mark.timeout(900)
async def test_two_versions_are_upgraded_rolled_back_uninstalled_and_reinstalled(kube: KubeApi, helm: Helm) -> None:
    first, *later = VERSIONS
    async with installed(kube, helm, "versions", *versioned(first)):
        assert await versions_of_workers(kube) == {first}
        for number, version in enumerate(later, 1):
            helm("upgrade", "perdure", str(CHART), "--namespace", "versions", *versioned(version, *VERSIONS[:number]))
            assert await versions_of_workers(kube) == set(VERSIONS[: number + 1])
            assert len(await of_release(kube, "Job")) == 1
        helm("rollback", "perdure", "1", "--namespace", "versions")
        assert await versions_of_workers(kube) == {first}
        assert len(await of_release(kube, "Job")) == 1
        helm("uninstall", "perdure", "--namespace", "versions")
        assert {kind: await of_release(kube, kind) for kind in OF_RELEASE} == {kind: [] for kind in OF_RELEASE}
        helm.install("versions", *versioned(later[0]))
        assert await versions_of_workers(kube) == {later[0]}


@pytest.mark.parametrize("rolled_back", [True, False])
async def test_a_failed_upgrade_is_uninstalled_without_leftovers_in_both_ways_of_the_guide(
    kube: KubeApi, helm: Helm, *, rolled_back: bool
) -> None:
    first, second, _ = VERSIONS
    namespace = "rolled-back" if rolled_back else "failed"
    async with installed(kube, helm, namespace, *versioned(first), "--set", "audits.enabled=true"):
        # The API server refuses the Deployments, after the upgrade has written what comes before them.
        refused = ("--set-json", 'podLabels={"team": "no label!"}', *versioned(second))
        failed = helm.run("upgrade", "perdure", str(CHART), "--namespace", namespace, *refused)
        assert failed.returncode != 0
        assert "no label!" in failed.stderr
        if rolled_back:
            helm("rollback", "perdure", "1", "--namespace", namespace)
            assert await versions_of_workers(kube) == {first}
        helm("uninstall", "perdure", "--namespace", namespace)
        if not rolled_back:
            assert await of_release(kube, "Deployment"), "Helm deletes only what the failed revision holds"
            for name, kind in OF_RELEASE.items():
                for obj in await of_release(kube, name):
                    await kube.delete(kind, text(obj, "metadata", "namespace"), text(obj, "metadata", "name"))
        assert {kind: await of_release(kube, kind) for kind in OF_RELEASE} == {kind: [] for kind in OF_RELEASE}


def versioned(version: str, *retained: str) -> tuple[str, ...]:
    """Helm's values of a version of the workers, with older ones beside it."""
    older = [{"buildId": each, "tag": each} for each in retained]
    return ("--set-json", f"versioning={json.dumps({'enabled': True, 'buildId': version, 'keep': older})}")


async def of_release(kube: KubeApi, kind: str) -> list[JsonObject]:
    """What there is of a kind of the release."""
    found = await kube.list(OF_RELEASE[kind], label_selector=LABELS)
    return [obj for obj in found.items if not at(obj, "metadata", "deletionTimestamp")]


async def versions_of_workers(kube: KubeApi) -> set[str]:
    """The versions of the Deployments, each with a selector of its own."""
    workers = [each for each in await of_release(kube, "Deployment") if worker_version(each)]
    selected = {text(each, "spec", "selector", "matchLabels", "perdure.dev/version") for each in workers}
    assert selected == set(map(worker_version, workers))
    assert len(selected) == len(workers)
    return selected


def worker_version(deployment: JsonObject) -> str:
    return text(deployment, "metadata", "labels", "perdure.dev/version")


SPLIT = (
    "workers[0].name=accounts,workers[0].areas={accounts},"
    "workers[1].name=rest,workers[1].areas={claims,threescale,loadbalancers},audits.enabled=true"
)
CLAIM = {
    "legalEntity": {"id": "chart", "name": "Chart"},
    "awsCredentialSecret": {"name": "aws", "namespace": TENANT},
    "aws": {"regions": [{"name": "us-east-1"}]},
    "accountLink": "",
    "accountPool": "chart",
}


@pytest.mark.timeout(900)
async def test_the_processes_live_under_the_rights_that_the_chart_gives(
    kube: KubeApi, helm: Helm, cluster: Deployment, tmp_path: Path
) -> None:
    async with installed(kube, helm, "running", "--set", SPLIT) as objects:
        async with AsyncExitStack() as running:
            for each in of_kind(objects, "Deployment"):
                await start(running, kube, cluster, objects, each, tmp_path)
            await claims_come_and_go(kube)
        await audits_are_made(kube, cluster, objects, tmp_path)
        assert refusals(cluster, "running") == []
        # And refusals are seen: no worker has the rights of another area.
        async with await KubeApi.open(Settings(), "tests", str(tmp_path / "perdure-worker-rest")) as rest:
            with pytest.raises(Denied):
                await rest.list(ACCOUNT_POOL)
        assert refusals(cluster, "running") == [
            "perdure-worker-rest: list /apis/aws.managed.openshift.io/v1alpha1/accountpools"
        ]


# What the demos ask for beyond the chart's own values.
DEMO_VALUES = {
    "rbac": {
        "managedKinds": [{"apiGroup": "", "resources": ["configmaps"], "namespaces": []}],
        "accountsSecrets": True,
        "threescaleSecretNamespaces": ["petshop"],
    },
}
DEMO_SECONDS = 900
PLAY = """
import sys
from pathlib import Path
from localcloud.demo.command import play
from localcloud.deployment import Deployment
sys.exit(play(Deployment(Path(sys.argv[1])), sys.argv[2], fast=True, timeout=float(sys.argv[3])))
"""


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_demo_settles_under_the_rights_that_the_chart_gives(
    fresh: Deployment, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    scenario = SCENARIOS[name]
    for setting, value in scenario.settings.items():
        monkeypatch.setenv(setting, value)
    if Cloud.OPENSTACK in scenario.clouds:
        build.find_programs(Silence())
    without_product = [each for each in services.ALL if each not in services.PRODUCT]
    fresh.up(clouds=scenario.clouds, only=without_product, tether=True)
    areas = ["accounts", "claims", "loadbalancers", "threescale"]
    areas += ["instances"] if services.INSTANCES_QUEUES in scenario.settings else []
    values = DEMO_VALUES | {"workers": [{"name": "main", "areas": areas}], "settings": dict(scenario.settings)}
    given = tmp_path / "values.yaml"
    given.write_text(yaml.safe_dump(values))
    helm = Helm(program, fresh.env()["KUBECONFIG"], tmp_path)
    async with AsyncExitStack() as opened:
        kube = await opened.enter_async_context(await KubeApi.open(Settings(), "tests", fresh.env()["KUBECONFIG"]))
        await kube.create(NAMESPACE, {"metadata": {"name": "petshop"}})
        objects = await opened.enter_async_context(installed(kube, helm, "running", "--values", str(given)))
        running = await opened.enter_async_context(AsyncExitStack())
        for each in of_kind(objects, "Deployment"):
            await start(running, kube, fresh, objects, each, tmp_path)
        code, message = await demo(fresh, name)
    assert (code, refusals(fresh, "running")) == (0, []), message


async def demo(deployment: Deployment, name: str) -> tuple[int | None, str]:
    """The demo in a process of its own, with which what it plays itself ends; its exit code, and what it said."""
    playing = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PLAY, str(deployment.state.root), name, str(DEMO_SECONDS)),
        **{"cwd": ROOT, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.STDOUT},
    )
    try:
        output, _ = await playing.communicate()
    finally:
        if playing.returncode is None:
            playing.kill()
    return playing.returncode, output.decode()


async def claims_come_and_go(kube: KubeApi) -> None:
    """A claim of an account that is fulfilled and released, and one of a resource without a provider."""
    await kube.create(ACCOUNT_POOL, {"metadata": {"name": "chart"}, "spec": {"poolSize": 1}}, "aws-account-operator")
    await kube.create(ACCOUNT_CLAIM, {"metadata": {"name": "chart"}, "spec": CLAIM}, TENANT)
    provider = {"apiVersion": "poolboy.gpte.redhat.com/v1", "kind": "ResourceProvider", "name": "none"}
    claim = {
        "metadata": {"name": "chart"},
        "spec": {"resources": [{"provider": {**provider, "namespace": "poolboy"}}]},
    }
    await kube.create(RESOURCE_CLAIM, claim, TENANT)

    async def ready() -> bool:
        return text(await kube.get(ACCOUNT_CLAIM, TENANT, "chart"), "status", "state") == "Ready"

    async def looked_at() -> bool:
        return bool(at(await kube.get(RESOURCE_CLAIM, TENANT, "chart"), "status"))

    await eventually(ready, "the claim has its account")
    assert text(await kube.get(SECRET, TENANT, "aws"), "data", "aws_access_key_id")
    await eventually(looked_at, "the resource claim was looked at")
    await kube.delete(ACCOUNT_CLAIM, TENANT, "chart")
    await kube.delete(RESOURCE_CLAIM, TENANT, "chart")
    for kind in (ACCOUNT_CLAIM, RESOURCE_CLAIM):
        await eventually(partial(gone, kube, kind), f"the {kind.name} is gone")
    await kube.delete(ACCOUNT_POOL, "aws-account-operator", "chart")


# What an audit looks into, and finds without the Secrets that these name.
LOAD_BALANCER_SPEC = {
    "selector": {"matchLabels": {"yawol.stackit.cloud/loadbalancer": "chart"}},
    "infrastructure": {
        **{"authSecretRef": {"name": "none", "namespace": TENANT}, "defaultNetwork": {"networkID": "none"}},
        **{"flavor": {"flavorName": "small"}, "image": {"imageName": "load-balancer"}},
    },
}
PRODUCT_SPEC = {"name": "Chart", "providerAccountRef": {"name": "none"}}


async def audits_are_made(kube: KubeApi, cluster: Deployment, objects: list[dict[str, Any]], directory: Path) -> None:
    """The CronJob's command to its end, as its account: a report of each area that is served, and of no other."""
    await kube.create(LOAD_BALANCER, {"metadata": {"name": "chart"}, "spec": LOAD_BALANCER_SPEC}, TENANT)
    await kube.create(PRODUCT, {"metadata": {"name": "chart"}, "spec": PRODUCT_SPEC}, TENANT)
    (scheduled,) = of_kind(objects, "CronJob")
    job = scheduled["spec"]["jobTemplate"]["spec"]
    command, environ = await run_as(kube, cluster, objects, job, directory)
    for _ in range(2):  # the first makes the ConfigMap, the second finds it
        ran = await asyncio.create_subprocess_exec(
            *command_line(COMMAND, *command),
            **{"cwd": ROOT, "stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE},
            env=cluster.program_env() | {"PERDURE_STATE": ""} | environ,
        )
        out, err = await ran.communicate()
        assert ran.returncode == 0, (out.decode(), err.decode())
    reports = reports_in(await kube.get(CONFIG_MAP, "running", CONFIG_MAP_NAME))
    assert {area: report.trouble for area, report in reports.items()} == dict.fromkeys(
        ("accounts", "claims", "loadbalancers", "threescale"), ""
    )
    assert "credentials" in str(reports["loadbalancers"].found).lower()
    for kind in (LOAD_BALANCER, PRODUCT):
        await kube.delete(kind, TENANT, "chart")


async def start(
    running: AsyncExitStack,
    kube: KubeApi,
    cluster: Deployment,
    objects: list[dict[str, Any]],
    deployment: dict[str, Any],
    directory: Path,
) -> None:
    """The Deployment's command as a local process, with its ConfigMap and as its account."""
    command, environ = await run_as(kube, cluster, objects, deployment["spec"], directory)
    await running.enter_async_context(process(cluster, *command, **environ))


async def run_as(
    kube: KubeApi, cluster: Deployment, objects: list[dict[str, Any]], holder: dict[str, Any], directory: Path
) -> tuple[list[str], dict[str, str]]:
    """Command and variables of that pod, with its ConfigMap and the token of its account."""
    spec = holder["template"]["spec"]
    container = spec["containers"][0]
    named = container["envFrom"][0]["configMapRef"]["name"]
    (settings,) = [obj["data"] for obj in of_kind(objects, "ConfigMap") if obj["metadata"]["name"] == named]
    given = {name: value for name, value in settings.items() if not name.startswith(LOCAL)}
    account = spec["serviceAccountName"]
    admin = Path(cluster.env()["KUBECONFIG"])
    kubeconfig = await kubeconfig_of(kube, admin, "running", account, directory / account)
    return container["args"], {**given, "KUBECONFIG": str(kubeconfig)}


async def gone(kube: KubeApi, kind: Kind) -> bool:
    try:
        await kube.get(kind, TENANT, "chart")
    except Absent:
        return True
    return False


def refusals(cluster: Deployment, namespace: str) -> list[str]:
    """Every request of the namespace's accounts that the authorizer refused."""
    found = set()
    for event in audit_events(cluster):
        who = str(event.get("user", {}).get("username", ""))
        if who.startswith(f"system:serviceaccount:{namespace}:") and event.get("responseStatus", {}).get("code") == 403:
            found.add(f"{who.rpartition(':')[2]}: {event['verb']} {event['requestURI'].partition('?')[0]}")
    return sorted(found)


# Beside what the chart adds: a startup probe, what is mounted, who runs it.
SAME = ("ports", "livenessProbe", "readinessProbe", "resources", "securityContext")
DEPLOY = CHART.parents[1]
SERVING = ("--set", "workers[0].name=main,workers[0].areas={instances},settings.PERDURE_INSTANCES_QUEUES=1/us-east-1")
DECODING = (
    "--set",
    "codec.enabled=true,codec.tokens.secretName=codec-tokens,temporal.encryption.secretName=temporal-keys",
)


@pytest.mark.parametrize(
    ("file", "kind", "name", "values"),
    [
        ("processes/worker.yaml", "Deployment", "worker-main", ()),
        ("processes/watch.yaml", "Deployment", "watch", ()),
        ("processes/events.yaml", "Deployment", "events", SERVING),
        ("components/codec/codec.yaml", "Deployment", "codec", DECODING),
        ("components/codec/codec.yaml", "Service", "codec", DECODING),
        ("components/bootstrap/bootstrap.yaml", "Job", "bootstrap-1", ("--set", "temporal.bootstrap.enabled=true")),
        ("components/audits/audits.yaml", "CronJob", "audits", ("--set", "audits.enabled=true")),
    ],
)
def test_the_kustomize_base_runs_the_same_processes(
    helm: Helm, file: str, kind: str, name: str, values: tuple[str, ...]
) -> None:
    objects = helm.rendered("perdure", *values)
    (ours,) = [obj for obj in of_kind(objects, kind) if obj["metadata"]["name"] == f"perdure-{name}"]
    base = list(yaml.safe_load_all((DEPLOY / file).read_text()))
    (theirs,) = of_kind(base, kind)
    if kind == "Service":
        assert ours["spec"]["ports"] == theirs["spec"]["ports"]
        return
    here, there = (obj["spec"] for obj in (ours, theirs))
    while "jobTemplate" in here:
        assert without(here, "jobTemplate") == without(there, "jobTemplate")
        here, there = here["jobTemplate"]["spec"], there["jobTemplate"]["spec"]
    assert without(here, "template", "selector") == without(there, "template", "selector")
    here, there = (spec["template"]["spec"] for spec in (here, there))
    assert without(there, "containers", "securityContext", "volumes", "serviceAccountName").items() <= here.items()
    assert here.get("serviceAccountName", "").startswith(there.get("serviceAccountName", ""))  # of sets of workers
    assert there["securityContext"].items() <= here["securityContext"].items()
    assert all(volume in here["volumes"] for volume in there["volumes"])
    ran, retained = here["containers"][0], there["containers"][0]
    assert [mount for mount in retained["volumeMounts"] if mount not in ran["volumeMounts"]] == []
    assert {part: ran.get(part) for part in SAME} == {part: retained.get(part) for part in SAME}
    # The chart's workers get their areas as well.
    assert ran["args"][: len(retained["args"])] == retained["args"]
    given = {obj["metadata"]["name"]: obj["data"] for obj in of_kind(objects, "ConfigMap")}["perdure-settings"]
    output = given | {item["name"]: item["value"] for item in ran.get("env", ()) if "value" in item}
    assert {item["name"]: item["value"] for item in retained.get("env", ())}.items() <= output.items()
    for each in of_kind(base, "ConfigMap"):
        assert each["data"].items() <= output.items()


def without(spec: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name not in names}
