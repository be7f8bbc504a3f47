"""How objects of the area `claims` become projections: which parts count as a change, and which facts they have.

Any difference in a status counts, because people, older clients and restore tools write it; Perdure's own writes are
recognised by their field manager (`own_writes.py`). The facts are:

- `handle` of a claim: its handle's name;
- `unbound` of a claim: the binder has to find a handle for it;
- `detached` of a claim, `ignored` and `paused` of a claim, handle or pool: flags;
- `stalled` of a claim, handle or pool: its status shows a fault;
- `claim`, `pool` of a handle: namespace and name of the claim and the pool in its spec;
- `end` of a claim or handle: the expiry; of a claim, the earlier of the ends in spec and status;
- `free` of a handle: not bound to a claim;
- `healthy`, `ready` of a claim or handle: as in the status, empty while unknown;
- `minimum` of a pool: the wanted number of free handles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from domain import control_annotations
from domain.claims.domain_names import DomainNames
from domain.claims.json_objects import JsonObject as ClaimsObject
from domain.claims.references import recorded_reference
from domain.claims.relations import UNREAD_ANNOTATIONS
from domain.claims.resources.shared import WaitingFor
from domain.claims.stalled_condition import STALLED
from domain.resource import parse_timestamp, timestamp
from engine.kube.json import JsonObject, at, flag, mapping, sequence, text
from engine.settings import Settings
from starters.watch.projection import View, generation, others_finalizers

# State of Poolboy's framework, which no decision reads.
_UNREAD_STATUS = frozenset({"diffBase", "kopf"})
_TRUE = "true"


class Readings:
    def __init__(self, settings: Settings) -> None:
        self._names = DomainNames(domain=settings.claims_domain)
        self._namespace = settings.claims_namespace
        # The binder writes the initialisation annotation once; no other pass reads it.
        self._unread_annotations = UNREAD_ANNOTATIONS | {self._names.init_timestamp_annotation}

    def claim(self, obj: JsonObject) -> View:
        status = mapping(obj, "status")
        link = mapping(status, "resourceHandle")
        detached, ignored = flag(link, "detached"), self._ignored(obj)
        served = bool(
            text(link, "name")
            and at(obj, "metadata", "annotations", self._names.init_timestamp_annotation)
            and mapping(status, "lifespan")
        )
        return View(
            fingerprint=self._content(obj),
            settled=self._left_in_peace(obj) if ignored else (served or detached) and not _retry_wanted(obj),
            facts=self._facts(
                obj,
                handle=text(link, "name"),
                detached=detached,
                end=_earliest(text(status, "lifespan", "end"), text(obj, "spec", "lifespan", "end")),
                unbound=not (text(link, "name") or detached or ignored or _deleting(obj)),
            ),
        )

    def handle(self, obj: JsonObject) -> View:
        spec, ignored = mapping(obj, "spec"), self._ignored(obj)
        free = not (mapping(spec, "resourceClaim") or ignored or _deleting(obj))
        return View(
            fingerprint=self._content(obj),
            handed=(_paused(obj),),  # the handle's workflow writes the pause, but the claim's workflow does the work
            settled=self._left_in_peace(obj) if ignored else _complete(obj, free=free) and not _retry_wanted(obj),
            facts=self._facts(
                obj,
                pool=_path(mapping(spec, "resourcePool")),
                claim=_path(mapping(spec, "resourceClaim")),
                end=_earliest(text(spec, "lifespan", "end")),
                free=free,
            ),
        )

    def pool(self, obj: JsonObject) -> View:
        """`settled` is always False, because a pool's status does not show whether its counts are stale."""
        facts = self._facts(obj, minimum=_number(obj, "spec", "minAvailable"))
        return View(fingerprint=self._content(obj), facts=facts)

    def scaling(self, obj: JsonObject) -> View:
        return View(fingerprint=self._content(obj), settled=text(obj, "status", "state") == "done")

    def _facts(self, obj: JsonObject, **facts: str | bool) -> dict[str, str]:
        """The given facts and those that all kinds have. A fact that is empty or false is left out."""
        found = {
            "ignored": self._ignored(obj),
            "paused": _paused(obj),
            "stalled": _stalled(obj),
            "healthy": _truth(obj, "healthy"),
            "ready": _truth(obj, "ready"),
            **facts,
        }
        return {name: _TRUE if fact is True else str(fact) for name, fact in found.items() if fact}

    def _content(self, obj: JsonObject) -> tuple[object, ...]:
        """Everything except what Kubernetes, kubectl and former frameworks store for themselves. The generation
        represents the spec.
        """
        metadata, status = mapping(obj, "metadata"), mapping(obj, "status")
        return (
            generation(obj),
            others_finalizers(obj, self._names.finalizer),
            self._names.finalizer in sequence(metadata, "finalizers"),
            _sorted(mapping(metadata, "labels")),
            _sorted(mapping(metadata, "annotations"), self._unread_annotations),
            hash(json.dumps(_sorted(status, _UNREAD_STATUS), sort_keys=True, default=str)),
        )

    def _left_in_peace(self, obj: JsonObject) -> bool:
        return not set(self._names.our_finalizers) & {str(name) for name in sequence(obj, "metadata", "finalizers")}

    def _ignored(self, obj: JsonObject) -> bool:
        return self._names.ignore_label in mapping(obj, "metadata", "labels")


def _complete(handle: JsonObject, *, free: bool) -> bool:
    entries = sequence(handle, "status", "resources")
    wanted = sequence(handle, "spec", "resources")

    def done(index: int, entry: object) -> bool:
        waits = text(entry, "waitingFor")
        return (free and waits == WaitingFor.CLAIM) or (not waits and bool(_recorded(handle, index)))

    return bool(wanted) and len(entries) == len(wanted) and all(done(*each) for each in enumerate(entries))


def _recorded(handle: JsonObject, index: int) -> Mapping[str, object]:
    return recorded_reference(cast("ClaimsObject", handle), index)


def _sorted(values: Mapping[str, object], unread: frozenset[str] = frozenset()) -> tuple[tuple[str, object], ...]:
    return tuple((name, values[name]) for name in sorted(values) if name not in unread)


def _earliest(*moments: str) -> str:
    read = filter(None, map(parse_timestamp, filter(None, moments)))
    return min((timestamp(moment) for moment in read), default="")


def _paused(obj: JsonObject) -> bool:
    return control_annotations.is_paused(mapping(obj, "metadata", "annotations"))


def _stalled(obj: JsonObject) -> bool:
    shown = sequence(obj, "status", "conditions")
    return any(text(each, "type") == STALLED and text(each, "status") == "True" for each in shown)


def _deleting(obj: JsonObject) -> bool:
    return bool(text(obj, "metadata", "deletionTimestamp"))


def _retry_wanted(obj: JsonObject) -> bool:
    annotations = mapping(obj, "metadata", "annotations")
    token = text(annotations, control_annotations.RETRY)
    return bool(token) and token != text(annotations, control_annotations.RETRIED)


def _path(reference: Mapping[str, object]) -> str:
    return f"{text(reference, 'namespace')}/{text(reference, 'name')}" if reference else ""


def _number(obj: Mapping[str, object], *path: str) -> str:
    value = at(obj, *path)
    return str(value) if isinstance(value, int) else ""


def _truth(obj: JsonObject, field: str) -> str:
    value = at(obj, "status", field)
    return str(value).lower() if isinstance(value, bool) else ""
