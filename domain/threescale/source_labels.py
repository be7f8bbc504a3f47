"""The labels by which an OpenAPI and the Secret with its document find each other, as the replaced operator sets them.

The operator watches only Secrets with its label, and finds the OpenAPI by the Secret's uid in the OpenAPI's label.
Perdure watches every Secret that is named and needs neither; people and tools select by them, and so does the operator
after a return to it. A Secret that the worker may not label stays as it is.
"""

from __future__ import annotations

from domain.model import Model
from domain.resource import ObjectMeta
from domain.writes import JsonPatch

WATCHED_BY = {"apimanager.apps.3scale.net/watched-by": "openapi"}
SOURCE_UID = "apimanager.apps.3scale.net/oas-source-secret-uid"


class SourceSecret(Model):
    """The Secret that an OpenAPI names, as far as it is there: its uid, and whether it bears the label."""

    uid: str
    labelled: bool = False


def source_noted(meta: ObjectMeta, source: SourceSecret | None) -> JsonPatch:
    """The patch by which the OpenAPI bears its Secret's uid, or none if it has no Secret; empty if it does."""
    uid = source.uid if source else None
    return {} if meta.labels.get(SOURCE_UID) == uid else {"metadata": {"labels": {SOURCE_UID: uid}}}
