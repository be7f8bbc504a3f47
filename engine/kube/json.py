"""Kubernetes objects as they are on the wire, and reading them without trusting their shape.

Objects of a kind with a model are read with the model. Here is for code that looks at one or two fields of any object:
a field of another type than expected (people write status by hand) reads as absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonObject: TypeAlias = dict[str, object]


def at(obj: object, *path: str) -> object:
    """The value under a path of field names, None where the path ends early."""
    for name in path:
        if not isinstance(obj, Mapping):
            return None
        obj = obj.get(name)
    return obj


def text(obj: object, *path: str) -> str:
    """The string under a path, empty if there is none."""
    value = at(obj, *path)
    return value if isinstance(value, str) else ""


def flag(obj: object, *path: str) -> bool:
    """The boolean under a path, False if there is none."""
    return at(obj, *path) is True


def mapping(obj: object, *path: str) -> Mapping[str, object]:
    """The object under a path, empty if there is none."""
    value = at(obj, *path)
    return value if isinstance(value, Mapping) else {}


def sequence(obj: object, *path: str) -> Sequence[object]:
    """The list under a path, empty if there is none."""
    value = at(obj, *path)
    return value if isinstance(value, list | tuple) else ()
