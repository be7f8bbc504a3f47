"""Records of what people do with commands: annotations on the custom resource, and Kubernetes Events."""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import ApiError
from engine.kube import EVENT, JsonObject
from engine.kube.events import EventContent, Subject, event
from starters.cli.object_reference import Target
from starters.cli.output import utc_now, warn
from starters.cli.session import FIELD_MANAGER, ClusterSession, person


async def annotate(session: ClusterSession, target: Target, annotations: Mapping[str, str | None]) -> None:
    patch = {"metadata": {"annotations": dict(annotations)}}
    kube, kind = session.cluster_of(target.kind), target.kind
    await kube.patch(kind, target.namespace, target.name, patch, field_manager=FIELD_MANAGER)


async def record(session: ClusterSession, target: Target, obj: JsonObject, reason: str, message: str) -> None:
    kind = "Warning" if reason == "Abandoned" else "Normal"
    who = f"by {person()}: {message}" if message else f"by {person()}"
    document = event(Subject.of(target.kind, obj), EventContent(kind, reason, who, FIELD_MANAGER), utc_now())
    try:
        await session.cluster_of(target.kind).create(EVENT, document, target.namespace)
    except ApiError as error:
        warn(f"warning: no Kubernetes Event could be written: {error.message}")
