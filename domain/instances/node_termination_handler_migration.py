"""Turns chart values of the AWS Node Termination Handler into an InterruptionPolicy; notes explain other values.

The handler's queue mode drains for every event that its rules deliver. Its other mode (IMDS) reads the metadata of its
own instance, which show Spot and scheduled events, recommendations to rebalance and Auto Scaling's target state. Each
mode ignores the other mode's values. For a value that the chart leaves empty, the handler's default applies.

Many people can read the policy, so webhook addresses, passwords and tokens are never printed, not even in errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from domain.instances.arns import dns_suffix_of
from domain.instances.constants import POLICY_GROUP, POLICY_VERSION
from domain.instances.interruption_policy import CauseSort, Reaction, TaintEffect
from domain.instances.policy_selection import ANY
from domain.instances.resources.interruption_policy import (
    HEADER_NAME,
    HEADER_VALUE,
    LONGEST_ADDRESS,
    LONGEST_HEADER_NAME,
    LONGEST_HEADER_VALUE,
    LONGEST_SECONDS,
    LONGEST_TEMPLATE,
    MOST_HEADERS,
    WEB_ADDRESS,
    present,
)
from domain.instances.webhook_notifications import FIELDS, templated_body
from domain.model import Model
from domain.schema import Document

_QUEUE_URL = re.compile(r"https://sqs(?:-fips)?\.([a-z0-9-]+)\.([a-z0-9.-]+)/([0-9]{12})/([A-Za-z0-9_.-]+)", re.ASCII)
_NODE_GRACE = 120
_MANAGED = "aws-node-termination-handler/managed"
# In seconds; the handler refuses values outside of these ranges.
_HEARTBEAT_INTERVAL = (30, 3600)
_HEARTBEAT_UNTIL = (60, 172800)

# Values that go into the policy or into a setting that is printed.
_MAPPED = """
    checkASGTagBeforeDraining checkTagBeforeDraining cordonOnly daemonsetNodeSelector enableASGLifecycleDraining
    enableScheduledEventDraining enableSpotInterruptionDraining enableSqsTerminationDraining gracePeriod
    heartbeatInterval heartbeatUntil linuxNodeSelector managedAsgTag managedTag nodeSelector nodeTerminationGracePeriod
    podTerminationGracePeriod queueURL taintEffect taintNode webhookHeaders webhookProxy webhookTemplate
    webhookTemplateConfigMapKey webhookTemplateConfigMapName webhookURL webhookURLSecretName
