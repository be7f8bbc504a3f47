"""Traces: from an object's change, through its wake and its workflow, to each call to a cloud.

    watch Account ns/name ─► SignalWithStartWorkflow ─► RunWorkflow, HandleSignal
                                       └─► StartActivity ─► RunActivity ─► aws iam.CreateUser, kubernetes PATCH ...

A workflow lives for months, and Temporal's interceptor would keep it in the trace of its first wake. Here a workflow's
work belongs to the trace of its newest message, for an hour after this message. Work that a deadline starts later gets
a trace of its own, which begins at the activity. Both rules depend only on the history, so replays give the same
traces.

A span names the call without its arguments, and an error by its type alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from temporalio import workflow
from temporalio.contrib.opentelemetry import TracingInterceptor, TracingWorkflowInboundInterceptor
from temporalio.worker import HandleSignalInput, HandleUpdateInput, WorkflowInboundInterceptor
from temporalio.worker import WorkflowInterceptorClassInput as ClassInput

# How long work belongs to a message's trace.
FOLLOWS = timedelta(hours=1)
FLUSH_MILLISECONDS = 2000

_tracers: list[Tracer] = []  # the process's tracer; empty without tracing


@cache
def configure_tracing(endpoint: str, process: str, version: str) -> TracingInterceptor | None:
    """Set up tracing, once per process. Without an endpoint this returns None and costs nothing.

    Args:
        endpoint: base URL of an OTLP/HTTP collector.
        process: part of the service's name.
        version: Perdure's version.
    """
    if not endpoint:
        return None
    provider = TracerProvider(
        resource=Resource.create({"service.name": f"perdure-{process}", "service.version": version})
    )
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")))
    trace.set_tracer_provider(provider)
    return begin_tracing(provider.get_tracer("perdure"))


def begin_tracing(tracer: Tracer) -> TracingInterceptor:
    _tracers[:] = [tracer]
    return FollowingMessages(tracer)


def end_tracing() -> None:
    """Send the remaining spans, because the process may end right afterwards."""
    _tracers.clear()
    flush = getattr(trace.get_tracer_provider(), "force_flush", None)
    if flush is not None:
        flush(FLUSH_MILLISECONDS)


@contextmanager
def calling(name: str, attributes: Mapping[str, str]) -> Iterator[Span]:
    if not _tracers:
        yield trace.INVALID_SPAN
        return
    with _tracers[0].start_as_current_span(
        name, kind=SpanKind.CLIENT, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            span.set_attribute("error.type", type(error).__name__)
            raise


def answered(span: Span, status: int) -> None:
    if status and span.is_recording():
        span.set_attribute("http.response.status_code", status)
        if status >= 400:
            span.set_status(Status(StatusCode.ERROR, str(status)))


def ids() -> Mapping[str, str]:
    if not _tracers:
        return {}
    found = trace.get_current_span().get_span_context()
    if not found.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(found.trace_id), "span_id": trace.format_span_id(found.span_id)}


# Where a trace begins: a change that wakes a lifecycle.


@dataclass
class _Change:
    """A change being traced. The first wake creates the change's span; `context` is the context of this span."""

    name: str
    attributes: Mapping[str, str]
    context: Context | None = None


_change: ContextVar[_Change | None] = ContextVar("change", default=None)


@contextmanager
def change(name: str, attributes: Mapping[str, str]) -> Iterator[None]:
    """Trace the wakes of a change. Without a wake there is no trace."""
    if not _tracers:
        yield
        return
    token = _change.set(_Change(name, attributes))
    try:
        yield
    finally:
        _change.reset(token)


def origin() -> Context | None:
    if not _tracers:
        return None
    found = _change.get()
    if found is None:
        return contexts.get_current() if trace.get_current_span().get_span_context().is_valid else None
    if found.context is None:
        moment = time.time_ns()
        span = _tracers[0].start_span(
            found.name, Context(), kind=SpanKind.CONSUMER, attributes=found.attributes, start_time=moment
        )
        span.end(moment)
        found.context = trace.set_span_in_context(span, Context())
    return found.context


@contextmanager
def continued(context: Context | None) -> Iterator[None]:
    if context is None:
        yield
        return
    token = contexts.attach(context)
    try:
        yield
    finally:
        contexts.detach(token)


# Within workflows.


class FollowingMessages(TracingInterceptor):
    def workflow_interceptor_class(self, input: ClassInput) -> type[TracingWorkflowInboundInterceptor]:
        super().workflow_interceptor_class(input)
        return _Lifecycle


class _Lifecycle(TracingWorkflowInboundInterceptor):
    def __init__(self, next: WorkflowInboundInterceptor) -> None:
        super().__init__(next)
        self._newest: Any = None
        self._received_at: datetime | None = None

    async def handle_signal(self, input: HandleSignalInput) -> None:
        self._hear(input.headers)
        await super().handle_signal(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        self._hear(input.headers)
        return await super().handle_update_handler(input)

    def _hear(self, headers: Mapping[str, Any]) -> None:
        header = headers.get(self.header_key)
        self._newest = self.payload_converter.from_payloads([header])[0] if header else None
        self._received_at = workflow.now()

    def _completed_span(self, span_name: str, **how: Any) -> None:
        if not span_name.startswith("StartActivity"):
            super()._completed_span(span_name, **how)
            return
        received_at = self._received_at
        newest = self._newest if received_at is not None and workflow.now() - received_at < FOLLOWS else None
        context = self.text_map_propagator.extract(newest) if newest else Context()
        with continued(self._set_on_context(context)):
            super()._completed_span(span_name, **how)
