"""What the watcher keeps of an object: only the fields on which wakes depend.

An event that leaves the *fingerprint* unchanged wakes no lifecycle. The *facts* are named values that delegation,
delays and metrics use.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from domain.control_annotations import LEVERS
from domain.identity import Key
from domain.relations import Relation
from domain.resource import KubeModel
from engine.kube.api import FIELD_MANAGER
from engine.kube.json import JsonObject, at, key_of, mapping, sequence, text
from engine.kube.reflector import Name
from starters.watch.own_writes import written_by_others, written_by_ourselves, written_by_us

logger = logging.getLogger(__name__)


class Side(Enum):
    REFERRER = "refers"
    REFERENT = "is referred to"


# An object's position in a relation.
Place = tuple[Relation, Side]


class Shown(NamedTuple):
    """An object at one end of a relation: the names by which the other end finds it, and hashes of the values that the
    other end depends on.

    `as_made`: whether the object has the content with which the lifecycle at the other end creates it. `counts`:
    whether the object matters to that lifecycle.
    """

    names: tuple[Hashable, ...]
    hashes: tuple[int, ...]
    as_made: bool = False
    trait: Hashable = ()
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Projection:
    key: Key
    resource_version: str
    fingerprint: int
    handed: int  # a hash of the values that other objects' workflows write
    settled: bool
    ours: bool  # the newest writer was certainly Perdure
    deleting: bool
    facts: Mapping[str, str] = field(default_factory=dict)
    others: int = 0  # a hash of other writers' entries in managedFields
    own: tuple[tuple[str, str, int], ...] = ()  # Perdure's managedFields: operation with subresource, time and size
    shown: Mapping[Place, Shown] = field(default_factory=dict)
    levers: int = 0  # a hash of the retry and pause annotations

    @property
    def name(self) -> Name:
        return self.key.namespace, self.key.name

    def fact(self, name: str) -> str:
        return self.facts.get(name, "")


@dataclass(frozen=True, slots=True)
class View:
    """What an area reads from an object.

    Args:
        fingerprint: hashable values that the object's own decision reads and that other clients write.
        handed: values, such as a binding, that other objects' workflows write. A change always wakes the lifecycle.
        settled: whether the object's status shows that nothing is left to do.
    """

    fingerprint: tuple[object, ...]
    handed: tuple[object, ...] = ()
    settled: bool = False
    facts: Mapping[str, str] = field(default_factory=dict)
    model: KubeModel | None = None


Read = Callable[[JsonObject], View]


def project(
    kind: str,
    cluster: str,
    obj: JsonObject,
    read: Read,
    writer: str = FIELD_MANAGER,
    shown: Callable[[KubeModel | None], Mapping[Place, Shown]] = lambda model: {},
) -> Projection:
    metadata = mapping(obj, "metadata")
    view = _readable(kind, obj, read)
    places = shown(view.model)
    key, deleting = key_of(kind, obj, cluster), bool(text(metadata, "deletionTimestamp"))
    return Projection(
        key=key,
        resource_version=text(metadata, "resourceVersion"),
        # A recreated object, with a new uid, is another object even if it looks the same.
        fingerprint=hash((key.uid, deleting, view.fingerprint, view.handed, tuple(places.values()))),
        handed=hash(view.handed),
        settled=view.settled and not deleting,
        ours=written_by_us(obj, writer),
        deleting=deleting,
        facts=view.facts,
        others=hash(written_by_others(obj, writer)),
        own=written_by_ourselves(obj, writer),
        shown=places,
        levers=hash(chosen(mapping(metadata, "annotations"), LEVERS)),
    )


def _readable(kind: str, obj: JsonObject, read: Read) -> View:
    """The view. If the object is unreadable, its whole content is the fingerprint: each change wakes its lifecycle."""
    try:
        return read(obj)
    except Exception:  # one malformed object must not stop the watch of all others
        where = f"{text(obj, 'metadata', 'namespace')}/{text(obj, 'metadata', 'name')}"
        logger.exception("%s %s cannot be read by the watcher", kind, where)
        return View((json.dumps(obj, sort_keys=True, default=str),))


def others_finalizers(obj: JsonObject, ours: str) -> tuple[str, ...]:
    names = (name for name in sequence(obj, "metadata", "finalizers") if isinstance(name, str))
    return tuple(sorted(name for name in names if name != ours))


def chosen(values: Mapping[str, object], names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(values[name])) for name in names if name in values)


def generation(obj: JsonObject) -> object:
    """A value that changes with the spec, and with the status if the kind has no status subresource."""
    return at(obj, "metadata", "generation")