"""
MAPPED = frozenset(_MAPPED.split())
_LABELLED = "Perdure only sets a label for a recommendation to rebalance, as EC2 has no call that confirms it"
_PLACED = "the handler runs only on these Nodes; give their labels or pools in the policy's selector"
_ANNOTATED = "Perdure adds no further annotations to its Events"
# Values without the same effect in Perdure: the value that makes no difference, and the note for any other value.
DIFFERENT: Mapping[str, tuple[bool | int | str, str]] = {
    "affinity": ("", _PLACED),
    "assumeAsgTagPropagation": (
        True,
        "Perdure reads the tags of instances, not the tags of Auto Scaling groups; let the groups propagate the tag",
    ),
    "completeLifecycleActionDelaySeconds": (-1, "Perdure completes a hook as soon as the Node is drained"),
    "daemonsetAffinity": ("", _PLACED),
    "deleteLocalData": (
        True,
        "the handler does not drain a Node whose Pods have emptyDir volumes; Perdure evicts these Pods like others. "
        'For Pods that have to stay, set the annotation perdure.dev/do-not-disrupt to "true", and remove '
        "drain.doNotDisrupt: Ignore from the policy, so that Perdure respects the annotation",
    ),
    "dryRun": (False, "set PERDURE_MODE=observe: Perdure then decides, but writes nothing"),
    "enableOutOfServiceTaint": (
        False,
        "use a policy whose reaction to stopped is taint, with the key node.kubernetes.io/out-of-service and the "
        "effect NoExecute",
    ),
    "enableRebalanceDraining": (False, _LABELLED),
    "enableRebalanceMonitoring": (False, _LABELLED),
    "excludeFromLoadBalancers": (
        False,
        "Perdure does not label Nodes with node.kubernetes.io/exclude-from-external-load-balancers; load balancers "
        "stop using a Node once its Pods are evicted or the instance ends",
    ),
    "ignoreDaemonSets": (
        True,
        "the handler does not drain a Node that has Pods of DaemonSets; Perdure leaves these Pods and evicts the rest",
    ),
    "kubernetesEventsExtraAnnotations": ("", _ANNOTATED),
    "kubernetesExtraEventsAnnotations": ("", _ANNOTATED),
    "linuxAffinity": ("", _PLACED),
    "windowsAffinity": ("", _PLACED),
    "windowsNodeSelector": ("", "Nodes with Windows need a policy of their own, with these labels in its selector"),
}
# Values about how the handler itself runs, or about something that Perdure always does.
_OF_ITS_OWN = """
    awsAccessKeyID awsEndpoint awsRegion awsSecretAccessKey containerSecurityContext customLabels
    daemonsetPriorityClassName daemonsetTolerations deleteSqsMsgIfNodeNotFound dnsConfig dnsPolicy emitKubernetesEvents
    enablePrometheusServer enableProbesServer extraEnv extraVolumeMounts extraVolumes fullnameOverride global image
    instanceMetadataURL jsonLogging linuxPodAnnotations linuxPodLabels linuxTolerations linuxUpdateStrategy
    logFormatVersion logLevel metadataTries nameOverride nodeSelectorTermsArch nodeSelectorTermsOs podAnnotations
    podDisruptionBudget podLabels podMonitor podSecurityContext priorityClassName probes probesServerEndpoint
    probesServerPort procUptimeFile prometheusServerPort rbac replicas resources securityContext service serviceAccount
    serviceMonitor strategy targetNodeOs terminationGracePeriodSeconds tolerations topologySpreadConstraints
    updateStrategy useHostNetwork useProviderId windowsPodAnnotations windowsPodLabels windowsTolerations
    windowsUpdateStrategy workers
