"""Entries of `WATCHED` for the common case: objects that wake their own lifecycles, and objects that they own.

WATCHED = (objects(GREETING), owned(CONFIG_MAP, by=GREETING, label="greetings.example.com/of"))
"""

from __future__ import annotations

import json

from domain.control_annotations import LEVERS
from domain.identity import Kind
from domain.relations import News, Relation, version
from domain.resource import KubeObject
from engine.kube.json import JsonObject, mapping
from engine.kube.reflector import Followed
from starters.watch.projection import View, chosen, generation
from starters.watch.watched_kinds import Watched, read_nothing


def objects(kind: Kind) -> Watched:
    """The watch of a kind with lifecycles. A lifecycle is woken when its object's spec or a retry or pause annotation
    changes, or when another client changes the status.
    """
    return Watched(Followed(kind), read=_read_object)


def owned(kind: Kind, *, by: Kind, label: str) -> Watched:
    """The watch of objects with this label. A change of such an object wakes its owners of kind `by`."""

    def owners(obj: KubeObject) -> list[tuple[str, str]]:
        references = obj.metadata.owner_references
        names = (each.name for each in references if (each.api_version, each.kind) == (by.api_version, by.name))
        return [(obj.metadata.namespace, name) for name in names]

    relations = (Relation(of=kind, to=by, by=owners, news=News(version)),)
    name = f"{by.area} {kind.name}"
    made = kind.model_copy(update={"lifecycle": False})
    return Watched(Followed(made, label_selector=label, called=name), read=read_nothing, relations=relations)


def _read_object(obj: JsonObject) -> View:
    annotations = mapping(obj, "metadata", "annotations")
    status = json.dumps(mapping(obj, "status"), sort_keys=True)
    return View(fingerprint=(generation(obj), chosen(annotations, LEVERS), status))
