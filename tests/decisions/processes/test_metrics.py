"""The account area's numbers: names, types, labels and buckets of the replaced operator, and when they are counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from account_objects import claim, claim_world
from botocore.exceptions import ClientError
from prometheus_client import REGISTRY, CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from temporalio.testing import ActivityEnvironment

from activities.accounts import metrics as account_metrics
from activities.accounts.metrics import LISTENER
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.claim_lifecycle import decide as decide_claim
from domain.accounts.constants import FINALIZER, OPERATOR_NAMESPACE
from domain.accounts.organization import OrganizationMemory
from domain.accounts.pool import Room
from domain.accounts.resources import AccountClaim
from domain.identity import Key, Kind
from domain.resource import timestamp
from domain.writes import Patch
from engine import metrics
from engine.errors import Denied, Unavailable
from engine.metrics import Listener, Request, Step, Write
from starters.watch.accounts import WATCHED
from starters.watch.gauges import published
from starters.watch.projection import project
from starters.watch.projection_index import Index

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
READ = {entry.kind.name: entry.read for entry in WATCHED}
NAME = {"name": "aws-account-operator"}
POOL = {"namespace": OPERATOR_NAMESPACE, "pool_name": "pool"}

Obj = dict[str, Any]


# Objects, and their metrics.


def obj(kind: Kind, name: str, namespace: str = OPERATOR_NAMESPACE, **fields: Any) -> tuple[Kind, Obj]:
    metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1", **fields.pop("metadata", {})}
    return kind, {"metadata": metadata, "spec": {}, "status": {}, **fields}


def account(
    name: str, state: str = "Ready", *, entity: str = "", byoc: bool = False, **status: Any
) -> tuple[Kind, Obj]:
    spec = {"awsAccountID": "1", "byoc": byoc, "legalEntity": {"id": entity, "name": entity}}
    return obj(ACCOUNT, name, spec=spec, status={"state": state, **status})


def pool(name: str, size: int, metadata: Mapping[str, Any] | None = None, **status: Any) -> tuple[Kind, Obj]:
    return obj(ACCOUNT_POOL, name, spec={"poolSize": size}, status=status, metadata=metadata or {})


def index(*objects: tuple[Kind, Obj]) -> Index:
    known = Index()
    for kind, each in objects:
        projection = project(kind.name, "", each, READ[kind.name])
        known.of(kind.name)[projection.name] = projection
    return known


WORLD = (
    account("ready"),
    account("ready-too"),
    account("held", claimed=True, entity="acme"),
    account("kept", reused=True, entity="acme"),
    account("kept-too", reused=True, entity="acme"),
    account("verifying", "PendingVerification"),
    account("new", ""),
    account("broken", "Failed"),
    account("unclean", "Failed", reused=True, entity="acme"),
    account("customers", byoc=True, claimed=True, entity="acme"),
    obj(ACCOUNT, "stranger", "elsewhere", status={"state": "Ready"}),
    obj(ACCOUNT_CLAIM, "served", "tenant", status={"state": "Ready"}),
    obj(ACCOUNT_CLAIM, "waiting", "tenant", status={"state": "Pending"}),
    obj(ACCOUNT_CLAIM, "fresh", "other"),
    pool("pool", 5, awsLimitDelta=7, availableAccounts=2, accountsProgressing=1),
)


class Scrape:
    """One answer of /metrics, read as Prometheus reads it."""

    def __init__(self, text: str) -> None:
        self.families: dict[str, Metric] = {family.name: family for family in text_string_to_metric_families(text)}

    def value(self, series: str, /, **labels: str) -> float | None:
        for family in self.families.values():
            for sample in family.samples:
                if sample.name == series and sample.labels == labels:
                    return float(sample.value)
        return None


def gauges(*objects: tuple[Kind, Obj]) -> Scrape:
    registry = CollectorRegistry()
    with published(index(*objects), registry):
        return Scrape(generate_latest(registry).decode())


def scraped() -> Scrape:
    """The metrics of the worker's process."""
    return Scrape(generate_latest(REGISTRY).decode())


