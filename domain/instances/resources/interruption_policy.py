"""InterruptionPolicy: the reactions for the instances that it selects. Perdure only reads it.

The API server refuses a contradictory policy and names the field, so every stored policy can be followed. For fields
that a policy leaves out, the settings apply (`PERDURE_INSTANCES_REACTIONS`, `PERDURE_INSTANCES_DISRUPTIONS`).
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.instances import INTERRUPTION_POLICY
from domain.instances.interruption_policy import (
    Budgets,
    CauseSort,
    Channel,
    Draining,
    Reaction,
    ReactionPolicy,
    TaintEffect,
    Tainting,
)
from domain.instances.webhook_notifications import FIELDS, TEMPLATE
from domain.resource import AGE, CustomResource, Definition, KubeModel, PrinterColumn
from domain.schema import Marker

# What the API server takes as a taint's key: a DNS subdomain, and a name of at most 63 characters.
_PIECE = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_KEY = rf"^({_PIECE}(\.{_PIECE})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"
_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
_DATA_KEY = r"^[-._a-zA-Z0-9]+$"
WEB_ADDRESS = r"^https?://[!-~]+$"
HEADER_NAME = r"^[A-Za-z0-9_-]+$"
HEADER_VALUE = r"^[ -~]*$"

# Scheduled events are announced weeks ahead.
LONGEST_SECONDS = 30 * 24 * 3600
# In characters.
LONGEST_ADDRESS = 2000
LONGEST_HEADER_NAME = 100
LONGEST_HEADER_VALUE = 1000
LONGEST_TEMPLATE = 4096
MOST_HEADERS = 16

Seconds = Annotated[int, Marker(minimum=0, maximum=LONGEST_SECONDS)]
SecretKey = Annotated[str, Marker(pattern=_DATA_KEY, max_length=253)]
Names = Annotated[tuple[str, ...], Marker(list_type="atomic")]


class Selector(KubeModel):
    """Which instances the policy is for: those that fit every given field; all if no field is given.

    A Node without Cluster API belongs to no cluster and no namespace.

    If several policies fit an instance, the most specific one applies. The fields pools, tags, labels, clusters and
    namespaces are compared in this order: a policy that sets a field is more specific than a policy that does not. If
    both set the same fields, the number of tags decides, then the number of labels, then the name.
    """

    clusters: Names = Field((), description="Names of the instances' Clusters (Cluster API).")
    namespaces: Names = Field((), description="Namespaces of the instances' AWSMachines or AWSMachinePools.")
    pools: Names = Field(
        (), description="Names of the instances' MachineDeployments, MachineSets, machine pools, or Node groups."
    )
    labels: dict[str, str] = Field(
        {}, description="Labels of the instances' Machines, AWSMachines, AWSMachinePools, or Nodes."
    )
    tags: dict[str, str] = Field({}, description="Tags of the instances in EC2; * matches any value.")


class LabelOnly(StrEnum):
    """The only reaction to events that EC2 cannot confirm."""

    LABEL = "label"


class Reactions(KubeModel):
    """The reaction to each cause. If a cause is absent, the reaction of the settings applies."""

    terminated: Reaction | None = Field(None, description="The instance is being or has been terminated.")
    stopped: Reaction | None = Field(None, description="The instance is being or has been stopped.")
    spot: Reaction | None = Field(
        None, description="AWS terminates or stops a Spot instance. A hibernation is only labelled."
    )
    ending: Reaction | None = Field(None, description="A scheduled retirement, stop or termination.")
    reboot: Reaction | None = Field(None, description="A scheduled reboot.")
    maintenance: Reaction | None = Field(None, description="A scheduled loss of network or power.")
    terminating_hook: Reaction | None = Field(
        None,
        description="A lifecycle hook delays the instance's termination. If the reaction is label, Perdure never "
        "completes the hook.",
    )
    rebalance: LabelOnly | None = Field(
        None,
        description="AWS recommends to rebalance. Only label is allowed, because EC2 has no call that confirms the "
        "event.",
    )
    capacity_reservation: LabelOnly | None = Field(
        None,
        description="A capacity reservation is interrupted. Only label is allowed, because EC2 has no call that "
        "confirms the event.",
    )


# A disruption counts in its node group for this long.
_LONGEST_REPLACEMENT = 3600
ReplacementSeconds = Annotated[int, Marker(minimum=1, maximum=_LONGEST_REPLACEMENT)]


class ReplaceFirst(KubeModel):
    """For how many seconds the deletion of the Machine waits for a replacement, for each cause.

    The wait ends sooner if AWS reclaims the instance sooner. The time left after the wait is for the drain.
    """

    spot: ReplacementSeconds | None = Field(
        None, description="A Spot notice. AWS leaves two minutes for replacement and drain together."
    )
    ending: ReplacementSeconds | None = Field(None, description="A scheduled retirement, stop or termination.")
    reboot: ReplacementSeconds | None = Field(None, description="A scheduled reboot.")
    maintenance: ReplacementSeconds | None = Field(None, description="A scheduled loss of network or power.")


class TaintSettings(KubeModel):
    """The taint that the reaction `taint` sets. If it is given, `cordon` and `drain` set it as well."""

    key: Annotated[str, Marker(pattern=_KEY, max_length=253)] | None = Field(
        None, description="The taint's key; by default perdure.dev/interruption."
    )
    value: Annotated[str, Marker(pattern=_VALUE, max_length=63)] | None = Field(
        None, description="The taint's value; by default the kind of cause: spot, scheduled, hook, stopped, ended."
    )
    effect: TaintEffect | None = Field(None, description="The taint's effect; by default NoSchedule.")
    node_termination_handler_names: bool | None = Field(
        None, description="Use the keys of the AWS Node Termination Handler, so that existing tolerations apply."
    )


class DoNotDisrupt(StrEnum):
    """Whether a Pod's request not to be disrupted is respected."""

    RESPECT = "Respect"
    IGNORE = "Ignore"


