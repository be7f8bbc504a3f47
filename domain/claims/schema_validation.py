"""Validation of claims' values against a provider's `openAPIV3Schema`; clients depend on the exact messages.

The dialect is OpenAPI 3.0: JSON Schema draft 4 with `nullable`; `format` is not enforced. The first violation is
reported, in the order of the schema's keywords, as in Poolboy. Unknown keywords are ignored; invalid ones (an unknown
`type`, a broken `pattern` or reference) raise `SchemaError`. References cannot leave the schema.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from openapi_schema_validator import OAS30Validator
from pydantic import JsonValue
from referencing import Registry

from domain.claims.templates import renderer

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