"""
OF_ITS_OWN = frozenset(_OF_ITS_OWN.split())
KNOWN = MAPPED | frozenset(DIFFERENT) | OF_ITS_OWN

# Values that have no effect in the other mode, with the handler's defaults.
_OF_IMDS_MODE: Mapping[str, bool | int | str] = {
    "enableASGLifecycleDraining": False,
    "enableRebalanceDraining": False,
    "enableRebalanceMonitoring": False,
    "enableScheduledEventDraining": True,
    "enableSpotInterruptionDraining": True,
}
_OF_QUEUE_MODE: Mapping[str, bool | int | str] = {
    "assumeAsgTagPropagation": True,
    "checkASGTagBeforeDraining": True,
    "checkTagBeforeDraining": True,
    "completeLifecycleActionDelaySeconds": -1,
    "heartbeatInterval": -1,
    "heartbeatUntil": -1,
    "managedAsgTag": _MANAGED,
    "managedTag": _MANAGED,
}
# In queue mode these values place the handler's one Deployment. In IMDS mode they say which Nodes the handler serves.
_PLACING = ("nodeSelector", "daemonsetNodeSelector", "linuxNodeSelector")
_PLACING_OTHERWISE = ("affinity", "daemonsetAffinity", "linuxAffinity", "windowsAffinity", "windowsNodeSelector")

# Fields of the handler's webhook template, with Perdure's names for them.
_TEMPLATE_FIELDS = {
    "AccountId": "account",
    "Description": "text",
    "EventID": "event",
    "InstanceID": "instance",
    "Kind": "cause",
    "NodeName": "node",
    "Region": "region",
    "StartTime": "deadline",
}
_OTHER_WORDS = {
    "Kind": "the words differ: SPOT_ITN is spot, SCHEDULED_EVENT is scheduled, ASG_LIFECYCLE is hook, STATE_CHANGE is "
    "stopped or ended",
    "StartTime": "it is written as 2026-11-28T15:04:05Z, and is empty where AWS gives no time",
}
_TEMPLATE_FIELD = re.compile(r"\{\{-?\s*\.(\w+)\s*-?\}\}", re.ASCII)
_JSON_KEY = re.compile(r'"([^"]+)"\s*:')
_TEMPLATE_ACTION = re.compile(r"\{\{.*?(?:\}\}|$)", re.DOTALL)

_KEPT_IN = "the Secret perdure-notifications in Perdure's namespace"
# The key of the Secret that the handler reads.
_WEBHOOK_KEY = "webhookurl"
_PROXY_KEY = "webhookproxy"
_CONFIDENTIAL = re.compile(r"auth|cookie|credential|key|password|secret|signature|token", re.IGNORECASE)


class Migrated(Model):
    policy: Document
    notes: tuple[str, ...]


def policy_of_nth(values: Mapping[str, object], name: str) -> Migrated:
    """The policy for a chart's values. Raises ValueError, which names an invalid value and what is allowed."""
    chart = _Values(values)
    queued = chart.flag("enableSqsTerminationDraining", default=False)
    reactions = _reactions(chart, queued=queued)
    selector = chart.managed_tag() if queued else chart.placed()
    effect = chart.one_of("taintEffect", TaintEffect.NO_SCHEDULE)
    taint = {"nodeTerminationHandlerNames": True, "effect": effect.value}
    webhook = _webhook(chart)
    spec = present(
        selector=selector or None,
        reactions={cause: reaction.value for cause, reaction in reactions.items()},
        taint=taint if chart.flag("taintNode", default=False) else None,
        drain={**_graces(chart), "doNotDisrupt": "Ignore"},
        **(_hook_times(chart) if queued else {"maintenanceLeadSeconds": _node_grace(chart)}),
        notify=[{"name": "webhook", **webhook, "causes": _causes(reactions)}] if webhook else None,
    )
    policy: Document = {
        "apiVersion": f"{POLICY_GROUP}/{POLICY_VERSION}",
        "kind": "InterruptionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }
    return Migrated(policy=policy, notes=tuple(dict.fromkeys(_notes(chart, queued=queued))))


def _reactions(chart: _Values, *, queued: bool) -> dict[str, Reaction]:
    reaction = Reaction.CORDON if chart.flag("cordonOnly", default=False) else Reaction.DRAIN
    if queued:
        causes = ("spot", "ending", "reboot", "maintenance", "terminated", "stopped", "terminatingHook")
        return dict.fromkeys(causes, reaction)
    spot = reaction if chart.flag("enableSpotInterruptionDraining", default=True) else Reaction.LABEL
    scheduled = reaction if chart.flag("enableScheduledEventDraining", default=True) else Reaction.LABEL
    hook = {"terminatingHook": reaction} if chart.flag("enableASGLifecycleDraining", default=False) else {}
    return {"spot": spot, **dict.fromkeys(("ending", "reboot", "maintenance"), scheduled), **hook}


def _causes(reactions: Mapping[str, Reaction]) -> list[str]:
    """The sorts of causes about which a notification is sent: all whose reaction is more than a label."""
    sorts = {
        CauseSort.SPOT: "spot",
        CauseSort.SCHEDULED: "ending",
        CauseSort.HOOK: "terminatingHook",
        CauseSort.STOPPED: "stopped",
        CauseSort.ENDED: "terminated",
    }
    # The handler calls its webhook only about events that the handler acts upon.
    return [sort.value for sort, cause in sorts.items() if reactions.get(cause, Reaction.LABEL) is not Reaction.LABEL]


def _node_grace(chart: _Values) -> int:
    given = chart.seconds("nodeTerminationGracePeriod")
    return _NODE_GRACE if given is None else given


def _graces(chart: _Values) -> Document:
    node = _node_grace(chart)
    older = chart.seconds("gracePeriod")
    newer = chart.seconds("podTerminationGracePeriod")
    pod = newer if "podTerminationGracePeriod" in chart.given else older
    return present(nodeGracePeriodSeconds=node or None, podGracePeriodSeconds=pod)


def _hook_times(chart: _Values) -> Document:
    interval = chart.seconds("heartbeatInterval", _HEARTBEAT_INTERVAL)
    until = chart.seconds("heartbeatUntil", _HEARTBEAT_UNTIL)
    return present(heartbeatSeconds=interval, hookLimitSeconds=until)


def _webhook(chart: _Values) -> Document:
    url, secret, proxy = chart.address("webhookURL"), chart.text("webhookURLSecretName"), chart.address("webhookProxy")
    headers, template = chart.headers("webhookHeaders"), _template(chart)
    if not (url or secret):
        return {}
    listed: list[Document] = [
        {"name": name, "secretKey": _header_key(name)} if _CONFIDENTIAL.search(name) else {"name": name, "value": value}
        for name, value in headers.items()
    ]
    return present(
        urlSecretKey=_WEBHOOK_KEY,
        template=template or None,
        format=None if template else "Slack",
        headers=listed or None,
        proxySecretKey=_PROXY_KEY if "@" in proxy else None,
        proxy=None if "@" in proxy else proxy or None,
    )


def _header_key(name: str) -> str:
    return f"webhookheader-{name.lower()}"


def _template(chart: _Values) -> str:
    named = _with_our_fields(chart.text("webhookTemplate"))
    if len(named) > LONGEST_TEMPLATE:
        raise ValueError(f"webhookTemplate: it has {len(named)} characters; allowed are {LONGEST_TEMPLATE}")
    return "" if "{{" in named else named


def _with_our_fields(template: str) -> str:
    return _TEMPLATE_FIELD.sub(lambda found: _ours(found[1]), template.replace("$", "$$"))


def _ours(field: str) -> str:
    return f"${{{_TEMPLATE_FIELDS[field]}}}" if field in _TEMPLATE_FIELDS else ""


def _webhook_notes(chart: _Values) -> Iterator[str]:
    webhook = _webhook(chart)
    if not webhook:
        return
    if secret := chart.text("webhookURLSecretName"):
        yield f"webhookURLSecretName: copy the key {_WEBHOOK_KEY} of the Secret {secret} into {_KEPT_IN}"
    else:
        yield f"webhookURL: put it into {_KEPT_IN} with the key {_WEBHOOK_KEY}; it can hold a token"
    if "proxySecretKey" in webhook:
        yield f"webhookProxy: put it into {_KEPT_IN} with the key {_PROXY_KEY}, as it holds a password"
    headers = chart.headers("webhookHeaders")
    for name in headers:
        if _CONFIDENTIAL.search(name):
            yield f"webhookHeaders: put the value of {name} into {_KEPT_IN} with the key {_header_key(name)}"
    if plain := [name for name in headers if not _CONFIDENTIAL.search(name)]:
        yield f"webhookHeaders: all who may read policies see {', '.join(plain)}"
    if config_map := chart.text("webhookTemplateConfigMapName"):
        key = chart.text("webhookTemplateConfigMapKey")
        yield (
            f"webhookTemplateConfigMapName: the policy lacks the template {key} of the ConfigMap {config_map}, because "
            "a ConfigMap is not read. Put the template into webhookTemplate and migrate again, or write "
            "notify[0].template yourself"
        )
    yield from _template_notes(chart)


def _template_notes(chart: _Values) -> Iterator[str]:
    given = chart.text("webhookTemplate")
    template = _template(chart)
    if given and not template:
        action = _TEMPLATE_ACTION.search(_with_our_fields(given))
        yield (
            f"webhookTemplate: {action[0][:60] if action else 'it'} does more than name a field, and templates of "
            "Perdure can only name fields. The policy has the format Slack; write notify[0].template for another body"
        )
        return
    if keys := [key for key in dict.fromkeys(_JSON_KEY.findall(given)) if _CONFIDENTIAL.search(key)]:
        yield f"webhookTemplate: all who may read policies see {', '.join(keys)}. Send secrets in a header instead"
    fields = list(dict.fromkeys(_TEMPLATE_FIELD.findall(given)))
    for field in fields:
        if field in _OTHER_WORDS:
            yield f"webhookTemplate: {{{{ .{field} }}}} becomes ${{{_TEMPLATE_FIELDS[field]}}}; {_OTHER_WORDS[field]}"
    if unknown := [field for field in fields if field not in _TEMPLATE_FIELDS]:
        yield f"webhookTemplate: Perdure has no {', '.join(unknown)}; the parts that name them are left out"
    if _is_json(_TEMPLATE_FIELD.sub("0", given)) and not _is_json(templated_body(template, dict.fromkeys(FIELDS, "x"))):
        yield "webhookTemplate: with Perdure's fields the body is not JSON; put quotation marks around each field"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _notes(chart: _Values, *, queued: bool) -> Iterator[str]:
    yield from _queue_notes(chart, queued=queued)
    if (grace := chart.seconds("nodeTerminationGracePeriod")) == 0:
        yield "nodeTerminationGracePeriod: 0 sets no limit; Perdure drains until AWS ends the instance"
    elif grace is None and "nodeTerminationGracePeriod" in chart.given:
        yield f"nodeTerminationGracePeriod: a negative number counts as absent, so it is {_NODE_GRACE}"
    yield from _webhook_notes(chart)
    without_effect = _OF_IMDS_MODE if queued else _OF_QUEUE_MODE
    for name in sorted(chart.given):
        if name in without_effect:
            if chart.differs(name, without_effect[name]):
                yield f"{name}: it has no effect in the handler's {'queue' if queued else 'IMDS'} mode, and is left out"
        elif name in DIFFERENT:
            harmless, note = DIFFERENT[name]
            if chart.differs(name, harmless) and not (queued and name in _PLACING_OTHERWISE):
                yield f"{name}: {note}"
        elif name not in KNOWN:
            yield f"{name}: Perdure does not know this value and ignores it"


def _queue_notes(chart: _Values, *, queued: bool) -> Iterator[str]:
    yield (
        "selector: the handler serves the cluster that it runs in; this policy applies to all clusters that Perdure "
        "serves. If Cluster API manages your clusters, name the handler's cluster in selector.clusters"
    )
    if queued:
        mode = "enableSqsTerminationDraining: in queue mode the handler"
        yield (
            f"{mode} drains for a scheduled event at once, which can be weeks before its date. Perdure waits until 24 "
            f"hours before the date; maintenanceLeadSeconds sets another time, at most {LONGEST_SECONDS} (30 days)"
        )
        yield f"{mode} also drains for recommendations to rebalance. {_LABELLED}"
        yield (
            f"{mode} also completes launching hooks if its rules deliver their events. If you have such hooks, add "
            "launchingHook: true"
        )
    else:
        yield (
            "enableSqsTerminationDraining: it is off, and the handler reads each instance's metadata. Perdure takes "
            "events from a queue. It creates the queue and rules if you set PERDURE_INSTANCES_QUEUES=ACCOUNT/REGION"
        )
    if not queued and chart.flag("enableASGLifecycleDraining", default=False):
        yield "enableASGLifecycleDraining: Perdure also completes Auto Scaling's hook, once the Node is drained"
    if not queued and (names := [name for name in _PLACING if name in chart.given]):
        yield (
            f"{', '.join(names)}: selector.labels is compared with labels of the Node. If Cluster API owns the Node, "
            "selector.labels is compared with labels of its Machine, AWSMachine or AWSMachinePool instead"
        )
    url = chart.text("queueURL")
    found = _QUEUE_URL.fullmatch(url)
    if found and found[2] == dns_suffix_of(found[1]):
        region, _, account, queue = found.groups()
        yield (
            f"queueURL: set PERDURE_INSTANCES_QUEUES={account}/{region}. Perdure makes a queue of its own there. Do "
            f"not name the handler's queue ({account}/{region}/{queue}) while the handler runs: two readers of a queue "
            "take each other's messages, and Perdure lets only its own rules send to a queue"
        )
    elif url:
        yield f"queueURL: {url} is not the URL of a queue in AWS. Set PERDURE_INSTANCES_QUEUES=ACCOUNT/REGION"


class _Values:
    """The handler's Helm values. An empty value counts as absent."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self.given = {str(name): value for name, value in values.items() if value not in (None, "", {}, [])}

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.given.get(name, default)
        if isinstance(value, bool) or value in ("true", "false"):
            return value in (True, "true")
        raise ValueError(f"{name}: {value!r} is neither true nor false")

    def seconds(self, name: str, allowed: tuple[int, int] = (0, LONGEST_SECONDS)) -> int | None:
        """None if the value is absent or negative: the handler treats both alike."""
        value = self.given.get(name, -1)
        lowest, highest = allowed
        range_ = f"allowed are {lowest} to {highest} seconds, and a negative number, which counts as absent"
        if isinstance(value, float) and value.is_integer():  # as Helm prints large numbers
            value = int(value)
        if isinstance(value, bool) or not re.fullmatch(r"-?[0-9]{1,15}", str(value), re.ASCII):
            raise ValueError(f"{name}: {value!r} is not a whole number of seconds; {range_}")
        number = int(str(value))
        if number > highest or 0 <= number < lowest:
            raise ValueError(f"{name}: {number} is out of range; {range_}")
        return number if number >= 0 else None

    def text(self, name: str, default: str = "") -> str:
        value = self.given.get(name, default)
        if isinstance(value, str):
            return value
        raise ValueError(f"{name}: {value!r} is not a string")

    def one_of(self, name: str, default: TaintEffect) -> TaintEffect:
        value = self.text(name, default.value)
        if value in list(TaintEffect):
            return TaintEffect(value)
        raise ValueError(f"{name}: {value!r} is not one of {', '.join(TaintEffect)}")

    def address(self, name: str) -> str:
        value = self.given.get(name, "")
        if not isinstance(value, str):
            raise ValueError(f"{name}: it is not a string")
        if value and not (re.fullmatch(WEB_ADDRESS, value) and len(value) <= LONGEST_ADDRESS):
            scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]{0,15}://", value, re.ASCII)
            begins = f"it begins with {scheme[0]}" if scheme else "it has no scheme"
            raise ValueError(
                f"{name}: {begins} and has {len(value)} characters; allowed is an address that begins with http:// or "
                f"https:// and has at most {LONGEST_ADDRESS} printable characters without spaces"
            )
        return value

    def headers(self, name: str) -> dict[str, str]:
        """The default content type is left out."""
        value = self.given.get(name, {})
        try:
            found = json.loads(value) if isinstance(value, str) else value
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
            raise ValueError(f"{name}: it is not a JSON object whose values are strings")
        usual = {"content-type": "application/json"}
        retained = {str(key): each for key, each in found.items() if usual.get(str(key).lower()) != each}
        for key, each in retained.items():
            if not re.fullmatch(HEADER_NAME, key) or len(key) > LONGEST_HEADER_NAME:
                allowed = f"allowed are up to {LONGEST_HEADER_NAME} letters, digits, - and _"
                raise ValueError(f"{name}: {key!r} is not the name of a header; {allowed}")
            if not re.fullmatch(HEADER_VALUE, each) or len(each) > LONGEST_HEADER_VALUE:
                allowed = f"allowed are up to {LONGEST_HEADER_VALUE} printable ASCII characters"
                raise ValueError(f"{name}: the value of {key} cannot be sent; {allowed}")
        if len(retained) > MOST_HEADERS:
            raise ValueError(f"{name}: it has {len(retained)} headers; allowed are {MOST_HEADERS}")
        return retained

    def managed_tag(self) -> Document:
        checks = [self.flag(name, default=True) for name in ("checkASGTagBeforeDraining", "checkTagBeforeDraining")]
        tag = self.text("managedTag", self.text("managedAsgTag", _MANAGED))
        return {"tags": {tag: ANY}} if all(checks) else {}

    def placed(self) -> Document:
        labels: dict[str, str] = {}
        for name in _PLACING:
            value = self.given.get(name, {})
            if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
                raise ValueError(f"{name}: {value!r} is not an object whose values are strings")
            labels |= {str(label): each for label, each in value.items()}
        return {"labels": labels} if labels else {}

    def differs(self, name: str, harmless: bool | int | str) -> bool:
        if isinstance(harmless, bool):
            return self.flag(name, default=harmless) != harmless
        if isinstance(harmless, int):
            return bool(self.seconds(name))
        return self.given.get(name, harmless) != harmless
