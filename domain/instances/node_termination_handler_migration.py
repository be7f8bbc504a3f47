"""Values of the AWS Node Termination Handler's chart as an InterruptionPolicy, and what has no counterpart.

Its queue mode drains for every event that its rules deliver; its other mode reads the metadata of its own instance,
which show only Spot and scheduled events. A value that the chart leaves empty has the handler's default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from domain.instances.constants import POLICY_GROUP, POLICY_VERSION
from domain.instances.interruption_policy import Reaction, TaintEffect
from domain.instances.policy_selection import ANY
from domain.model import Model
from domain.schema import Document

_QUEUE_URL = re.compile(r"https://sqs\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([0-9]{12})/([A-Za-z0-9_.-]+)", re.ASCII)
_NODE_GRACE = 120
_MANAGED = "aws-node-termination-handler/managed"

_HEARTBEATS = {"heartbeatInterval": "heartbeatSeconds", "heartbeatUntil": "hookLimitSeconds"}

# Perdure does these differently or not at all: reported if the value is set.
_OTHERWISE = {
    "enableRebalanceMonitoring": "EC2 has no call that confirms a recommendation to rebalance, so it is only labelled",
    "enableRebalanceDraining": "EC2 has no call that confirms a recommendation to rebalance, so it is only labelled",
    "enableOutOfServiceTaint": "use a policy whose reaction to stopped is taint, with the key "
    "node.kubernetes.io/out-of-service and the effect NoExecute",
    "excludeFromLoadBalancers": "Nodes get no label that excludes them from load balancers",
    "dryRun": "PERDURE_MODE=observe decides and writes nothing",
    "webhookTemplateConfigMapName": "put the ConfigMap's template into notify[0].template, with ${instance} for "
    "{{ .InstanceID }} and so on",
    "completeLifecycleActionDelaySeconds": "a hook is completed as soon as the Node is drained",
    "kubernetesEventsExtraAnnotations": "Events get no further annotations",
}
# About how the handler itself runs, or what Perdure always does.
_RUNNING = """
    affinity assumeAsgTagPropagation awsAccessKeyID awsEndpoint awsRegion awsSecretAccessKey containerSecurityContext
    customLabels deleteLocalData deleteSqsMsgIfNodeNotFound dnsConfig dnsPolicy emitKubernetesEvents
    enablePrometheusServer enableProbesServer extraEnv extraVolumeMounts extraVolumes fullnameOverride ignoreDaemonSets
    image instanceMetadataURL jsonLogging linuxAffinity linuxNodeSelector linuxPodAnnotations linuxPodLabels
    linuxUpdateStrategy logFormatVersion logLevel metadataTries nameOverride nodeSelector nodeSelectorTermsArch
    nodeSelectorTermsOs podAnnotations podDisruptionBudget podLabels podMonitor podSecurityContext priorityClassName
    probes probesServerEndpoint probesServerPort procUptimeFile prometheusServerPort rbac replicas resources
    securityContext service serviceAccount serviceMonitor strategy targetNodeOs tolerations topologySpreadConstraints
    updateStrategy useHostNetwork useProviderId webhookTemplateConfigMapKey windowsAffinity windowsNodeSelector
    windowsPodAnnotations windowsPodLabels windowsUpdateStrategy workers
"""
_OF_ITS_OWN = frozenset(_RUNNING.split())

# Fields of the handler's webhook template, by our names.
_TEMPLATE_FIELDS = {
    "AccountId": "account",
    "Description": "text",
    "EventID": "event",
    "InstanceID": "instance",
    "Kind": "cause",
    "NodeName": "node",
    "StartTime": "deadline",
}
_TEMPLATE_FIELD = re.compile(r"\{\{-?\s*\.(\w+)\s*-?\}\}", re.ASCII)
_READ_BY_ALL = "it is seen by all who may read policies, values of Secret perdure-notifications are not"
# The key of the Secret that the handler reads.
_WEBHOOK_KEY = "webhookurl"


class Migrated(Model):
    """A policy as a document, and remarks on the rest."""

    policy: Document
    notes: tuple[str, ...]


def policy_of_nth(values: Mapping[str, object], name: str) -> Migrated:
    """Raises:
    ValueError: a value has the wrong type; it says which.
    """
    chart = _Values(values)
    queued = chart.flag("enableSqsTerminationDraining", default=False)
    reaction = Reaction.CORDON if chart.flag("cordonOnly", default=False) else Reaction.DRAIN
    spot = reaction if chart.flag("enableSpotInterruptionDraining", default=True) else Reaction.LABEL
    scheduled = reaction if chart.flag("enableScheduledEventDraining", default=True) else Reaction.LABEL
    wished = {"spot": spot, **dict.fromkeys(("ending", "reboot", "maintenance"), scheduled)}
    if queued:
        wished |= dict.fromkeys(("terminated", "stopped", "terminatingHook"), reaction)
    node = chart.seconds("nodeTerminationGracePeriod", _NODE_GRACE)
    pod = chart.seconds("podTerminationGracePeriod", chart.seconds("gracePeriod", -1))
    drain = {"nodeGracePeriodSeconds": node, **({"podGracePeriodSeconds": pod} if pod >= 0 else {})}
    tag = chart.managed_tag(queued=queued)
    effect = TaintEffect(chart.text("taintEffect", TaintEffect.NO_SCHEDULE))
    taint = {"nodeTerminationHandlerNames": True, "effect": effect.value}
    spec: Document = {
        **({"selector": {"tags": {tag: ANY}}} if tag else {}),
        "reactions": {cause: value.value for cause, value in wished.items()},
        **({"taint": taint} if chart.flag("taintNode", default=False) else {}),
        "drain": {**drain, "doNotDisrupt": "Ignore"},
        "maintenanceLeadSeconds": node,
        **{field: chart.seconds(value, 0) for value, field in _HEARTBEATS.items() if value in chart.given},
    }
    if webhook := _webhook(chart):
        causes = ("spot", "scheduled", "hook", *(("stopped", "ended") if queued else ()))
        spec["notify"] = [{"name": "webhook", **webhook, "causes": list(causes)}]
    policy: Document = {
        "apiVersion": f"{POLICY_GROUP}/{POLICY_VERSION}",
        "kind": "InterruptionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }
    return Migrated(policy=policy, notes=tuple(dict.fromkeys(_notes(chart, queued=queued))))


def _webhook(chart: _Values) -> Document:
    url, secret = chart.text("webhookURL", ""), chart.text("webhookURLSecretName", "")
    proxy, template = chart.text("webhookProxy", ""), _template(chart.text("webhookTemplate", ""))
    headers = chart.headers("webhookHeaders")
    if not (url or secret):
        return {}
    return {
        **({"urlSecretKey": _WEBHOOK_KEY} if secret else {"url": url}),
        **({"template": template} if template else {"format": "Slack"}),
        **({"headers": [{"name": name, "value": value} for name, value in headers.items()]} if headers else {}),
        **({"proxy": proxy} if proxy else {}),
    }


def _template(given: str) -> str:
    """The handler's Go template with our fields; empty if it does more than name fields."""
    named = _TEMPLATE_FIELD.sub(lambda found: _ours(found[1]), given.replace("$", "$$"))
    return "" if "{{" in named else named


