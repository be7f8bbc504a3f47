"""Which changes of a 3scale object wake its own lifecycle. `domain/threescale/relations.py` has the changes that wake
other lifecycles.

Changes of the status count too, because people may clear an id in the status.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from domain.reading import Malformed, read
from domain.threescale import CUSTOM_KINDS, OPEN_API
from domain.threescale.conditions import IN_SYNC, ORPHAN, WAITING
from domain.threescale.drift_schedule import DRIFT
from domain.threescale.relations import MODELS, RELATIONS, is_settled, phase_of
from engine.kube import JsonObject
from engine.kube.json import mapping, sequence, text
from engine.kube.reflector import Followed
from starters.watch.projection import View, generation, others_finalizers
from starters.watch.watched_kinds import Watched

AREA = "threescale"

_MODELS = {model.kind_of.name: model for model in MODELS}
_WAITS = frozenset({ORPHAN, WAITING})


def read_object(kind: str, obj: JsonObject) -> View:
    resource = read(_MODELS[kind], obj)
    if isinstance(resource, Malformed):
        return View((resource.problem, generation(obj), _annotations(obj)))
    meta, status = resource.metadata, mapping(obj, "status")
    made_by_another = any(each.kind == OPEN_API.name for each in meta.owner_references)
    return View(
        fingerprint=(
            generation(obj),
            others_finalizers(obj, resource.kind_of.finalizer),
            _annotations(obj),
            _standing(status),
            tuple(sorted(each.uid for each in meta.owner_references)),
        ),
        # Written by other lifecycles: generated specs by an OpenAPI's lifecycle, an annotation by the drift sweep.
        handed=(generation(obj) if made_by_another else None, meta.annotations.get(DRIFT, "")),
        settled=is_settled(resource),
        facts={"phase": phase_of(resource).value, "waits since": _waits_since(status)},
        model=resource,
    )


def _standing(status: Mapping[str, object]) -> tuple[object, ...]:
    fields = sorted((name, repr(value)) for name, value in status.items() if name != "conditions")
    conditions = sorted(
        (text(each, "type"), text(each, "status"), text(each, "message"))
        for each in sequence(status, "conditions")
        if text(each, "type") != IN_SYNC
    )
    return tuple(fields), tuple(conditions)


def _waits_since(status: Mapping[str, object]) -> str:
    waits = (c for c in sequence(status, "conditions") if text(c, "type") in _WAITS and text(c, "status") == "True")
    return min((text(each, "lastTransitionTime") for each in waits), default="")


def _annotations(obj: JsonObject) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in mapping(obj, "metadata", "annotations").items()))


WATCHED = tuple(
    Watched(Followed(kind), read=partial(read_object, kind.name), relations=RELATIONS) for kind in CUSTOM_KINDS
)