class DrainSettings(KubeModel):
    """How a Node is drained."""

    pod_grace_period_seconds: Seconds | None = Field(
        None, description="The grace period of every Pod, instead of its own."
    )
    node_grace_period_seconds: Seconds | None = Field(
        None, description="How long the whole drain may take. It ends sooner if AWS reclaims the instance sooner."
    )
    disruption_budgets: Budgets | None = Field(
        None,
        description="Respect (the default): Pods are evicted as PodDisruptionBudgets allow. Force: as Respect, but "
        "Pods that remain when the drain's time is over are deleted. Ignore: Pods are deleted from the beginning.",
    )
    do_not_disrupt: DoNotDisrupt | None = Field(
        None,
        description="For Pods whose annotation perdure.dev/do-not-disrupt or karpenter.sh/do-not-disrupt is true. "
        "Respect (the default): they are not evicted; but if disruptionBudgets is Force, they are deleted once the "
        "drain's time is over. Ignore: they are evicted like others.",
    )


class NotificationFormat(StrEnum):
    """The shape of a notification's body."""

    JSON = "Json"
    SLACK = "Slack"
    TEAMS = "Teams"


class NotificationHeader(KubeModel):
    """A header of the request."""

    name: Annotated[str, Marker(required=True, pattern=HEADER_NAME, max_length=LONGEST_HEADER_NAME)] = Field(
        description="The header's name."
    )
    value: Annotated[str, Marker(pattern=HEADER_VALUE, max_length=LONGEST_HEADER_VALUE)] | None = Field(
        None, description="The header's value, if it is not secret."
    )
    secret_key: SecretKey | None = Field(
        None, description="The key of the Secret perdure-notifications that holds the value."
    )


