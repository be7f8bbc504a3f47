"""Values of claims held against a provider's `openAPIV3Schema`, with the validator's own text as the message.

Two places carry such schemas: a provider's `validation` (the template of a list-mode claim) and each parameter's
`validation` (one value). The dialect is that of OpenAPI 3.0: JSON Schema draft 4 with `nullable`, `format` not
enforced. Of several violations the first one is told, in the order of the schema's keywords, as the replaced operator
did; clients show the text as it is.

Schemas are free-form fields: the API server checks nothing of what people write there. What the validator does not
know it ignores, as before. What it cannot work with (an unknown `type`, a broken `pattern`, a reference that leads
nowhere) is the provider's fault, not the claim's, and is a `SchemaError`. References are followed inside the schema
only: nothing is ever fetched.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from openapi_schema_validator import OAS30Validator
from pydantic import JsonValue
from referencing import Registry

from domain.claims.templates import renderer

# The text holds the offending value and the schema; a status has to stay far below the 1.5 MB of an object in etcd.
LONGEST_TEXT = 16_000
CACHED_SCHEMAS = 512


class SchemaError(Exception):
    """The schema cannot be used; the text says why, in one line."""


def violation(schema: JsonValue, value: JsonValue, what: str = "") -> str | None:
    """The first violation's multi-line text, None for a valid value.

    A `pattern` may take for ever: `what` is announced beforehand, so that whoever ends it can name it.

    Raises:
        SchemaError: when the schema itself is at fault.
    """
    if not isinstance(schema, dict):
        raise SchemaError(f"openAPIV3Schema is not an object but {json.dumps(schema)[:100]}")
    renderer.announce(what)
    try:
        error = next(_validator(json.dumps(schema)).iter_errors(value), None)
        return None if error is None else _bounded(str(error))
    except Exception as error:
        # Whatever the library stumbles over (its own errors, re.error, TypeError, RecursionError) lies in the schema:
        # the value is plain JSON.
        raise SchemaError(f"openAPIV3Schema cannot be used: {_reason(schema, error)}") from error


@lru_cache(CACHED_SCHEMAS)
def _validator(schema: str) -> Any:
    """The validator of a schema, by its text: the order of the keys is the order in which violations are found."""
    return OAS30Validator(json.loads(schema), registry=Registry())


def _reason(schema: JsonValue, error: Exception) -> str:
    """What the metaschema says of the schema, which names the place; else the error of the validation."""
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
