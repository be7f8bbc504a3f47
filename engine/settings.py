"""Every setting of every process: environment variables `PERDURE_*`, read once per process (`settings()`).

Temporal, Kubernetes and tracing are configured by their own variables (`TEMPORAL_*`, `KUBECONFIG`, `OTEL_*`).

Durations are plain seconds (`90`, `0.5`), Go's notation (`90s`, `5m`, `1h30m`), or ISO 8601.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Literal, get_args, get_origin

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from domain import operator_domain

_PREFIX = "PERDURE_"
# Variables that are not settings, by name and by prefix; the command line, the local deployment and tests read them.
NOT_SETTINGS = {
    "PERDURE_DOWNLOADS",
    "PERDURE_STATE",
    "PERDURE_USER",
    "PERDURE_LOCAL_FSYNC",
    "PERDURE_LOCAL_TEMPORAL",
    "PERDURE_LOCAL_TEMPORAL_PROGRAMS",
    "PERDURE_RECORD_HISTORIES",
}
NOT_SETTINGS_BEGIN = ("PERDURE_TEST_", "PERDURE_OPENSTACK_")
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)")

log = logging.getLogger(__name__)

_GO_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")
_GO_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _duration(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        if _GO_DURATION.fullmatch(text):
            return timedelta(seconds=sum(float(n) * _SECONDS_PER_UNIT[unit] for n, unit in _GO_PART.findall(text)))
        return timedelta(seconds=float(text))
    except (ValueError, OverflowError):
        return value


def _names(value: object) -> object:
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value


Duration = Annotated[timedelta, BeforeValidator(_duration)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]


class _Group(BaseSettings):
    """Settings that belong together; the docstring of a group is its heading in docs/settings.md."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="ignore")


class Installation(_Group):
    """Every installation"""

    mode: Literal["act", "observe"] = Field(
        "act",
        description="`observe` decides and reports to Temporal, and writes nothing to Kubernetes or any cloud: for a "
        "first look at an existing installation.",
    )
    areas: Names = Field(
        (),
        description="The areas that are served, comma-separated: `accounts`, `claims`, `instances`, `loadbalancers`, "
        "`threescale`; empty for all. Other areas are not watched.",
    )
    cluster: str = Field(
        "",
        description="Name of the watched cluster, needed if several share a Temporal namespace. Workflow ids and task "
        "queues begin with the name. A worker serves only the cluster that its own setting names.",
    )
    installation: str = Field(
        "perdure",
        pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="Name of this installation. Change it where two installations share a Kubernetes namespace or a "
        "Temporal namespace: the watcher's Lease is NAME-watch, the workers' deployment in Temporal is NAME, or "
        "CLUSTER-NAME where PERDURE_CLUSTER is set.",
    )
    watch_lease_namespace: str = Field(
        "perdure",
        description="Perdure's own namespace, with the watcher's Lease, the ConfigMaps of pauses and audit reports, "
        "and the Secret perdure-notifications.",
    )


class Monitoring(_Group):
    """Health, logs, metrics, traces"""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least severe logged level; `DEBUG` logs each pass."
    )
    listen_host: str = Field(
        "127.0.0.1", description="Address on which health, metrics and the codec server listen; 0.0.0.0 in a pod."
    )
    health_port: int = Field(0, ge=0, le=65535, description="Port of /healthz, /readyz and /metrics; 0 serves none.")
    metrics_port: int = Field(
        0, ge=0, le=65535, description="Port of the Temporal SDK's own Prometheus metrics; 0 serves none."
    )
    otel_endpoint: str = Field(
        "",
        validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT",
        description="Base URL of an OTLP/HTTP collector; empty for no traces.",
    )