class Notification(KubeModel):
    """A webhook to notify when AWS reclaims an instance. Secret values are in the Secret perdure-notifications."""

    name: Annotated[str, Marker(required=True, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)] = Field(
        description="The webhook's name in messages, unique within the policy."
    )
    url: Annotated[str, Marker(pattern=WEB_ADDRESS, max_length=LONGEST_ADDRESS)] | None = Field(
        None, description="The URL to post to; redirects are not followed."
    )
    url_secret_key: SecretKey | None = Field(
        None, description="The key of the Secret perdure-notifications that holds the address."
    )
    causes: Annotated[tuple[CauseSort, ...], Marker(list_type="atomic")] | None = Field(
        None, description="The causes that are sent. By default these are spot, scheduled and hook."
    )
    format: NotificationFormat | None = Field(None, description="The shape of the body; by default Json.")
    template: Annotated[str, Marker(pattern=TEMPLATE, max_length=LONGEST_TEMPLATE)] | None = Field(
        None,
        description="The whole body, usually JSON, instead of a format. ${instance}, for example, is replaced by its "
        "value; the fields are " + ", ".join(FIELDS) + ". $$ stands for a dollar sign.",
    )
    headers: Annotated[
        tuple[
            Annotated[
                NotificationHeader,
                Marker(rules=(("has(self.value) != has(self.secretKey)", "give either value or secretKey"),)),
            ],
            ...,
        ],
        Marker(list_type="atomic", max_items=MOST_HEADERS),
    ] = Field((), description="Headers of the request. A default header of the same name is replaced.")
    proxy: Annotated[str, Marker(pattern=WEB_ADDRESS, max_length=LONGEST_ADDRESS)] | None = Field(
        None, description="The HTTP proxy to use. If its address has a password, give proxySecretKey instead."
    )
    proxy_secret_key: SecretKey | None = Field(
        None, description="The key of the Secret perdure-notifications that holds the proxy's address."
    )

    def channel(self) -> Channel:
        usual = (CauseSort.SPOT, CauseSort.SCHEDULED, CauseSort.HOOK)
        return Channel(name=self.name, causes=usual if self.causes is None else self.causes)


