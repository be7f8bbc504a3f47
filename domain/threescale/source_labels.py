"""Labels that link an OpenAPI and its document's Secret, as the replaced operator sets them.

People, tools, and the operator after a rollback use the labels. A Secret that the worker may not label stays
unlabelled.
"""

from __future__ import annotations

from domain.model import Model
from domain.resource import ObjectMeta
from domain.writes import JsonPatch

WATCHED_BY = {"apimanager.apps.3scale.net/watched-by": "openapi"}
SOURCE_UID = "apimanager.apps.3scale.net/oas-source-secret-uid"


class SourceSecret(Model):
    uid: str
    labelled: bool = False


def source_noted(meta: ObjectMeta, source: SourceSecret | None) -> JsonPatch:
    uid = source.uid if source else None
    return {} if meta.labels.get(SOURCE_UID) == uid else {"metadata": {"labels": {SOURCE_UID: uid}}}
