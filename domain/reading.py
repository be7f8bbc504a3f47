"""Parses Kubernetes objects by their models; an unreadable object does not affect other objects.

The API server enforces the schemas, so an unreadable object is older than the schema. The caller must report it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from pydantic import ValidationError

from domain.identity import Key
from domain.model import Model
from domain.resource import CustomResource

R = TypeVar("R", bound=CustomResource)


class Malformed(Model):
    key: Key
    problem: str

    def __str__(self) -> str:
        return f"{self.key.path}: {self.problem}"


def read(model: type[R], obj: Mapping[str, object]) -> R | Malformed:
    try:
        return model.model_validate(obj)
    except ValidationError as error:
        return Malformed(key=_key(model, obj), problem=problem_of(error))


def read_all(model: type[R], objects: Iterable[Mapping[str, object]]) -> tuple[tuple[R, ...], tuple[Malformed, ...]]:
    found = [read(model, obj) for obj in objects]
    malformed = tuple(item for item in found if isinstance(item, Malformed))
    return tuple(item for item in found if not isinstance(item, Malformed)), malformed


def problem_of(error: ValidationError) -> str:
    """The error as text, without values, because they may be secret."""
    return "; ".join(f"{_path(item['loc'])}: {item['msg']}" for item in error.errors(include_input=False))


def _path(location: Iterable[int | str]) -> str:
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".") or "the object"


def _key(model: type[CustomResource], obj: Mapping[str, object]) -> Key:
    metadata = obj.get("metadata")
    known = metadata if isinstance(metadata, Mapping) else {}
    namespace, name, uid = (str(known.get(field) or "") for field in ("namespace", "name", "uid"))
    return Key(kind=model.kind_of.name, namespace=namespace, name=name, uid=uid)
