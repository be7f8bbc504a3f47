"""The OpenAPI schema of a custom resource, derived from its pydantic model, so that CRD and model cannot differ.

Markers express what a type cannot: `Required[str]` (the schema requires the field; its Python default is for objects
that lack it), `Preserved` for models whose objects keep unknown fields, `AtomicObject` for objects that are replaced as
a whole, and `Annotated[str, Marker(pattern=...)]` anywhere in a type.

The API server enforces the rules; the models accept violations, because objects may be older than the rules.
Descriptions come from `Field(description=...)` or the docstring of a nested model. The schema omits the models'
defaults, because the API server would write them into objects. `Marker(default=...)` copies a default of a replaced
operator's schema.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from domain.model import Model

T = TypeVar("T")

# A JSON document under construction.
Document = dict[str, object]

# Free-form fields, read unchanged.
Json: TypeAlias = object
JsonObject = dict[str, object]


@dataclass(frozen=True)
class Marker:
    required: bool = False
    format: str = ""
    enum: tuple[str, ...] = ()
    pattern: str = ""
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    max_items: int | None = None
    default: str | int | bool | None = None
    preserve: bool = False  # keep unknown fields of the object
    map_type: Literal["", "atomic"] = ""
    list_type: Literal["", "atomic", "map"] = ""
    list_map_keys: tuple[str, ...] = ()
    items_required: tuple[str, ...] = ()  # the required fields of a list's items
    one_of: tuple[str, ...] = ()  # exactly one of these fields is present
    immutable: str = ""  # a field with a value must not change; the text is the API server's message for an attempt
    rules: tuple[tuple[str, str], ...] = ()  # CEL conditions, each with the API server's message for violations


_UNMARKED = Marker()
REQUIRED = Marker(required=True)

Required = Annotated[T, REQUIRED]
DateTime = Annotated[T, Marker(format="date-time")]
Preserved = Annotated[T, Marker(preserve=True)]
Atomic = Annotated[T, Marker(list_type="atomic")]
AtomicObject = Annotated[T, Marker(map_type="atomic")]
MapByType = Annotated[T, Marker(list_type="map", list_map_keys=("type",), items_required=("type", "status"))]

_INT_OR_STRING: Document = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_SCALARS: dict[object, str] = {str: "string", int: "integer", bool: "boolean", float: "number"}


def schema_of(model: type[Model]) -> Document:
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    schema: Document = {
        "description": summary(model),
        "type": "object",
        "properties": {name: field_schema(fields[name]) for name in sorted(fields)},
    }
    required = sorted(name for name, field in fields.items() if any(marker.required for marker in _markers(field)))
    return {**schema, "required": required} if required else schema


def field_schema(field: FieldInfo) -> Document:
    """The field's schema. The field's own description replaces its type's."""
    schema = _marked(_type(field.annotation), field.metadata)
    return {"description": field.description, **_without(schema, "description")} if field.description else schema


def _marked(schema: Document, metadata: Iterable[object]) -> Document:
    for marker in metadata:
        if isinstance(marker, Marker):
            schema |= _schema_of_marker(marker, schema)
    return schema


# The fields of a marker whose values the schema takes over unchanged, each with the schema's keyword.
_KEYWORDS = {
    "format": "format",
    "enum": "enum",
    "pattern": "pattern",
    "minimum": "minimum",
    "maximum": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "max_items": "maxItems",
    "default": "default",
    "preserve": _PRESERVE,
    "map_type": "x-kubernetes-map-type",
    "list_type": "x-kubernetes-list-type",
    "list_map_keys": "x-kubernetes-list-map-keys",
}


def _schema_of_marker(marker: Marker, schema: Document) -> Document:
    document: Document = {}
    for name, keyword in _KEYWORDS.items():
        value = getattr(marker, name)
        if value != getattr(_UNMARKED, name):
            document[keyword] = list(value) if isinstance(value, tuple) else value
    if marker.one_of:
        document["oneOf"] = [{"required": [name]} for name in marker.one_of]
    if marker.immutable:
        # An empty string counts as unset, so the field may still be written once.
        unset = "oldSelf == '' || " if schema.get("type") == "string" else ""
        document["x-kubernetes-validations"] = [{"message": marker.immutable, "rule": f"{unset}self == oldSelf"}]
    if marker.rules:
        document["x-kubernetes-validations"] = [{"message": message, "rule": rule} for rule, message in marker.rules]
    items = schema.get("items")
    if marker.items_required and isinstance(items, dict):
        document["items"] = {**items, "required": sorted(marker.items_required)}
    return document


def _type(annotation: object) -> Document:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _marked(_type(arguments[0]), arguments[1:])
    if annotation is object:
        return {_PRESERVE: True}
    if annotation == JsonObject:
        return {"type": "object", _PRESERVE: True}
    if origin in (Union, types.UnionType):
        present = tuple(argument for argument in arguments if argument is not type(None))
        if set(present) == {int, str}:
            return dict(_INT_OR_STRING)
        (only,) = present
        return _type(only)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return {"type": "array", "items": _type(arguments[0])}
    if origin is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": _type(arguments[1])}
    if inspect.isclass(annotation) and issubclass(annotation, Model):
        return schema_of(annotation)
    if inspect.isclass(annotation) and issubclass(annotation, StrEnum):
        return {"type": "string", "enum": [each.value for each in annotation]}
    if annotation is datetime:
        return {"type": "string", "format": "date-time"}
    if annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    raise TypeError(f"a field of a custom resource cannot be of type {annotation!r}")


def _markers(field: FieldInfo) -> tuple[Marker, ...]:
    return tuple(item for item in field.metadata if isinstance(item, Marker))


def summary(model: type[Model]) -> str:
    return " ".join((inspect.getdoc(model) or "").split())


def _without(schema: Document, name: str) -> Document:
    return {key: value for key, value in schema.items() if key != name}
