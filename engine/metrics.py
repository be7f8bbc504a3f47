"""Hooks by which areas count requests, activities and writes.

An area that exports these numbers under the replaced system's names registers a `Listener`, whose exceptions are only
logged. `Histogram` writes bucket bounds as Go does (`le="60"`), because replaced systems' dashboards select by these
bounds. Python's `_created` series are left out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote

import prometheus_client
from prometheus_client import Metric
from prometheus_client.samples import Sample
from temporalio import activity

from domain.writes import Patch
from engine import tracing

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Request:
    """One HTTP exchange, reported at its end.

    `kind` is the kind whose lifecycle sent the request, empty outside of activities. `resource` is an API path without
    names, or the host of a cloud. `status` is 0 if there was no answer, or if the client library reports the status
    only in `error`.
    """

    kind: str
    method: str
    resource: str
    status: int = 0
    seconds: float = 0.0
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Step:
    kind: str
    activity: str
    seconds: float
    error: BaseException | None


@dataclass(frozen=True, slots=True)
class Write:
    asked: Patch
    answer: Mapping[str, object]


class Listener:
    def on_request(self, request: Request) -> None:
        pass

    def on_step(self, step: Step) -> None:
        pass

    def on_write(self, write: Write) -> None:
        pass


_listeners: dict[int, Listener] = {}


def listen(listener: Listener) -> None:
    _listeners[id(listener)] = listener


def forget(listener: Listener) -> None:
    _listeners.pop(id(listener), None)


@contextmanager
def requesting(method: str, resource: str, called: str = "") -> Iterator[Request]:
    """Time and trace the block's exchange; the block sets the answer's status on the yielded request.

    `called` is the span's name, such as `aws iam.CreateUser`; if empty, `kubernetes METHOD`.
    """
    request = Request(subject(), method, resource)
    began = time.perf_counter()
    attributes = {"http.request.method": method, "url.template" if not called else "server.address": resource}
    with tracing.calling(called or f"kubernetes {method}", attributes) as span:
        try:
            yield request
        except BaseException as error:
            request.error = error
            raise
        finally:
            request.seconds = time.perf_counter() - began
            tracing.answered(span, request.status)
            _notify(lambda listener: listener.on_request(request))


def stepped(step: Step) -> None:
    _notify(lambda listener: listener.on_step(step))


def wrote(patch: Patch, answer: Mapping[str, object]) -> None:
    write = Write(patch, answer)
    _notify(lambda listener: listener.on_write(write))


def subject() -> str:
    return activity.info().workflow_type or "" if activity.in_activity() else ""


def nameless(path: str) -> str:
    """A Kubernetes API path as replaced operators label it: `group/version/namespaces/{NAMESPACE}/kind/{NAME}`.

    Core resources have the group `core`, and a subresource stays. Any other path becomes `{OTHER}`.
    """
    head, *tokens = [unquote(token) for token in path.strip("/").split("/")]
    if head == "api":
        tokens = ["core", *tokens]
    elif head != "apis":
        return "{OTHER}"
    if tokens[2:3] == ["namespaces"] and len(tokens) > 4:
        tokens[3] = "{NAMESPACE}"
        tokens[5:6] = ["{NAME}"] if len(tokens) > 5 else []
    elif len(tokens) > 3:
        tokens[3] = "{NAME}"
    return "/".join(tokens)


class Histogram(prometheus_client.Histogram):
    def collect(self) -> Iterable[Metric]:
        for metric in super().collect():
            metric.samples = [_as_go(sample) for sample in metric.samples]
            yield metric


def _as_go(sample: Sample) -> Sample:
    bound = sample.labels.get("le", "")
    if not bound.endswith(".0"):
        return sample
    return sample._replace(labels={**sample.labels, "le": bound.removesuffix(".0")})


def _notify(about: Callable[[Listener], None]) -> None:
    for listener in tuple(_listeners.values()):
        try:
            about(listener)
        except Exception:  # a failed count must not fail the counted operation
            log.exception("%s cannot count", type(listener).__name__)
