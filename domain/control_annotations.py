"""A person's controls, as annotations on the custom resource, so that they outlive every workflow.

`perdure.dev/retry` is honoured once per value: the last honoured value is stored in `perdure.dev/retried`.
`perdure.dev/paused: "true"` pauses the object. `perdure.dev/abandoned` says who released the finalizer and why.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.resource import ObjectMeta

RETRY = "perdure.dev/retry"
RETRIED = "perdure.dev/retried"
PAUSED = "perdure.dev/paused"
ABANDONED = "perdure.dev/abandoned"

LEVERS = (RETRY, PAUSED)


def retry_wanted(meta: ObjectMeta) -> str:
    """The token of a retry that is not honoured yet; empty if there is none."""
    token = meta.annotations.get(RETRY, "")
    return token if token and token != meta.annotations.get(RETRIED) else ""


def is_paused(annotations: Mapping[str, object]) -> bool:
    return annotations.get(PAUSED) == "true"


def paused(meta: ObjectMeta) -> bool:
    return is_paused(meta.annotations)


def held(annotations: Mapping[str, object], *, observing: bool) -> str:
    """Why the object may not be changed; empty if it may."""
    if observing:
        return "PERDURE_MODE=observe: nothing is written"
    return f"paused by its annotation {PAUSED}" if is_paused(annotations) else ""
