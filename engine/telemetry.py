"""Logs of a process, and its version.

Logs are lines of JSON on standard error (text on a terminal). A JSON line about a lifecycle has fields for
object, workflow, run, activity, attempt and trace, from the context or from a `Key` among the line's arguments.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

from pythonjsonlogger.json import JsonFormatter
from temporalio import activity, workflow

from domain.identity import Key, all_kinds
from engine.settings import Settings
from engine.tracing import ids

# The attributes of a record in which Temporal's adapters keep their details.
_TEMPORAL_EXTRAS = ("temporal_workflow", "temporal_activity")
# Libraries that log each request at INFO, or response headers at DEBUG: a redirect's header may contain a secret URL.
_CHATTY = ("aiohttp.access", "botocore", "boto3", "urllib3", "httpx", "httpcore", "kubernetes", "asyncio")


@cache
def version() -> str:
    """Perdure's version; `0` for a source tree that is not installed."""
    try:
        return installed_version("perdure")
    except PackageNotFoundError:
        return "0"


class _TemporalFields(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        for name in _TEMPORAL_EXTRAS:
            details = record.__dict__.pop(name, None)
            if isinstance(details, Mapping):
                for field, value in details.items():
                    record.__dict__.setdefault(str(field), value)
        for field, value in _subject(record).items():
            record.__dict__.setdefault(field, value)
        return True


def _subject(record: logging.LogRecord) -> Mapping[str, object]:
    if activity.in_activity():
        info = activity.info()
        fields: dict[str, object] = {"activity": info.activity_type, "attempt": info.attempt}
        if info.workflow_id:
            fields |= {"object": path(info.workflow_id, info.workflow_type or "")}
            fields |= {"workflow_id": info.workflow_id, "run_id": info.workflow_run_id}
    elif workflow.in_workflow():
        running = workflow.info()
        fields = {"workflow_id": running.workflow_id, "run_id": running.run_id}
        fields["object"] = path(running.workflow_id, running.workflow_type)
    else:
        named = [each for each in record.args or () if isinstance(each, Key)] if isinstance(record.args, tuple) else []
        fields = {"object": named[0].path, "workflow_id": named[0].workflow_id} if named else {}
    return {**fields, **ids()}


def path(workflow_id: str, kind: str) -> str:
    """`Kind/namespace/name` of a workflow id, without the cluster before it and the uid after it."""
    before, found, rest = workflow_id.rpartition(f"{kind}/")
    if not found or (before and not before.endswith("/")):
        return workflow_id
    named = all_kinds().get(kind)
    if named is not None and named.plural:
        rest = rest.rpartition("/")[0]
    return f"{kind}/{rest}"


def configure_logging(settings: Settings, process: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    if logs_json():
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
        # The details are fields of the line, so the message need not repeat them.
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


def logs_json() -> bool:
    return not sys.stderr.isatty()