class Temporal(_Group):
    """Temporal: keys, encryption, codec server, versions of workers"""

    temporal_api_key_file: str = Field(
        "",
        description="File with the API key for Temporal, read again every 30 s; takes precedence over "
        "TEMPORAL_API_KEY.",
    )
    temporal_keys: str = Field(
        "",
        description="Directory of the keys that encrypt payloads, such as a mounted Secret; empty for no encryption.",
    )
    codec_origins: Names = Field(
        ("http://localhost:8233",),
        description="Origins of Temporal's web UI, comma-separated, such as https://temporal.example.com, whose "
        "pages may read the codec server's answers.",
    )
    codec_token_file: str = Field(
        "",
        description="File with the tokens that the codec server accepts, one per line; read for each request. "
        "Without this file, only callers on the server's own machine get answers.",
    )
    codec_guarded: bool = Field(
        False,
        description="With `true` the codec server answers every caller. Set this only if a proxy in front of the "
        "server admits only authorised callers.",
    )
    worker_build_id: str = Field(
        "",
        description="The workers' version. If it is set, a lifecycle stays on one version during a run, and moves to "
        "another version between runs. If it is empty, any worker takes any task.",
    )


class Load(_Group):
    """Rates, intervals and memory of large installations"""

    drain: Duration = Field(
        timedelta(seconds=30),
        gt=timedelta(0),
        description="After SIGTERM, a process waits at most this long for its activities, its calls that receive "
        "messages, and its work on received messages. In a pod, set it below terminationGracePeriodSeconds.",
    )
    sweep: Duration = Field(
        timedelta(0),
        ge=timedelta(0),
        description="Interval of the sweeps, which compare all objects in bulk; 0 for the default of each API: "
        "AWS Organizations and OpenStack projects 5 minutes, EC2 10 minutes, 3scale tenants an hour. A longer interval "
        "saves calls, but changes without an event are found later.",
    )
    call_timeout: Duration = Field(
        timedelta(0),
        ge=timedelta(0),
        description="Longest wait for one answer of OpenStack or 3scale; 0 for 20 s (OpenStack) and 30 s (3scale). "
        "Raise it if these APIs are slow.",
    )
    worker_cached_workflows: int = Field(
        250,
        ge=1,
        description="Workflows that a worker keeps in memory, about 100 KiB each. Raise it if more workflows than this "
        "have work every few minutes: a workflow that is not in memory is replayed from its history.",
    )
    worker_organization_rate: float = Field(
        4.0,
        gt=0,
        description="Activities per second, over all workers of the cluster, that call AWS Organizations or "
        "Support. Divide it where clusters share an AWS organization.",
    )
    worker_openstack_rate_per_project: float = Field(
        20.0,
        gt=0,
        description="OpenStack calls per second in one project and worker, on average over a few seconds. Lower it "
        "where the cloud limits its rate.",
    )


class Accounts(_Group):
    """AWS accounts"""

    accounts_poll: Duration = Field(
        timedelta(seconds=60),
        gt=timedelta(0),
        description="Longest interval between queries about a support case; AWS sends no event when a case progresses. "
        "The interval is up to 5 times as long for regions that are being enabled, and up to 10 times as long for "
        "quota requests.",
    )
    accounts_create_budget: int = Field(
        30,
        ge=0,
        description="Maximum number of accounts created within an hour: the last safeguard against a runaway loop. "
        "Raise it while a large pool is filled; 0 creates none.",
    )
    accounts_email_domain: str = Field("redhat.com", description="Domain of the accounts' e-mail addresses.")
    accounts_rotate_keys: bool = Field(True, description="Give a released account new access keys before it is reused.")
    accounts_protected: Names = Field(
        (), description="Ids of AWS accounts, comma-separated, that no action may change; payers are always protected."
    )
    accounts_dev_mode: Literal["", "local", "cluster"] = Field(
        "",
        validation_alias="FORCE_DEV_MODE",
        description="The replaced operator's development mode: no account, case, quota or opt-in is requested from "
        "AWS.",
    )


