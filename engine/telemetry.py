"""What a process tells the people who run it: logs, traces, and its version.

Logs are lines of JSON on standard error (text on a terminal). A line written inside a workflow or an activity carries
`workflow_id`, `run_id` and the rest of what Temporal's adapters know as fields of their own, so that a log search by
workflow id gives the object's story. Traces go to an OTLP/HTTP collector when one is configured; Temporal's interceptor
carries the context from the watcher's wake through the workflow to the cloud call. Metrics: `engine/health.py` serves
Perdure's own, the Temporal runtime (`engine/temporal.py`) its.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pythonjsonlogger.json import JsonFormatter
from temporalio import activity, workflow

from engine.settings import Settings

# What Temporal's adapters put on a record, and the prefix-free fields we want of it.
_TEMPORAL_EXTRAS = ("temporal_workflow", "temporal_activity")
# Libraries that log each request at INFO.
_CHATTY = ("aiohttp.access", "botocore", "boto3", "urllib3", "httpx", "kubernetes", "asyncio")


@cache
def version() -> str:
    """Perdure's version, `0` when it runs from a source tree that is not installed."""
    try:
        return installed_version("perdure")
    except PackageNotFoundError:
        return "0"


class _TemporalFields(logging.Filter):
    """Lifts what Temporal's adapters know to fields of the record."""

    def filter(self, record: logging.LogRecord) -> bool:
        for name in _TEMPORAL_EXTRAS:
            details = record.__dict__.pop(name, None)
            if isinstance(details, Mapping):
                for field, value in details.items():
                    record.__dict__.setdefault(str(field), value)
        return True


def configure_logging(settings: Settings, process: str) -> None:
    """Send every log line of this process to standard error, in the configured format.

    Args:
        settings: `log_level` and `log_format`.
        process: `worker`, `watch`, ...; a field of each JSON line.
    """
    handler = logging.StreamHandler(sys.stderr)
    if logs_json(settings):
        handler.addFilter(_TemporalFields())
        handler.setFormatter(
            JsonFormatter(
                "{levelname}{name}{message}",
                style="{",
                timestamp=True,
                rename_fields={"levelname": "level", "name": "logger"},
                static_fields={"process": process},
            )
        )
        # The details are fields; on the message they would be there twice.
        workflow.logger.workflow_info_on_message = False
        activity.logger.activity_info_on_message = False
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(settings.log_level)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def logs_json(settings: Settings) -> bool:
    """Whether lines are JSON: always where configured so, otherwise wherever no person watches a terminal."""
    return settings.log_format == "json" or (settings.log_format == "auto" and not sys.stderr.isatty())


@cache
def configure_tracing(endpoint: str, process: str) -> trace.TracerProvider | None:
    """Export traces to the collector at `endpoint`, None and no cost without one. Once per process.

    Args:
        endpoint: base URL of an OTLP/HTTP collector; the exporter itself adds the path of traces.
        process: `worker`, `watch`, ...; part of the service's name.
    """
    if not endpoint:
        return None
    provider = TracerProvider(
        resource=Resource.create({"service.name": f"perdure-{process}", "service.version": version()})
    )
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider
