"""Access to free-form JSON: absent values and values of unexpected types count as empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, cast

from pydantic import JsonValue, SkipValidation

from domain.control_annotations import is_paused
from domain.identity import Key, Kind

JsonObject = dict[str, JsonValue]
Name = tuple[str, str]  # namespace and name
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
    """The list's entries; an entry that is not an object becomes `{}`, so that indices stay valid."""
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


def number_at(value: JsonValue, *path: str) -> int | None:
    found = value_at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def name_of(obj: JsonObject) -> Name:
    return text_at(obj, "metadata", "namespace"), text_at(obj, "metadata", "name")


def key_of(kind: Kind, obj: JsonObject, cluster: str) -> Key:
    namespace, name = name_of(obj)
    return Key(kind=kind.name, namespace=namespace, name=name, uid=text_at(obj, "metadata", "uid"), cluster=cluster)


def version_of(obj: JsonObject | None) -> str:
    return text_at(obj, "metadata", "resourceVersion")


def is_deleting(obj: JsonObject | None) -> bool:
    return bool(value_at(obj, "metadata", "deletionTimestamp"))


def with_metadata(obj: JsonObject, **fields: object) -> JsonObject:
    return {**obj, "metadata": {**object_at(obj, "metadata"), **cast("JsonObject", fields)}}


def with_added(obj: JsonObject, **added: Mapping[str, JsonValue]) -> JsonObject:
    return with_metadata(
        obj, **{part: {**object_at(obj, "metadata", part), **new} for part, new in added.items() if new}
    )


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
