"""The end of an object of the area, as all its lifecycles have it: our finalizer goes last, the others stay theirs."""

from __future__ import annotations

from domain.accounts.constants import FINALIZER
from domain.resource import CustomResource, ObjectMeta
from domain.writes import DropFinalizer


def given_up(meta: ObjectMeta, done: str = "released") -> tuple[str, str] | None:
    """Why an object that is let go of already is still there, and what it waits for; None while it is ours."""
    if FINALIZER in meta.finalizers:
        return None
    if others := others_of(meta):
        return f"{done}; waits for other finalizers: {others}", "other finalizers"
    return f"{done}; Kubernetes removes it", "its removal"


def others_of(meta: ObjectMeta) -> str:
    """The finalizers of others."""
    return ", ".join(meta.finalizers_without(FINALIZER))


def dropped(resource: CustomResource) -> DropFinalizer:
    """The write that lets the object go, void when somebody else has written meanwhile."""
    return DropFinalizer.of(resource.key, resource.metadata, FINALIZER, "drop the finalizer")
