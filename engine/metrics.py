"""Where the product tells what it does, for areas that count it, and what is counted whatever the area.

Three kinds of places tell: every HTTP exchange, with Kubernetes (`engine/kube/api.py`) and with the clouds (the client
of each in `activities/`); the edge of every activity (`workers/boundary.py`); and every write of a lifecycle's own
object (`activities/kube/writes.py`). They know no area. An area that shows these numbers under the names of the system
it replaces is a `Listener`; it recognises its own by the kind whose lifecycle asked.

Telling costs a clock reading and a call, and nothing while nobody listens. What a listener raises is logged and goes no
further: a number is never worth an effect.

Go's Prometheus client writes bucket bounds as `le="60"`, Python's as `le="60.0"`; dashboards and recording rules of
replaced systems select by the former, so `Histogram` here writes them Go's way. The `_created` series that Python's
client adds are left out, as Go has none.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote

import prometheus_client
from prometheus_client import Counter, Metric
from prometheus_client.samples import Sample
from temporalio import activity

from domain.writes import Patch
from engine import tracing

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]

BUGS = Counter("perdure_bugs", "Attempts of activities that failed by a bug of Perdure.", ["kind", "activity"])

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Request:
    """One HTTP exchange, told when it has ended.

    `kind` is the kind whose lifecycle asked, empty outside of activities. `resource` is an API path without names, or
    the host of a cloud. `status` is 0 where no answer came or the client library keeps it in `error`.
    """

    kind: str
    method: str
    resource: str
    status: int = 0
    seconds: float = 0.0
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One attempt of an activity for a lifecycle of `kind`; `error` as the activity raised it."""

    kind: str
    activity: str
    seconds: float
    error: BaseException | None


@dataclass(frozen=True, slots=True)
class Write:
    """One successful change of a lifecycle's own object: what was asked, and the object as it is now."""

    asked: Patch
    answer: Mapping[str, object]


class Listener:
    """Who wants to know; every method may be left as it is."""

    def on_request(self, request: Request) -> None:
        """An HTTP exchange has ended."""

    def on_step(self, step: Step) -> None:
        """An attempt of an activity has ended."""

    def on_write(self, write: Write) -> None:
        """A lifecycle has changed its own object."""


_listeners: dict[int, Listener] = {}


def listen(listener: Listener) -> None:
    """Tell this listener from now on; saying so twice changes nothing."""
    _listeners[id(listener)] = listener


def forget(listener: Listener) -> None:
    """Tell it no more."""
    _listeners.pop(id(listener), None)


@contextmanager
def requesting(method: str, resource: str, called: str = "") -> Iterator[Request]:
    """Time an exchange, and make it a span of its trace; the caller notes the status of its answer.

    Args:
        method: of HTTP.
        resource: an API path without names, or the host of a cloud.
        called: what is called, as the span says it: `aws iam.CreateUser`; without it `kubernetes GET`.
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
            _tell(lambda listener: listener.on_request(request))


def stepped(step: Step) -> None:
    """An attempt of an activity has ended."""
    _tell(lambda listener: listener.on_step(step))


def wrote(asked: Patch, answer: Mapping[str, object]) -> None:
    """A lifecycle has changed its own object."""
    write = Write(asked, answer)
    _tell(lambda listener: listener.on_write(write))


def subject() -> str:
    """The kind whose lifecycle the current activity serves, empty outside of activities."""
    return activity.info().workflow_type or "" if activity.in_activity() else ""


def nameless(path: str) -> str:
    """A Kubernetes API path as replaced operators label it: `group/version/namespaces/{NAMESPACE}/kind/{NAME}`.

    Core resources have the group `core`; a subresource stays. Anything that is no resource is `{OTHER}`.
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
    """A histogram whose bucket bounds are written as Go's client writes them: whole numbers without a fraction."""

    def collect(self) -> Iterable[Metric]:
        """The metric's series."""
        for metric in super().collect():
            metric.samples = [_as_go(sample) for sample in metric.samples]
            yield metric


def _as_go(sample: Sample) -> Sample:
    bound = sample.labels.get("le", "")
    if not bound.endswith(".0"):
        return sample
    return sample._replace(labels={**sample.labels, "le": bound.removesuffix(".0")})


def _tell(about: Callable[[Listener], None]) -> None:
    for listener in tuple(_listeners.values()):
        try:
            about(listener)
        except Exception:  # a number that cannot be counted must not undo what it counts
            log.exception("%s cannot count", type(listener).__name__)