class Claims(_Group):
    """Resource claims"""

    claims_domain: Annotated[str, AfterValidator(operator_domain.parse)] = Field(
        operator_domain.DEFAULT,
        validation_alias="OPERATOR_DOMAIN",
        description="The API group of resource claims and the prefix of their labels, annotations and finalizers.",
    )
    claims_namespace: str = Field(
        "poolboy",
        min_length=1,
        validation_alias="OPERATOR_NAMESPACE",
        description="Namespace of all ResourceHandles, ResourcePools, ResourceProviders and ResourceWatches.",
    )
    claims_cluster_domain: str = Field(
        "",
        validation_alias="CLUSTER_DOMAIN",
        description="Value of the metrics' label `cluster_domain`, as in Poolboy.",
    )
    claims_interval: Duration = Field(
        timedelta(seconds=60),
        gt=timedelta(0),
        validation_alias="MANAGE_CLAIMS_INTERVAL",
        description="How often claims whose templates depend on the clock are evaluated again.",
    )
    claims_handles_interval: Duration = Field(
        timedelta(seconds=60),
        gt=timedelta(0),
        validation_alias="MANAGE_HANDLES_INTERVAL",
        description="How often handles whose templates depend on the clock or on chance are evaluated again.",
    )
    claims_pools_interval: Duration = Field(
        timedelta(seconds=10),
        gt=timedelta(0),
        validation_alias="MANAGE_POOLS_INTERVAL",
        description="How often pools are evaluated again if their values depend on the clock.",
    )
    claims_refresh_interval: Duration = Field(
        timedelta(minutes=10),
        gt=timedelta(0),
        validation_alias="RESOURCE_REFRESH_INTERVAL",
        description="Interval of the periodic pass, for changes that no watch reports.",
    )
    claims_older_templates: bool = Field(
        False,
        description="Evaluate templates by the rules of Poolboy 1.12, where these differ from the rules of 1.13 to "
        "1.17.",
    )


class LoadBalancers(_Group):
    """Load balancers"""

    loadbalancers_api_endpoint: str = Field(
        "",
        validation_alias="API_ENDPOINT",
        description="The Kubernetes API as load balancers' machines reach it, such as https://api.example.com:443.",
    )
    loadbalancers_ntp_pools: Names = Field((), description="NTP pools of the machines, comma-separated.")
    loadbalancers_ntp_servers: Names = Field(
        (), description="NTP servers of the machines, comma-separated. Without servers and pools, pool.ntp.org is used."
    )
    loadbalancers_agent_interval: Duration = Field(
        timedelta(0), description="How often machines' agents report, 5 to 170 s; 0 for their own default."
    )
    loadbalancers_boot_timeout: Duration = Field(
        timedelta(minutes=10),
        gt=timedelta(0),
        description="How long a machine may take from its creation to its first report.",
    )
    loadbalancers_deletion_grace: Duration = Field(
        timedelta(minutes=2),
        ge=timedelta(0),
        description="How long an unhealthy machine may recover before it is deleted.",
    )
    # The next settings have the variable names of yawol's cloud controller. `activities.loadbalancers` reads them.
    loadbalancers_namespace: str = Field(
        "",
        validation_alias="CLUSTER_NAMESPACE",
        description="Namespace of the LoadBalancers of Services and of the Secret with the OpenStack credentials. "
        "Services are served if this setting, SECRET_NAME, FLOATING_NET_ID and NETWORK_ID are set.",
    )
    loadbalancers_secret_name: str = Field(
        "",
        validation_alias="SECRET_NAME",
        description="Name of the Secret with the OpenStack credentials.",
    )
    loadbalancers_floating_net_id: str = Field(
        "",
        validation_alias="FLOATING_NET_ID",
        description="Id of the network of floating IPs.",
    )
    loadbalancers_network_id: str = Field(
        "",
        validation_alias="NETWORK_ID",
        description="Id of the network of load balancers and their machines.",
    )
    loadbalancers_subnet_id: str = Field(
        "",
        validation_alias="SUBNET_ID",
        description="Id of the subnet in the network NETWORK_ID; empty lets Neutron choose.",
    )
    loadbalancers_flavor_id: str = Field(
        "",
        validation_alias="FLAVOR_ID",
        description="Id of the machines' flavor.",
    )
    loadbalancers_flavor_name: str = Field(
        "",
        validation_alias="FLAVOR_NAME",
        description="Name of the machines' flavor, instead of its id.",
    )
    loadbalancers_flavor_search: str = Field(
        "",
        validation_alias="FLAVOR_SEARCH",
        description="Part of the flavor's name, instead of its id; exactly one flavor must match.",
    )
    loadbalancers_image_id: str = Field(
        "",
        validation_alias="IMAGE_ID",
        description="Id of the machines' image.",
    )
    loadbalancers_image_name: str = Field(
        "",
        validation_alias="IMAGE_NAME",
        description="Name of the machines' image, instead of its id; the newest active image of that name is used.",
    )
    loadbalancers_image_search: str = Field(
        "",
        validation_alias="IMAGE_SEARCH",
        description="Part of the image's name, instead of its id; the newest active image that matches is used.",
    )
    loadbalancers_availability_zone: str = Field(
        "",
        validation_alias="AVAILABILITY_ZONE",
        description="The machines' availability zone; empty lets Nova choose.",
    )
    loadbalancers_internal: bool = Field(
        False,
        validation_alias="INTERNAL_LB",
        description="With `true` load balancers have no floating IP, unless their Service asks for one.",
    )
    loadbalancers_classes: Names = Field(
        (), description="Served classes of Services, comma-separated; empty for `stackit.cloud/yawol`."
    )
    loadbalancers_unclassed: bool = Field(True, description="Serve Services without a class, too.")
    loadbalancers_release_foreign: bool = Field(
        False,
        description="Remove Perdure's finalizer from a Service whose new class Perdure does not serve; false keeps it, "
        "as yawol does.",
    )
    loadbalancers_target_kubeconfig: str = Field(
        "",
        description="Kubeconfig of the cluster whose Services and Nodes are served; empty for Perdure's own cluster.",
    )
    loadbalancers_yawol_namespace: str = Field(
        "kube-system",
        description="Namespace of yawol's controllers: Perdure leaves a kind alone while its controller's leader has a "
        "live lease.",
    )