def as_activity(function: Callable[[], None], kind: str = "Account") -> None:
    """Run it as a lifecycle's activity that the server gave out at NOW."""
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, started_time=NOW, workflow_type=kind)
    environment.run(function)


class Growth:
    """How much a histogram or a counter of the worker has grown since."""

    def __init__(self, name: str, **labels: str) -> None:
        self._name, self._labels = f"aws_account_operator_{name}", {**NAME, **labels}
        self._before = {suffix: self._now(suffix) for suffix in ("_count", "_sum", "_total")}

    def _now(self, suffix: str) -> float:
        return REGISTRY.get_sample_value(f"{self._name}{suffix}", self._labels) or 0.0

    @property
    def times(self) -> float:
        return self._now("_count") - self._before["_count"]

    @property
    def seconds(self) -> float:
        return round(self._now("_sum") - self._before["_sum"])

    @property
    def total(self) -> float:
        return self._now("_total") - self._before["_total"]


def write(
    kind: Kind,
    patch: Mapping[str, object],
    answer: Obj,
    *,
    subresource: str = "status",
    version: str = "2",
    note: str = "status Ready",
) -> Write:
    key = Key(kind=kind.name, namespace="", name="x", uid="x")
    write_request = Patch(key=key, patch=dict(patch), subresource=subresource, resource_version="1", note=note)
    metadata = {"name": "x", "uid": "x", **answer.get("metadata", {}), "resourceVersion": version}
    return Write(write_request, {**answer, "metadata": metadata})


def condition(type_: str, seconds_ago: float) -> dict[str, str]:
    return {"type": type_, "status": "True", "lastProbeTime": timestamp(NOW - timedelta(seconds=seconds_ago))}


def aws_refusal(code: str, status: int = 400) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "RunInstances")


# Names, types, labels, buckets.


class Declared(NamedTuple):
    """One row of the replaced operator's table."""

    name: str
    type: str
    labels: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()


OF_CUSTOMERS = ("5", "10", "20", "30", "60", "120", "240", "300", "480", "600")
STATES = ("claimed", "reused", "state")
OF_POOL = ("namespace", "pool_name")
ERRORS = ("error", "error_source")
TABLE = (
    Declared("aws_accounts", "gauge"),
    Declared("account_crs", "gauge", STATES),
    Declared("account_ccs_crs", "gauge", STATES),
    Declared("account_claim_crs", "gauge", ("state",)),
    Declared("aws_accounts_reusable", "gauge", ("legal_id",)),
    Declared("account_pool_size", "gauge", OF_POOL),
    Declared("aws_limit_delta", "gauge", OF_POOL),
    Declared("available_non_ccs_accounts", "gauge", OF_POOL),
    Declared("accounts_progressing", "gauge", OF_POOL),
    Declared(
        "account_ready_duration_seconds",
        "histogram",
        (),
        ("60", "180", "300", "600", "1200", "1800", "3600", "7200", "14400", "18000", "28800", "36000"),
    ),
    Declared("account_claim_ready_duration_seconds", "histogram", (), ("1", "5", "10", "20", "30", "45", "60", "120")),
    Declared("account_claim_pending_duration_seconds", "histogram", (), ("60", "120", "240", "300", "600")),
    Declared("account_ccs_ready_duration_seconds", "histogram", (), OF_CUSTOMERS),
    Declared("account_claim_ccs_ready_duration_seconds", "histogram", (), OF_CUSTOMERS),
    Declared("account_claim_ccs_pending_duration_seconds", "histogram", (), ("60", "120", "240", "300", "600")),
    Declared("accounts_closed", "counter"),
    Declared("account_reuse_cleanup_duration_seconds", "histogram", (), ("1", "3", "5", "10", "15", "20", "30")),
    Declared("account_reuse_cleanup_failures", "counter"),
    Declared(
        "reconcile_duration_seconds",
        "histogram",
        ("controller", *ERRORS),
        ("0.001", "0.01", "0.1", "1", "5", "10", "20"),
    ),
    Declared(
        "api_request_duration_seconds", "histogram", ("controller", "method", "resource", "status", *ERRORS), ("1",)
    ),
    Declared("total_account_crs", "gauge"),
    Declared("total_accounts_crs_unclaimed", "gauge"),
    Declared("total_accounts_crs_claimed", "gauge"),
    Declared("total_aws_account_pending_verification", "gauge"),
    Declared("total_accounts_crs_failed", "gauge"),
    Declared("total_aws_accounts_crs_ready", "gauge"),
    Declared("total_aws_account_claim_crs", "gauge"),
    Declared("total_aws_accounts", "gauge"),
    Declared("pool_size_vs_unclaimed", "gauge"),
    Declared("total_aws_account_reused_available", "gauge", ("LegalID",)),
    Declared("total_aws_account_reused_failed", "gauge"),
)