def _ours(field: str) -> str:
    return f"${{{_TEMPLATE_FIELDS[field]}}}" if field in _TEMPLATE_FIELDS else ""


def _webhook_notes(chart: _Values) -> Iterator[str]:
    if secret := chart.text("webhookURLSecretName", ""):
        yield f"webhookURLSecretName: copy the key {_WEBHOOK_KEY} of Secret {secret} to Secret perdure-notifications"
    elif chart.text("webhookURL", ""):
        yield f"webhookURL: {_READ_BY_ALL}; an address of Slack or Teams belongs there, with its key in urlSecretKey"
    if _webhook(chart).get("headers"):
        yield f"webhookHeaders: {_READ_BY_ALL}; a token belongs there, with its key in the header's secretKey"
    template = chart.text("webhookTemplate", "")
    if template and not _template(template):
        yield "webhookTemplate: it does more than name fields; the format Slack is used, rewrite notify[0].template"
    unknown = sorted(set(_TEMPLATE_FIELD.findall(template)) - set(_TEMPLATE_FIELDS))
    if unknown and _template(template):
        yield f"webhookTemplate: there is no counterpart of {', '.join(unknown)}, which is left out"


def _notes(chart: _Values, *, queued: bool) -> Iterator[str]:
    url = chart.text("queueURL", "")
    found = _QUEUE_URL.fullmatch(url)
    if found:
        region, account, queue = found.groups()
        yield f"queueURL: PERDURE_INSTANCES_QUEUES={account}/{region}/{queue}"
    elif url:
        yield f"queueURL: {url} is not the URL of a queue; PERDURE_INSTANCES_QUEUES takes ACCOUNT/REGION/QUEUE"
    if not queued:
        yield (
            "enableSqsTerminationDraining is off: the handler reads each instance's metadata; Perdure takes events "
            "from a queue that PERDURE_INSTANCES_QUEUES names, and makes the queue and its rules"
        )
    yield from _webhook_notes(chart)
    for name in sorted(chart.given):
        if name in _OTHERWISE and (not isinstance(chart.given[name], bool | str) or chart.is_on(name)):
            yield f"{name}: {_OTHERWISE[name]}"
        elif name not in chart.read and name not in _OF_ITS_OWN and name not in _OTHERWISE:
            yield f"{name}: this value is not known here, and nothing was made of it"


class _Values:
    """An empty value counts as absent."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self.given = {str(name): value for name, value in values.items() if value is not None and value != ""}
        self.read: set[str] = set()

    def flag(self, name: str, *, default: bool) -> bool:
        value = self._value(name, default)
        if isinstance(value, bool) or value in ("true", "false"):
            return value in (True, "true")
        raise ValueError(f"{name}: {value!r} is neither true nor false")

    def seconds(self, name: str, default: int) -> int:
        value = self._value(name, default)
        if not isinstance(value, bool) and re.fullmatch(r"-?[0-9]{1,9}", str(value), re.ASCII):
            return int(str(value))
        raise ValueError(f"{name}: {value!r} is no whole number of seconds")

    def text(self, name: str, default: str) -> str:
        value = self._value(name, default)
        if isinstance(value, str):
            return value
        raise ValueError(f"{name}: {value!r} is no text")

    def headers(self, name: str) -> dict[str, str]:
        """From an object or its JSON, without the content type, which is sent anyway."""
        value = self._value(name, {})
        try:
            found = json.loads(value) if isinstance(value, str) else value
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
            raise ValueError(f"{name}: {value!r} is no JSON object of texts")
        usual = {"content-type": "application/json"}
        return {str(key): each for key, each in found.items() if usual.get(str(key).lower()) != each}

    def managed_tag(self, *, queued: bool) -> str:
        """The key of the tag that an instance has to have, under the chart's older and newer names; empty for none."""
        checks = [self.flag(name, default=queued) for name in ("checkASGTagBeforeDraining", "checkTagBeforeDraining")]
        older = self.text("managedAsgTag", _MANAGED)
        return self.text("managedTag", older) if queued and all(checks) else ""

    def is_on(self, name: str) -> bool:
        return self.given[name] not in (False, "false")

    def _value(self, name: str, default: object) -> object:
        self.read.add(name)
        return self.given.get(name, default)