class Instances(_Group):
    """EC2 instances"""

    instances_queues: Names = Field(
        (),
        description="Accounts and regions whose EC2 instances are served, as a comma-separated list of entries; if "
        "empty, no instances are served. An entry has one of three forms. "
        "(1) ACCOUNT/REGION[/QUEUE][@ROLE] is one account and region. QUEUE is the name of its queue, ROLE the ARN of "
        "a role to assume in ACCOUNT. "
        "(2) ACCOUNT/REGION=OWNER/REGION[/QUEUE][@ROLE] is an account and region whose events arrive in a queue of the "
        "account OWNER. This queue needs an entry of its own. "
        "(3) clusters[/QUEUE][@ROLENAME] stands for the accounts and regions of all clusters of Cluster API's AWS "
        "provider. ROLENAME is the name of a role in each of these accounts.",
    )
    instances_nodes: bool = Field(
        False,
        description="Serve Nodes of Perdure's own cluster that belong to no AWSMachine or AWSMachinePool, for clusters "
        "without Cluster API. Requires further rights: rbac/instances-nodes.yaml.",
    )
    instances_reactions: Names = Field(
        (),
        description="Reactions to instances that AWS reclaims, comma-separated, each as CAUSE=REACTION. The causes are "
        "`terminated`, `stopped`, `spot`, `ending`, `reboot`, `maintenance` and `terminating-hook`. The reactions are "
        "`label`, `taint`, `cordon`, `drain`, `terminate-instance` and `delete-machine`. With the further entry "
        "`launching-hook=true`, Perdure completes the hook of a launch once the Node is ready. An InterruptionPolicy "
        "takes precedence for the instances that it selects.",
    )
    instances_disruptions: int = Field(
        1,
        ge=1,
        description="How many machines of one node group may be deleted or drained at the same time because of "
        "scheduled events; further machines wait. A control plane loses one machine at a time, and only while its "
        "other machines are healthy. The count is kept in a Lease in PERDURE_WATCH_LEASE_NAMESPACE.",
    )
    instances_setup: bool = Field(
        True,
        description="Create and correct the queues, dead-letter queues and rules of PERDURE_INSTANCES_QUEUES in AWS; "
        "false if they are managed elsewhere.",
    )
    instances_group_prefix: str = Field(
        "", description="Prefix of the names of Auto Scaling groups whose events are received; empty for all groups."
    )
    events_visibility: Duration = Field(
        timedelta(seconds=60),
        ge=timedelta(seconds=5),
        description="How long a received message is invisible to other consumers; renewed while it is handled.",
    )


