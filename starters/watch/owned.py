"""Entries for the common case: a kind that wakes itself, and objects that are made for it.

WATCHED = (objects(GREETING), owned(CONFIG_MAP, by=GREETING, label="greetings.example.com/of"))
"""

from __future__ import annotations

import json

from domain.identity import Key, Kind
from domain.levers import LEVERS
from engine.kube.json import JsonObject, mapping, sequence, text
from starters.watch.index import Index
from starters.watch.kinds import Watched
from starters.watch.projection import Projection, View, chosen, generation


def objects(kind: Kind) -> Watched:
    """A kind whose objects are woken by their own spec and levers, and by others' changes of their status."""
    return Watched(kind=kind, read=_read_object, dependents=_no_dependents)


def owned(kind: Kind, *, by: Kind, label: str) -> Watched:
    """Objects with this label: any change of one wakes the objects of the kind `by` among its owners."""

    def owners(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
        sides = [side for side in (before, after) if side is not None]
        return {
            key for side in sides for key in index.keys(by.name, side.key.namespace, side.fact(by.name).splitlines())
        }

    def read(obj: JsonObject) -> View:
        names = [text(each, "name") for each in sequence(obj, "metadata", "ownerReferences") if _is_of(by, each)]
        version = text(obj, "metadata", "resourceVersion")
        return View(fingerprint=(version,), settled=True, facts={by.name: "\n".join(names)})

    name = f"{by.area} {kind.name}"
    return Watched(kind=kind, name=name, label_selector=label, read=read, dependents=owners, has_workflow=False)


def _read_object(obj: JsonObject) -> View:
    annotations = mapping(obj, "metadata", "annotations")
    status = json.dumps(mapping(obj, "status"), sort_keys=True)
    return View(fingerprint=(generation(obj), chosen(annotations, LEVERS), status))


def _no_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    return set()


def _is_of(kind: Kind, owner: object) -> bool:
    return (text(owner, "apiVersion"), text(owner, "kind")) == (kind.api_version, kind.name)
