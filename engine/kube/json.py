"""Reads one or two fields of Kubernetes objects without trusting their shape. Kinds with a model are read by the model.

A field of another type than expected reads as absent. The API server accepts objects that are nested more deeply than
Python can parse; they are read without their deepest parts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from domain.identity import Key

JsonObject: TypeAlias = dict[str, object]

# Far below Python's recursion limit, even deep in the call stack; far above the nesting of any real object.
MOST_NESTED = 400
TOO_DEEP = "nested too deeply to be read"
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)


def parsed(body: bytes) -> object:
    """The body's JSON; raises ValueError if it is not JSON."""
    try:
        return json.loads(body)
    except RecursionError:
        return json.loads(b"".join(_shallow(body)))


def _shallow(body: bytes) -> Iterator[bytes]:
    """The body, with `TOO_DEEP` in place of each value that is nested too deeply."""
    depth, begun = 0, 0
    for token in _TOKEN.finditer(body):
        if token[0] in b"[{":
            depth += 1
            if depth == MOST_NESTED + 1:
                yield body[begun : token.start()]
        elif token[0] in b"]}":
            depth -= 1
            if depth == MOST_NESTED:
                yield json.dumps(TOO_DEEP).encode()
                begun = token.end()
    if depth <= MOST_NESTED:
        yield body[begun:]


def at(obj: object, *path: str) -> object:
    """The value at the path; None if the object has no such path."""
    for name in path:
        if type(obj) is not dict and not isinstance(obj, Mapping):  # the first check is ten times as quick
            return None
        obj = obj.get(name)
    return obj


def text(obj: object, *path: str) -> str:
    value = at(obj, *path)
    return value if isinstance(value, str) else ""


def key_of(kind: str, obj: object, cluster: str = "") -> Key:
    namespace, name, uid = (text(obj, "metadata", field) for field in ("namespace", "name", "uid"))
    return Key(kind=kind, namespace=namespace, name=name, uid=uid, cluster=cluster)


def flag(obj: object, *path: str) -> bool:
    return at(obj, *path) is True


def mapping(obj: object, *path: str) -> Mapping[str, object]:
    value = at(obj, *path)
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def sequence(obj: object, *path: str) -> Sequence[object]:
    value = at(obj, *path)
    return value if isinstance(value, list | tuple) else ()