class Threescale(_Group):
    """3scale"""

    threescale_operator_namespace: str = Field(
        "",
        description="Namespace of the 3scale operator: while its leader's lease is live, Perdure changes no 3scale "
        "object. If empty, the lease is looked for in the namespace of each object.",
    )


class Settings(Installation, Monitoring, Temporal, Load, Accounts, Claims, LoadBalancers, Instances, Threescale):
    """The settings of a process; field `x_y` is the variable `PERDURE_X_Y`."""

    @property
    def watch_lease_name(self) -> str:
        return f"{self.installation}-watch"

    @property
    def worker_deployment(self) -> str:
        """The name of the worker deployment, without the colons and dots that Temporal refuses in it."""
        named = f"{self.cluster}-{self.installation}" if self.cluster else self.installation
        return re.sub(r"[.:]", "-", named)

    @property
    def observing(self) -> bool:
        return self.mode == "observe"


# In the order in which they are shown to people.
GROUPS = (Installation, Monitoring, Temporal, Load, Accounts, Claims, LoadBalancers, Instances, Threescale)


def settings_of(group: type[_Group]) -> tuple[str, ...]:
    return tuple(name for name in group.__annotations__ if name in group.model_fields)


class InvalidSettings(ValueError):  # noqa: N818
    """The message is one line and says what is wrong with each variable."""


def unknown_variables(environment: Iterable[str]) -> dict[str, str]:
    """The unknown variables, each with the most similar setting's name or an empty string.

    The variables that Kubernetes adds for a Service whose name begins with `perdure` are not included.
    """
    known = {variable_of(field) for field in Settings.model_fields} | NOT_SETTINGS
    ours = sorted(name for name in known if name.startswith(_PREFIX))
    return {
        name: next(iter(get_close_matches(name, ours, n=1)), "")
        for name in sorted(environment)
        if name.startswith(_PREFIX)
        and name not in known
        and not name.startswith(NOT_SETTINGS_BEGIN)
        and not _SERVICE_LINK.search(name)
    }


def variable_of(field: str) -> str:
    return str(Settings.model_fields[field].validation_alias or f"{_PREFIX}{field.upper()}")


def as_text(value: object) -> str:
    """The value as in an environment variable: `90s`, `true`, `a,b`."""
    match value:
        case timedelta():
            return f"{value.total_seconds():g}s"
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(value)
    return str(value)


def no_setting(variable: str, nearest: str) -> str:
    return f"{variable} is not a setting and has no effect{f'; is {nearest} meant?' if nearest else ''}"


def range_of(field: str) -> str:
    """The values that a setting accepts: `act or observe`, `at least 5s`, `0 to 65535`; empty if there is no limit."""
    found = Settings.model_fields[field]
    if get_origin(found.annotation) is Literal:
        return " or ".join(each for each in get_args(found.annotation) if each)
    bounds = {
        sign: getattr(each, sign) for each in found.metadata for sign in ("gt", "ge", "le") if hasattr(each, sign)
    }
    if "ge" in bounds and "le" in bounds:
        return f"{as_text(bounds['ge'])} to {as_text(bounds['le'])}"
    if "gt" in bounds:
        return f"more than {as_text(bounds['gt'])}"
    return f"at least {as_text(bounds['ge'])}" if "ge" in bounds else ""


def present_variables(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name in os.environ)


@cache
def settings() -> Settings:
    """This process's settings, read once; warns of unknown variables that look like settings. Raises InvalidSettings.

    A command configures no logging, so its warnings go to standard error.
    """
    found = read_settings()
    for unknown, nearest in unknown_variables(os.environ).items():
        log.warning("%s", no_setting(unknown, nearest))
    return found


def read_settings() -> Settings:
    """The settings in the current environment; logs nothing. Raises InvalidSettings."""
    try:
        return Settings()
    except ValidationError as error:
        raise InvalidSettings("; ".join(map(_wrong, error.errors()))) from None


def _wrong(error: ErrorDetails) -> str:
    place = str(error["loc"][0])
    name = variable_of(place) if place in Settings.model_fields else place
    expected = "a duration such as 90, 90s, 5m or 1h30m" if error["type"].startswith("time_delta") else ""
    return f"{name}={as_text(error['input'])[:80]!r}: {f'expected {expected}' if expected else error['msg']}"
