"""Read-only access to free-form JSON: absent values, and values of unexpected types, read as empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, cast

from pydantic import JsonValue, SkipValidation

from domain.control_annotations import is_paused

JsonObject = dict[str, JsonValue]
# An object from the API server, not validated again.
GivenObject = Annotated[JsonObject, SkipValidation]


def value_at(value: JsonValue, *path: str) -> JsonValue:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def object_at(value: JsonValue, *path: str) -> JsonObject:
    found = value_at(value, *path)
    return found if isinstance(found, dict) else {}


def objects_at(value: JsonValue, *path: str) -> list[JsonObject]:
    """The list's entries; any that is not an object becomes `{}`, so that indices stay valid."""
    found = value_at(value, *path)
    return [item if isinstance(item, dict) else {} for item in found] if isinstance(found, list) else []


def entry_at(entries: Sequence[JsonObject], index: int) -> JsonObject:
    return entries[index] if index < len(entries) else {}


def text_at(value: JsonValue, *path: str) -> str:
    found = value_at(value, *path)
    return found if isinstance(found, str) else ""


def flag_at(value: JsonValue, *path: str) -> bool | None:
    found = value_at(value, *path)
    return found if isinstance(found, bool) else None


def with_metadata(obj: JsonObject, **fields: object) -> JsonObject:
    return {**obj, "metadata": {**object_at(obj, "metadata"), **cast("JsonObject", fields)}}


def with_spec(obj: JsonObject, **fields: object) -> JsonObject:
    return {**obj, "spec": {**object_at(obj, "spec"), **cast("JsonObject", fields)}}


def paused(value: JsonValue) -> bool:
    return is_paused(object_at(value, "metadata", "annotations"))


def present(**fields: JsonValue) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def only(value: JsonObject, *fields: str) -> JsonObject:
    return {field: value[field] for field in fields if field in value}


def without(value: JsonObject, fields: Iterable[str]) -> JsonObject:
    left_out = set(fields)
    return {key: item for key, item in value.items() if key not in left_out}
