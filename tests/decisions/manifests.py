"""The manifests of `examples/`, and what the API server would drop of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from definitions import Json, schema_of

EXAMPLES = Path(__file__).parents[2] / "examples"


def manifests(directory: str) -> list[Json]:
    """Every object in the files of a directory."""
    files = sorted((EXAMPLES / directory).glob("*.yaml"))
    return [each for file in files for each in yaml.safe_load_all(file.read_text()) if each]


def dropped(obj: Json) -> list[str]:
    """The fields of a custom resource that its definition does not know."""
    return _pruned(obj["spec"], schema_of(obj["kind"])["properties"]["spec"], "spec")


def _pruned(value: Any, schema: Json, path: str) -> list[str]:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    if isinstance(value, list):
        return [each for item in value for each in _pruned(item, schema["items"], f"{path}[]")]
    if not isinstance(value, dict) or "additionalProperties" in schema:
        return []
    known = schema.get("properties", {})
    below = [each for key in value.keys() & known.keys() for each in _pruned(value[key], known[key], f"{path}.{key}")]
    return [f"{path}.{key}" for key in value.keys() - known.keys()] + below