class InterruptionPolicySpec(KubeModel):
    """The reactions when AWS reclaims instances, and the instances to which they apply."""

    selector: Selector = Selector()
    reactions: Reactions = Reactions()
    taint: (
        Annotated[
            TaintSettings,
            Marker(
                rules=(
                    (
                        "!(has(self.key) && has(self.nodeTerminationHandlerNames) && self.nodeTerminationHandlerNames)",
                        "key and nodeTerminationHandlerNames exclude each other",
                    ),
                )
            ),
        ]
        | None
    ) = None
    drain: DrainSettings = DrainSettings()
    replace_first_seconds: ReplaceFirst = ReplaceFirst()
    launching_hook: bool | None = Field(None, description="Complete the hook of a launch once the Node is ready.")
    abandon_failed_launch: bool | None = Field(
        None, description="Abandon a launch whose Node is not ready in time; Auto Scaling then ends the instance."
    )
    # Zero would abandon every launch.
    launch_timeout_seconds: Annotated[int, Marker(minimum=10, maximum=LONGEST_SECONDS)] | None = Field(
        None, description="How long a Node may take to become ready."
    )
    maintenance_lead_seconds: Seconds | None = Field(
        None, description="Reactions to a scheduled event begin this long before the event's date."
    )
    hook_margin_seconds: Annotated[int, Marker(minimum=0, maximum=3600)] | None = Field(
        None,
        description="A hook is completed this long before its time is over, even if Pods are left. The margin is at "
        "most half of the hook's time.",
    )
    heartbeat_seconds: Annotated[int, Marker(minimum=10, maximum=3600)] | None = Field(
        None,
        description="Longest interval between heartbeats of a hook. Perdure lowers a value above 300 seconds to "
        "300 seconds, and a value above half of the hook's timeout to that half.",
    )
    hook_limit_seconds: Annotated[int, Marker(minimum=30, maximum=48 * 3600)] | None = Field(
        None, description="Longest time until a hook is completed; by default AWS's own limit."
    )
    max_unavailable: Annotated[int, Marker(minimum=1)] | None = Field(
        None, description="How many machines of a node group may be disrupted at a time; in a control plane only one."
    )

    notify: Annotated[
        tuple[
            Annotated[
                Notification,
                Marker(
                    rules=(
                        ("has(self.url) != has(self.urlSecretKey)", "give either url or urlSecretKey"),
                        ("!(has(self.format) && has(self.template))", "format and template exclude each other"),
                        (
                            "!(has(self.proxy) && has(self.proxySecretKey))",
                            "proxy and proxySecretKey exclude each other",
                        ),
                    )
                ),
            ],
            ...,
        ],
        Marker(list_type="map", list_map_keys=("name",), max_items=8),
    ] = Field((), description="Webhooks that are notified, once for each cause that AWS confirms.")

    def over(self, default: ReactionPolicy, name: str) -> ReactionPolicy:
        """The policy called `name`, with the values of `default` for fields that it leaves out."""
        seconds = {
            "launch_timeout": self.launch_timeout_seconds,
            "maintenance_lead": self.maintenance_lead_seconds,
            "hook_margin": self.hook_margin_seconds,
            "heartbeat": self.heartbeat_seconds,
            "hook_limit": self.hook_limit_seconds,
        }
        specified: dict[str, object] = {
            **{cause: Reaction(value) for cause, value in self.reactions if value is not None},
            **{field: timedelta(seconds=value) for field, value in seconds.items() if value is not None},
            **present(
                launching_hook=self.launching_hook,
                abandon_failed_launch=self.abandon_failed_launch,
                most=self.max_unavailable,
            ),
            "replace_first": {
                cause: timedelta(seconds=value)
                for cause, value in self.replace_first_seconds
                if value is not None and getattr(self.reactions, cause) is Reaction.DELETE_MACHINE
            },
        }
        return default.model_copy(
            update={
                **specified,
                "name": name,
                "tainting": self._tainting(),
                "draining": self._draining(),
                "channels": tuple(each.channel() for each in self.notify),
            }
        )

    def _tainting(self) -> Tainting:
        if self.taint is None:
            return Tainting()
        taint, names = self.taint, self.taint.node_termination_handler_names
        specified = present(key=taint.key, value=taint.value, effect=taint.effect, nth_names=names)
        return Tainting(always=True).model_copy(update=specified)

    def _draining(self) -> Draining:
        drain = self.drain
        pod, node = drain.pod_grace_period_seconds, drain.node_grace_period_seconds
        return Draining(
            pod_grace=None if pod is None else timedelta(seconds=pod),
            node_grace=None if node is None else timedelta(seconds=node),
            budgets=drain.disruption_budgets or Budgets.RESPECT,
            spares=drain.do_not_disrupt is not DoNotDisrupt.IGNORE,
        )


def present(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


# The message names the field: for a rule about two fields the API server names only the object that has both.
_REPLACE_FIRST = tuple(
    (
        f"!has(self.replaceFirstSeconds) || !has(self.replaceFirstSeconds.{cause}) || (has(self.reactions) && "
        f"has(self.reactions.{cause}) && self.reactions.{cause} == '{Reaction.DELETE_MACHINE}')",
        f"replaceFirstSeconds.{cause} needs reactions.{cause}: {Reaction.DELETE_MACHINE}",
    )
    for cause in ReplaceFirst.model_fields
)


class InterruptionPolicy(CustomResource):
    """Reactions when AWS reclaims EC2 instances: one for each cause, for the instances that the policy selects."""

    kind_of: ClassVar[Kind] = INTERRUPTION_POLICY
    definition: ClassVar[Definition] = Definition(
        annotations={}, required=("spec",), short_names=("ipol",), cluster_scoped=True, status_subresource=False
    )
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Spot", type="string", json_path=".spec.reactions.spot"),
        PrinterColumn(name="Terminated", type="string", json_path=".spec.reactions.terminated"),
        PrinterColumn(name="Ending", type="string", json_path=".spec.reactions.ending"),
        PrinterColumn(name="Hook", type="string", json_path=".spec.reactions.terminatingHook"),
        AGE,
    )

    spec: Annotated[InterruptionPolicySpec, Marker(rules=_REPLACE_FIRST)] = InterruptionPolicySpec()