@pytest.fixture(scope="module")
def everything() -> dict[str, Metric]:
    """Every family of the worker and the watcher, once something has happened."""
    LISTENER.on_step(Step("Account", "x", 0.5, None))
    LISTENER.on_request(Request("Account", "GET", "x", 200, 0.1))
    as_activity(lambda: account_metrics.organization_seen(counted(active=3), timedelta(minutes=5)))
    return gauges(*WORLD).families | scraped().families


@pytest.mark.parametrize("declared", TABLE, ids=lambda declared: declared.name)
def test_every_metric_is_the_replaced_operators(everything: dict[str, Metric], declared: Declared) -> None:
    family = everything[f"aws_account_operator_{declared.name}"]

    assert family.type == declared.type
    assert {frozenset(sample.labels) - {"le"} for sample in family.samples} == {frozenset({"name", *declared.labels})}
    assert {sample.labels["name"] for sample in family.samples} == {"aws-account-operator"}
    bounds = list(dict.fromkeys(sample.labels["le"] for sample in family.samples if "le" in sample.labels))
    assert bounds == ([*declared.buckets, "+Inf"] if declared.buckets else [])


def test_a_counter_has_the_suffix_and_no_creation_time() -> None:
    text = generate_latest(REGISTRY).decode()

    assert 'aws_account_operator_account_reuse_cleanup_failures_total{name="aws-account-operator"}' in text
    assert "_created" not in text


# Gauges.


def test_accounts_are_counted_by_claimed_reused_and_state() -> None:
    crs = gauges(*WORLD).families["aws_account_operator_account_crs"]

    assert {(s.labels["claimed"], s.labels["reused"], s.labels["state"]): s.value for s in crs.samples} == {
        ("false", "false", "Ready"): 2,
        ("true", "false", "Ready"): 1,
        ("false", "true", "Ready"): 2,
        ("false", "false", "PendingVerification"): 1,
        ("false", "false", ""): 1,
        ("false", "false", "Failed"): 1,
        ("false", "true", "Failed"): 1,
    }


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("account_ccs_crs", {"claimed": "true", "reused": "false", "state": "Ready"}, 1),
        ("account_claim_crs", {"state": "Ready"}, 1),
        ("account_claim_crs", {"state": "Pending"}, 1),
        ("account_claim_crs", {"state": ""}, 1),
        ("aws_accounts_reusable", {"legal_id": "acme"}, 2),
        ("account_pool_size", POOL, 5),
        ("aws_limit_delta", POOL, 7),
        ("available_non_ccs_accounts", POOL, 2),
        ("accounts_progressing", POOL, 1),
        ("total_account_crs", {}, 10),
        ("total_accounts_crs_unclaimed", {}, 3),
        ("total_accounts_crs_claimed", {}, 2),
        ("total_aws_account_pending_verification", {}, 1),
        ("total_accounts_crs_failed", {}, 1),
        ("total_aws_accounts_crs_ready", {}, 2),
        ("total_aws_account_claim_crs", {}, 3),
        ("pool_size_vs_unclaimed", {}, 2),
        ("total_aws_account_reused_available", {"LegalID": "acme"}, 2),
        ("total_aws_account_reused_failed", {}, 1),
    ],
)
def test_gauges_count_as_the_replaced_operator_counts(name: str, labels: dict[str, str], value: float) -> None:
    assert gauges(*WORLD).value(f"aws_account_operator_{name}", **NAME, **labels) == value


