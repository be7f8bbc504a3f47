"""The CustomResourceDefinitions as tests compare them: a schema as one line, and all that a document holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from domain.custom_resources import all_crds, custom_resources
from domain.operator_domain import DEFAULT
from domain.resource import CustomResource

Json = dict[str, Any]

CRDS: dict[str, Json] = {crd["spec"]["names"]["kind"]: crd for crd in all_crds(DEFAULT)}  # type: ignore[index]
MODELS: dict[str, type[CustomResource]] = {model.kind_of.name: model for model in custom_resources()}

_LISTS = {None: "list", "atomic": "atomic", "map": "map-by-type"}


def samples(area: str) -> dict[str, Json]:
    """Objects as others write them, by name: `tests/samples` has a file for each area."""
    file = Path(__file__).parents[1] / "samples" / f"{area}.yaml"
    return {obj["metadata"]["name"]: obj for obj in yaml.safe_load_all(file.read_text())}


def version_of(kind: str) -> Json:
    """The only version of a kind."""
    (version,) = CRDS[kind]["spec"]["versions"]
    assert isinstance(version, dict)
    return version


def schema_of(kind: str) -> Json:
    """The schema of a kind's objects."""
    schema = version_of(kind)["schema"]["openAPIV3Schema"]
    assert isinstance(schema, dict)
    return schema


def columns_of(kind: str) -> str:
    """What `kubectl get` shows, in one line."""
    columns = version_of(kind)["additionalPrinterColumns"]
    return "; ".join(f"{item['name']} {item['type']} {item['jsonPath']}" for item in columns)


def sketch(schema: Json) -> str:
    """A schema in one line: `!` marks required fields, `*` preserved unknown ones, `@` what is replaced as a whole."""
    if schema.get("x-kubernetes-int-or-string"):
        assert schema["anyOf"] == [{"type": "integer"}, {"type": "string"}]
        return "int-or-string"
    preserved = "*" if schema.get("x-kubernetes-preserve-unknown-fields") else ""
    match schema.get("type"):
        case None:
            assert preserved
            return "any"
        case "object" if "additionalProperties" in schema:
            return f"map<{sketch(schema['additionalProperties'])}>"
        case "object" if "properties" in schema:
            return _fields(schema) + preserved + "@" * (schema.get("x-kubernetes-map-type") == "atomic")
        case "object":
            assert preserved
            return preserved
        case "array":
            kind = schema.get("x-kubernetes-list-type")
            assert schema.get("x-kubernetes-list-map-keys") == (["type"] if kind == "map" else None)
            return f"{_LISTS[kind]}<{sketch(schema['items'])}>"
    return str(schema.get("format", schema["type"])) + _rules(schema)


def _fields(schema: Json) -> str:
    required, fields = set(schema.get("required", ())), sorted(schema["properties"].items())
    assert required <= set(schema["properties"])
    inside = (f"{name}{'!' * (name in required)}: {sketch(field)}" for name, field in fields)
    return f"{{{', '.join(inside)}}}"


def _rules(schema: Json) -> str:
    rules = [schema["pattern"]] if "pattern" in schema else []
    rules += ["|".join(schema["enum"])] if "enum" in schema else []
    rules += [f">={schema['minimum']}"] if "minimum" in schema else []
    rules += [f"{schema['minLength']}<="] if "minLength" in schema else []
    rules += [f"<={schema['maxLength']}"] if "maxLength" in schema else []
    return "".join(f"[{rule}]" for rule in rules) + (f"={schema['default']}" if "default" in schema else "")


def everything_in(document: object) -> list[Json]:
    """Every object of a document, at any depth."""
    if isinstance(document, list):
        return [found for item in document for found in everything_in(item)]
    if isinstance(document, dict):
        return [document, *(found for item in document.values() for found in everything_in(item))]
    return []
