"""Spans at our own borders, where a trace begins, and what log lines say of it: with spans recorded in memory."""

from __future__ import annotations

import dataclasses
import io
import json
import logging
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from temporalio.testing import ActivityEnvironment

from domain.identity import Key
from engine import metrics, telemetry, tracing
from engine.errors import Unavailable
from engine.settings import Settings
from starters.watch.wake_queue import WakeQueue

KEY = Key(kind="Account", namespace="ns", name="one", uid="42", cluster="east")


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    stored, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(stored))
    tracing.begin_tracing(provider.get_tracer("test"))
    yield stored
    tracing.end_tracing()


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    root, written = logging.getLogger(), io.StringIO()
    handlers, level = tuple(root.handlers), root.level
    monkeypatch.setattr("sys.stderr", written)
    telemetry.configure_logging(Settings(), "test")
    yield written
    for each in tuple(root.handlers):
        root.removeHandler(each)
    for each in handlers:
        root.addHandler(each)
    root.setLevel(level)


def only(spans: InMemorySpanExporter) -> ReadableSpan:
    (span,) = spans.get_finished_spans()
    return span


def test_a_call_is_a_span_that_says_what_was_called(spans: InMemorySpanExporter) -> None:
    with metrics.requesting("POST", "iam.amazonaws.com", "aws iam.CreateUser") as request:
        request.status = 200
    span = only(spans)
    assert span.name == "aws iam.CreateUser"
    assert span.attributes == {
        "http.request.method": "POST",
        "server.address": "iam.amazonaws.com",
        "http.response.status_code": 200,
    }


def test_a_failed_call_names_its_kind_and_nothing_that_may_be_secret(spans: InMemorySpanExporter) -> None:
    with (
        pytest.raises(Unavailable),
        metrics.requesting("GET", "core/namespaces/{NAMESPACE}/secrets/{NAME}"),
    ):
        raise Unavailable("the password is hunter2")
    recorded = only(spans).to_json()
    assert "Unavailable" in recorded
    assert "kubernetes GET" in recorded
    assert "hunter2" not in recorded


def test_without_a_collector_nothing_is_made() -> None:
    with tracing.calling("aws iam.CreateUser", {}) as span, tracing.change("watch Account", {}):
        assert not span.is_recording()
        assert tracing.origin() is None
        assert tracing.ids() == {}


def test_without_an_endpoint_there_is_no_interceptor() -> None:
    assert tracing.configure_tracing("", "test", "0") is None


def test_a_change_that_wakes_no_lifecycle_is_no_trace(spans: InMemorySpanExporter) -> None:
    with tracing.change("watch Account", {}):
        pass
    assert spans.get_finished_spans() == ()


async def test_all_lifecycles_that_a_change_wakes_belong_to_its_trace(spans: InMemorySpanExporter) -> None:
    async def wake(key: Key) -> None:
        with tracing.calling(f"wake {key.name}", {}):
            pass

    queue = WakeQueue(wake)
    with tracing.change("watch Account", {"perdure.object": KEY.path}):
        queue.put(KEY)
        queue.put(KEY.model_copy(update={"name": "two"}))
    for key in tuple(queue.outstanding()):
        await queue.send(key)
    change, *woken = spans.get_finished_spans()
    assert change.attributes == {"perdure.object": "Account/ns/one"}
    assert [span.name for span in woken] == ["wake one", "wake two"]
    assert {span.parent.span_id for span in woken if span.parent} == {change.context.span_id}


def test_a_line_about_an_object_names_its_lifecycle(lines: io.StringIO) -> None:
    logging.getLogger("here").warning("%s: %s", KEY, "changed")
    recorded = json.loads(lines.getvalue())
    assert recorded["object"] == "Account/ns/one"
    assert recorded["workflow_id"] == "east/Account/ns/one/42"
    assert "trace_id" not in recorded


async def test_a_line_in_an_activity_names_lifecycle_run_and_trace(
    lines: io.StringIO, spans: InMemorySpanExporter
) -> None:
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(
        environment.info, workflow_id=KEY.workflow_id, workflow_type="Account", workflow_run_id="run-1"
    )

    async def act() -> None:
        with tracing.calling("aws iam.CreateUser", {}):
            logging.getLogger("here").warning("it takes long")

    await environment.run(act)
    recorded = json.loads(lines.getvalue())
    assert (recorded["object"], recorded["run_id"], recorded["attempt"]) == ("Account/ns/one", "run-1", 1)
    assert recorded["workflow_id"] == KEY.workflow_id
    context = only(spans).context
    assert (int(recorded["trace_id"], 16), int(recorded["span_id"], 16)) == (context.trace_id, context.span_id)


@pytest.mark.parametrize(
    ("workflow_id", "kind", "path"),
    [
        ("Account/ns/one/42", "Account", "Account/ns/one"),
        ("EC2Instance/1234/eu-west-1/i-0a", "EC2Instance", "EC2Instance/1234/eu-west-1/i-0a"),
        ("LoadBalancerSweep/-/all", "LoadBalancerSweep", "LoadBalancerSweep/-/all"),
        ("something", "Account", "something"),
    ],
)
def test_an_object_is_named_without_cluster_and_uid(workflow_id: str, kind: str, path: str) -> None:
    assert telemetry.path(workflow_id, kind) == path


@pytest.mark.usefixtures("lines")
def test_headers_of_http_answers_are_not_logged_at_debug() -> None:
    telemetry.configure_logging(Settings(log_level="DEBUG"), "test")
    assert logging.getLogger("perdure").isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("httpcore.http11").isEnabledFor(logging.DEBUG)