def test_a_pool_without_a_status_shows_its_size_and_zeros() -> None:
    shown = gauges(pool("pool", 5))

    assert shown.value("aws_account_operator_account_pool_size", **NAME, **POOL) == 5
    assert shown.value("aws_account_operator_aws_limit_delta", **NAME, **POOL) == 0


def test_numbers_of_the_wrong_type_count_as_none() -> None:
    odd = obj(ACCOUNT_POOL, "pool", spec={"poolSize": "five"}, status={"awsLimitDelta": None})

    assert gauges(odd).value("aws_account_operator_account_pool_size", **NAME, **POOL) == 0


def stalled(reason: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Stalled", "status": "True", "reason": reason}]}


@pytest.mark.parametrize(("reason", "budget", "limit"), [("CreateBudget", 1, 0), ("AccountLimit", 0, 1)])
def test_the_reason_that_a_pool_has_stopped_is_a_metric(reason: str, budget: float, limit: float) -> None:
    shown = gauges(pool("pool", 5, **stalled(reason)))

    assert shown.value("perdure_create_budget_reached", **POOL) == budget
    assert shown.value("perdure_account_limit_reached", **POOL) == limit
    assert shown.value("perdure_account_pool_stalled", **POOL, reason=reason) == 1


def test_a_pool_that_has_not_stopped_shows_so() -> None:
    shown = gauges(pool("pool", 5))

    assert shown.value("perdure_create_budget_reached", **POOL) == 0
    assert shown.value("perdure_account_limit_reached", **POOL) == 0
    assert shown.families["perdure_account_pool_stalled"].samples == []


@pytest.mark.parametrize(
    ("each", "kind", "phase"),
    [
        (account("a", "Creating"), "Account", "Creating"),
        (account("a", ""), "Account", "Pending"),
        (obj(ACCOUNT, "a", metadata={"annotations": {"perdure.dev/paused": "true"}}), "Account", "Paused"),
        (obj(ACCOUNT, "a", metadata={"deletionTimestamp": timestamp(NOW)}), "Account", "Deleting"),
        (obj(ACCOUNT_CLAIM, "c", "tenant"), "AccountClaim", "New"),
        (obj(ACCOUNT_CLAIM, "c", "tenant", status={"state": "Error"}), "AccountClaim", "Error"),
        (pool("p", 2, availableAccounts=2), "AccountPool", "Full"),
        (pool("p", 2, availableAccounts=1), "AccountPool", "Filling"),
        (pool("p", 2, **stalled("ConfigMap")), "AccountPool", "Waiting"),
    ],
)
def test_lifecycles_are_counted_by_phase(each: tuple[Kind, Obj], kind: str, phase: str) -> None:
    family = gauges(each).families["perdure_lifecycles"]

    assert [(sample.labels, sample.value) for sample in family.samples] == [({"kind": kind, "phase": phase}, 1)]


def test_gauges_are_shown_only_while_the_watcher_leads() -> None:
    registry = CollectorRegistry()

    with published(index(*WORLD), registry):
        assert b"account_pool_size" in generate_latest(registry)
    assert generate_latest(registry) == b""


def test_an_object_that_is_gone_leaves_no_series() -> None:
    registry, known = CollectorRegistry(), index(*WORLD)
    with published(known, registry):
        known.of(ACCOUNT_POOL.name).clear()
        assert b'pool_name="pool"' not in generate_latest(registry)


# The organization.


def counted(*, active: int, limit: int | None = 10, ago: float = 0) -> OrganizationMemory:
    """One account is being created, and two are promised: they do not count yet."""
    room = Room(active=active, limit=limit, creating=1, free=(limit or 0) - active - 3, budget=27)
    return OrganizationMemory(room=room, counted_at=NOW - timedelta(seconds=ago))


@pytest.mark.parametrize("limit", [10, None])
def test_the_organization_is_its_active_accounts_and_those_being_created(limit: int | None) -> None:
    as_activity(lambda: account_metrics.organization_seen(counted(active=3, limit=limit), timedelta(minutes=5)))

    assert scraped().value("aws_account_operator_aws_accounts", **NAME) == 4
    assert scraped().value("aws_account_operator_total_aws_accounts", **NAME) == 4
    assert scraped().value("perdure_create_budget_left") == 27


def test_a_count_that_another_worker_has_renewed_is_not_shown_any_more() -> None:
    as_activity(lambda: account_metrics.organization_seen(counted(active=3, ago=601), timedelta(minutes=5)))

    assert scraped().value("aws_account_operator_aws_accounts", **NAME) is None


# Moments of an object's life.


def ready(**account_fields: Any) -> Obj:
    status = {"state": "Ready", "conditions": [condition("Creating", 240), condition("Ready", 0)]}
    return {"spec": {}, "status": status, **account_fields}


def test_an_account_that_becomes_ready_counts_the_time_since_its_creation() -> None:
    grown = Growth("account_ready_duration_seconds")

    as_activity(lambda: LISTENER.on_write(write(ACCOUNT, {"status": {"state": "Ready"}}, ready())))

    assert (grown.times, grown.seconds) == (1, 240)


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(write(ACCOUNT, {"status": {"state": "Ready"}}, ready(), version="1"), id="nothing changed"),
        pytest.param(write(ACCOUNT, {"status": {"claimed": True}}, ready()), id="ready before"),
        pytest.param(write(ACCOUNT, {"status": {"state": "Failed"}}, ready()), id="another state"),
        pytest.param(write(ACCOUNT, {"status": {"state": "Ready"}}, ready(spec={"byoc": True})), id="customer's own"),
        pytest.param(write(ACCOUNT, {"status": {"state": "Ready"}}, {"status": {"state": "Ready"}}), id="by hand"),
        pytest.param(write(ACCOUNT_CLAIM, {"status": {"state": "Ready"}}, ready()), id="another kind"),
    ],
)
def test_an_account_that_does_not_become_ready_counts_nothing(written: Write) -> None:
    grown = Growth("account_ready_duration_seconds")

    as_activity(lambda: LISTENER.on_write(written))

    assert grown.times == 0


