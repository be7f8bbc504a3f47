"""Reading free-form JSON: what is absent, or of another type than expected, reads as empty.

Claims, handles and providers carry templates, variables and live objects that have no schema of their own; the API
server holds the rest to its types, so that an unexpected type means a field that is not used. Nothing here, and nothing
that uses it, changes what it was given: what is computed is a new object.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, cast

from pydantic import JsonValue, SkipValidation

from domain.levers import is_paused

JsonObject = dict[str, JsonValue]
# In a model: an object that came from the API server or was made of one, and is not looked through again.
GivenObject = Annotated[JsonObject, SkipValidation]


def value_at(value: JsonValue, *path: str) -> JsonValue:
    """What stands at the path of keys, None if a step of it is missing."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def object_at(value: JsonValue, *path: str) -> JsonObject:
    """The object at the path, `{}` if there is none."""
    found = value_at(value, *path)
    return found if isinstance(found, dict) else {}


def objects_at(value: JsonValue, *path: str) -> list[JsonObject]:
    """The list at the path, its entries as objects (`{}` for one that is none, so that indices hold)."""
    found = value_at(value, *path)
    return [item if isinstance(item, dict) else {} for item in found] if isinstance(found, list) else []


def text_at(value: JsonValue, *path: str) -> str:
    """The string at the path, `""` if there is none."""
    found = value_at(value, *path)
    return found if isinstance(found, str) else ""


def with_metadata(obj: JsonObject, **fields: object) -> JsonObject:
    """The object with these fields of its metadata."""
    return {**obj, "metadata": {**object_at(obj, "metadata"), **cast("JsonObject", fields)}}


def with_spec(obj: JsonObject, **fields: object) -> JsonObject:
    """The object with these fields of its spec."""
    return {**obj, "spec": {**object_at(obj, "spec"), **cast("JsonObject", fields)}}


def paused(value: JsonValue) -> bool:
    """Whether a person holds the object."""
    return is_paused(object_at(value, "metadata", "annotations"))


def present(**fields: JsonValue) -> JsonObject:
    """An object of the fields that are known: a status field is absent, not null, while it is unknown."""
    return {name: value for name, value in fields.items() if value is not None}


def only(value: JsonObject, *fields: str) -> JsonObject:
    """These fields of the object, those that it has."""
    return {field: value[field] for field in fields if field in value}


def without(value: JsonObject, fields: Iterable[str]) -> JsonObject:
    """The object without some of its fields."""
    left_out = set(fields)
    return {key: item for key, item in value.items() if key not in left_out}
