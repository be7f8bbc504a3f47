"""The OpenAPI schema of a custom resource, read off its pydantic model, so that a CRD can never differ from its model.

What a type cannot say stands beside it as a marker: `Required[str]` (what Go's structs always emit: such a field has a
default in Python all the same, because people write objects by hand), `DateTime`, `Preserved` for a model whose object
keeps what the model does not know, for lists `Atomic` and `MapByType`, and for objects that are replaced as a whole
`AtomicObject`. Types with rules of their own are made once, `Annotated[str, Marker(pattern=...)]`, and may stand
anywhere in a type; `int | str` is what Kubernetes calls IntOrString, `datetime` a string of the format `date-time`, and
a `StrEnum` one of its values.
The rules are the API server's to hold; the models read what breaks them, because objects may be older than the rules.
Descriptions come from `Field(description=...)`, or from the docstring of a nested model, and are what `kubectl explain`
shows. The schema is structural: every object is a model or a map of one type, from which the API server prunes what is
unknown, or it is free-form (`JsonObject`, `Json`, `Preserved`), and the server keeps it as it is. Defaults of the
models stay out of it, because a default appears in the objects that clients compare; where a replaced operator's schema
has one, `Marker(default=...)` says it.
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

# A piece of JSON on its way into a document.
Document = dict[str, object]

# Free-form fields: any value, and any object, read as they are.
Json: TypeAlias = object
JsonObject = dict[str, object]


@dataclass(frozen=True)
class Marker:
    """What the schema says of a field beyond its type; `items_required` speaks of the objects in a list.

    `preserve` keeps what an object has beyond the fields of its model; of the fields in `one_of` it has exactly one.
    `immutable` is what the API server says to whoever changes a field that has a value. `rules` are conditions in CEL,
    each with what the API server says to whoever breaks it.
    """

    required: bool = False
    format: str = ""
    enum: tuple[str, ...] = ()
    pattern: str = ""
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    default: str | int | bool | None = None
    preserve: bool = False
    map_type: Literal["", "atomic"] = ""
    list_type: Literal["", "atomic", "map"] = ""
    list_map_keys: tuple[str, ...] = ()
    items_required: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    immutable: str = ""
    rules: tuple[tuple[str, str], ...] = ()


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
    """The schema of an object that the model describes."""
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    schema: Document = {
        "description": summary(model),
        "type": "object",
        "properties": {name: field_schema(fields[name]) for name in sorted(fields)},
    }
    required = sorted(name for name, field in fields.items() if any(marker.required for marker in _markers(field)))
    return {**schema, "required": required} if required else schema


def field_schema(field: FieldInfo) -> Document:
    """The schema of one field: its type, what its markers say, its own description before its type's."""
    schema = _marked(_type(field.annotation), field.metadata)
    return {"description": field.description, **_without(schema, "description")} if field.description else schema


def _marked(schema: Document, metadata: Iterable[object]) -> Document:
    for marker in metadata:
        if isinstance(marker, Marker):
            schema |= _said_by(marker, schema)
    return schema


def _said_by(marker: Marker, schema: Document) -> Document:
    said: Document = {}
    if marker.format:
        said["format"] = marker.format
    if marker.enum:
        said["enum"] = list(marker.enum)
    if marker.pattern:
        said["pattern"] = marker.pattern
    if marker.minimum is not None:
        said["minimum"] = marker.minimum
    if marker.maximum is not None:
        said["maximum"] = marker.maximum
    if marker.min_length is not None:
        said["minLength"] = marker.min_length
    if marker.max_length is not None:
        said["maxLength"] = marker.max_length
    if marker.default is not None:
        said["default"] = marker.default
    if marker.preserve:
        said[_PRESERVE] = True
    if marker.map_type:
        said["x-kubernetes-map-type"] = marker.map_type
    if marker.list_type:
        said["x-kubernetes-list-type"] = marker.list_type
    if marker.list_map_keys:
        said["x-kubernetes-list-map-keys"] = list(marker.list_map_keys)
    if marker.one_of:
        said["oneOf"] = [{"required": [name]} for name in marker.one_of]
    if marker.immutable:
        # An empty text is none: what the operator makes of it may still be written there.
        unset = "oldSelf == '' || " if schema.get("type") == "string" else ""
        said["x-kubernetes-validations"] = [{"message": marker.immutable, "rule": f"{unset}self == oldSelf"}]
    if marker.rules:
        said["x-kubernetes-validations"] = [{"message": message, "rule": rule} for rule, message in marker.rules]
    items = schema.get("items")
    if marker.items_required and isinstance(items, dict):
        said["items"] = {**items, "required": sorted(marker.items_required)}
    return said


def _type(annotation: object) -> Document:
    """The schema of a type: a scalar, a model, free-form, a tuple or map of one type, or one of these or absent."""
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
    """The docstring without its line breaks."""
    return " ".join((inspect.getdoc(model) or "").split())


def _without(schema: Document, name: str) -> Document:
    return {key: value for key, value in schema.items() if key != name}