def test_a_customers_account_and_its_claim_are_counted_by_themselves() -> None:
    grown = Growth("account_ccs_ready_duration_seconds")
    as_activity(lambda: LISTENER.on_write(write(ACCOUNT, {"status": {"state": "Ready"}}, ready(spec={"byoc": True}))))
    assert (grown.times, grown.seconds) == (1, 240)

    pooled, customers = (
        Growth("account_claim_ready_duration_seconds"),
        Growth("account_claim_ccs_ready_duration_seconds"),
    )
    metadata = {"name": "c", "creationTimestamp": timestamp(NOW - timedelta(seconds=90))}
    served = {"metadata": metadata, "spec": {"byoc": True}, "status": {"state": "Ready", "conditions": []}}
    as_activity(lambda: LISTENER.on_write(write(ACCOUNT_CLAIM, {"status": {"state": "Ready"}}, served)), "AccountClaim")
    assert (pooled.times, customers.times, customers.seconds) == (0, 1, 90)


def test_a_served_claim_counts_the_time_since_it_began_to_look() -> None:
    grown = Growth("account_claim_ready_duration_seconds")
    status = {"state": "Ready", "conditions": [condition("Unclaimed", 7), condition("Claimed", 0)]}

    as_activity(lambda: LISTENER.on_write(write(ACCOUNT_CLAIM, {"status": status}, {"status": status})), "AccountClaim")

    assert (grown.times, grown.seconds) == (1, 7)


