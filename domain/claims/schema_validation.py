"""Validation of claims' values against a provider's `openAPIV3Schema`; the message is the validator's own text, which
clients compare in a claim's `status.resources[].validationError` (list mode).

The dialect is OpenAPI 3.0: JSON Schema draft 4 with `nullable`; `format` is not enforced. The first violation is
reported, in the order of the schema's keywords, as in Poolboy. Unknown keywords are ignored; invalid ones (an unknown
`type`, a broken `pattern` or reference) raise `SchemaError`. References cannot leave the schema.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from openapi_schema_validator import OAS30Validator
from pydantic import JsonValue
from referencing import Registry

from domain.claims import constants
from domain.claims.json_objects import JsonObject, object_at, objects_at, text_at, value_at
from domain.claims.provider_resources import Scene
from domain.claims.templates import renderer
from domain.claims.templates.errors import TemplateError

# The text contains value and schema; a status must stay far below etcd's limit of 1.5 MB.
LONGEST_TEXT = 16_000
CACHED_SCHEMAS = 512


class SchemaError(Exception):
    pass


def violation(schema: JsonValue, value: JsonValue, what: str = "") -> str | None:
    """The first violation as text of several lines; None if valid. Raises SchemaError if the schema is invalid.

    `what` names the schema in the error if a `pattern` runs too long and the process is killed.
    """
    if not isinstance(schema, dict):
        raise SchemaError(f"openAPIV3Schema is not an object but {json.dumps(schema)[:100]}")
    renderer.announce(what)
    try:
        error = next(_validator(json.dumps(schema)).iter_errors(value), None)
        return None if error is None else _bounded(str(error))
    except Exception as error:
        # Any exception of the library (its own, re.error, TypeError, RecursionError) is caused by the schema.
        raise SchemaError(f"openAPIV3Schema cannot be used: {_reason(schema, error)}") from error


@lru_cache(CACHED_SCHEMAS)
def _validator(schema: str) -> Any:
    """Cached by the schema's text, because the order of its keys determines the first violation."""
    return OAS30Validator(json.loads(schema), registry=Registry())


def _reason(schema: JsonValue, error: Exception) -> str:
    try:
        OAS30Validator.check_schema(schema)
    except Exception as fault:
        path = "/".join(str(step) for step in getattr(fault, "absolute_path", ()))
        message = getattr(fault, "message", str(fault))
        return f"{path}: {message}"[:500] if path else message[:500]
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{type(error).__name__}: {lines[0]}"[:500]


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def validation_errors(scene: Scene, provider_names: Sequence[str]) -> list[str | None]:
    """The first error of each listed resource; None if it is valid. Raises ProviderMissing."""
    entries = objects_at(scene.claim, "spec", "resources")
    return [
        _fault(scene, object_at(entry, "template"), scene.provider(name))
        for entry, name in zip(entries, provider_names, strict=True)
    ]


def _fault(scene: Scene, template: JsonObject, provider: JsonObject) -> str | None:
    schema = value_at(provider, "spec", "validation", "openAPIV3Schema")
    where = f"ResourceProvider {text_at(provider, 'metadata', 'name')}"
    try:
        text = None if schema is None else violation(schema, template, f"{where}, validation schema")
    except SchemaError as error:
        return f"{where}: {error}"
    return text if text is not None else _failed_check(scene, template, provider)


def _failed_check(scene: Scene, template: JsonObject, provider: JsonObject) -> str | None:
    """The template's top-level keys override all variables."""
    variables = {**scene.views(provider), **template}
    weaker = scene.vars(provider)
    for check in objects_at(provider, "spec", "validation", "checks"):
        name = text_at(check, "name")
        what = f"ResourceProvider {text_at(provider, 'metadata', 'name')}, validation check {name}"
        try:
            if not scene.renderer.condition(text_at(check, "check"), variables, what=what, lazy=weaker):
                return constants.CHECK_FAILED.format(name=name)
        except TemplateError as error:
            return constants.CHECK_RAISED.format(name=name, error=error.text)
    return None