def test_a_served_claim_that_says_no_more_that_it_waited_is_not_counted_again() -> None:
    grown = Growth("account_claim_ready_duration_seconds")
    conditions = [condition(type_, 7) for type_ in ("Unclaimed", "Claimed", "InvalidConfigMap")]
    served = claim(spec={"accountLink": "a", "accountOU": "ou"}, status={"state": "Ready", "conditions": conditions})
    (action,) = decide_claim(claim_world(served), NOW).actions
    assert isinstance(action, Patch)
    answer = write(ACCOUNT_CLAIM, action.patch, served.model_dump(mode="json") | dict(action.patch)).answer

    as_activity(lambda: LISTENER.on_write(Write(action, answer)), "AccountClaim")

    assert grown.times == 0


@pytest.mark.parametrize(("state", "times"), [("Pending", 1), ("Ready", 0), ("", 0), ("Error", 0)])
def test_each_look_at_a_pending_claim_counts_its_age(state: str, times: float) -> None:
    grown = Growth("account_claim_pending_duration_seconds")
    metadata = {"name": "c", "creationTimestamp": timestamp(NOW - timedelta(seconds=90))}
    claim = AccountClaim.model_validate({"metadata": metadata, "status": {"state": state}})

    as_activity(lambda: account_metrics.claim_seen(claim), "AccountClaim")

    assert (grown.times, grown.seconds) == (times, 90 * times)


DELETED = {"deletionTimestamp": timestamp(NOW - timedelta(seconds=12))}
LINKED = {"spec": {"accountLink": "a"}}


@pytest.mark.parametrize(
    ("finalizers", "claim", "times"),
    [
        pytest.param([], {**LINKED, "metadata": DELETED}, 1, id="released"),
        pytest.param(["other"], {**LINKED, "metadata": DELETED}, 1, id="released, another finalizer remains"),
        pytest.param([FINALIZER], LINKED, 0, id="finalizer set"),
        pytest.param([], {"metadata": DELETED}, 0, id="held nothing"),
        pytest.param([], {"spec": {"accountLink": "a", "byoc": True}, "metadata": DELETED}, 0, id="held a customer's"),
    ],
)
def test_a_released_claim_counts_the_time_since_its_deletion(finalizers: list[str], claim: Obj, times: float) -> None:
    grown = Growth("account_reuse_cleanup_duration_seconds")
    # The answer to the write that removes the last finalizer has the version of before.
    written = write(ACCOUNT_CLAIM, {"metadata": {"finalizers": finalizers}}, claim, subresource="", version="1")

    as_activity(lambda: LISTENER.on_write(written), "AccountClaim")

    assert (grown.times, grown.seconds) == (times, 12 * times)


@pytest.mark.parametrize(
    ("activity", "error", "failures"),
    [
        ("aws.clean_region", Denied("no"), 1),
        ("aws.clean_region", None, 0),
        ("aws.create_account", Denied("no"), 0),
    ],
)
def test_failed_attempts_to_clean_are_counted(activity: str, error: Exception | None, failures: float) -> None:
    grown = Growth("account_reuse_cleanup_failures")

    LISTENER.on_step(Step("AccountClaim", activity, 0.1, error))

    assert grown.total == failures


# Passes and requests.


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "labels"),
    [
        (None, ("", "")),
        (caused(Denied("no"), aws_refusal("AccessDenied")), ("AccessDenied", "aws")),
        (Unavailable("no answer"), ("{OTHER}", "{OTHER}")),
    ],
)
def test_a_pass_is_counted_with_the_error_of_aws(error: Exception | None, labels: tuple[str, str]) -> None:
    grown = Growth("reconcile_duration_seconds", controller="accountpool", error=labels[0], error_source=labels[1])

    LISTENER.on_step(Step("AccountPool", "accounts.pass_pool", 2.0, error))

    assert (grown.times, grown.seconds) == (1, 2)


def test_other_areas_are_not_counted() -> None:
    before = generate_latest(REGISTRY)

    LISTENER.on_step(Step("LoadBalancer", "x", 2.0, None))
    LISTENER.on_request(Request("", "GET", "x", 200, 0.1))

    assert _without_process(generate_latest(REGISTRY)) == _without_process(before)


def _without_process(text: bytes) -> list[bytes]:
    return [line for line in text.splitlines() if b"aws_account_operator" in line]


@pytest.mark.parametrize(
    ("request_", "status", "error"),
    [
        (Request("Account", "GET", "r", 200), "200 OK", ("", "")),
        (Request("Account", "GET", "r", 404), "404 Not Found", ("", "")),
        (
            Request("Account", "GET", "r", 0, 0, aws_refusal("OptInRequired", 401)),
            "401 Unauthorized",
            ("OptInRequired", "aws"),
        ),
        (Request("Account", "GET", "r", 0, 0, OSError("cut")), "{ERROR}", ("{OTHER}", "{OTHER}")),
    ],
)
def test_a_request_is_counted_with_its_status_line(request_: Request, status: str, error: tuple[str, str]) -> None:
    labels = {"controller": "account", "method": "GET", "resource": "r", "status": status}
    grown = Growth("api_request_duration_seconds", **labels, error=error[0], error_source=error[1])

    LISTENER.on_request(request_)

    assert grown.times == 1


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/apis/g/v1/things", "g/v1/things"),
        ("/apis/g/v1/things/name", "g/v1/things/{NAME}"),
        ("/apis/g/v1/namespaces/ns/things", "g/v1/namespaces/{NAMESPACE}/things"),
        ("/apis/g/v1/namespaces/ns/things/name", "g/v1/namespaces/{NAMESPACE}/things/{NAME}"),
        ("/apis/g/v1/namespaces/ns/things/name/status", "g/v1/namespaces/{NAMESPACE}/things/{NAME}/status"),
        ("/api/v1/namespaces/ns/secrets/name", "core/v1/namespaces/{NAMESPACE}/secrets/{NAME}"),
        ("/api/v1/namespaces/ns", "core/v1/namespaces/{NAME}"),
        ("/api/v1/namespaces", "core/v1/namespaces"),
        ("/version", "{OTHER}"),
    ],
)
def test_paths_in_metrics_have_no_names(path: str, resource: str) -> None:
    assert metrics.nameless(path) == resource


# Listeners.


class RequestRecorder(Listener):
    """Records what it hears."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def on_request(self, request: Request) -> None:
        self.requests.append(request)


class Broken(Listener):
    """A listener with a bug."""

    def on_request(self, request: Request) -> None:
        raise ValueError(request.method)


@pytest.fixture
def heard() -> Iterator[RequestRecorder]:
    listeners = (Broken(), RequestRecorder())
    for listener in listeners:
        metrics.listen(listener)
    yield listeners[1]
    for listener in listeners:
        metrics.forget(listener)


def test_a_request_is_counted_with_the_kind_whose_lifecycle_asked(heard: RequestRecorder) -> None:
    def ask() -> None:
        with metrics.requesting("GET", "host") as request:
            request.status = 204

    ask()
    as_activity(ask, "AccountClaim")

    assert [(request.kind, request.status) for request in heard.requests] == [("", 204), ("AccountClaim", 204)]


def test_a_request_without_an_answer_is_counted_too_and_raises(heard: RequestRecorder) -> None:
    with pytest.raises(OSError, match="cut"), metrics.requesting("GET", "host"):
        raise OSError("cut")

    assert [(request.status, str(request.error)) for request in heard.requests] == [(0, "cut")]


def test_a_listener_added_twice_is_called_once(heard: RequestRecorder) -> None:
    metrics.listen(heard)

    with metrics.requesting("GET", "host"):
        pass

    assert len(heard.requests) == 1
