"""The CustomResourceDefinitions of all kinds, generated from the models in each area's `resources`.

The generated files are in `deploy/crds/`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from domain.areas import installed
from domain.identity import Kind, all_kinds
from domain.reading import read
from domain.resource import CustomResource, Definition
from domain.schema import Document, field_schema, summary

_API_VERSION = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized "
    "schemas to the latest internal value, and may reject unrecognized values."
)
_KIND = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the "
    "endpoint the client submits requests to. Cannot be updated. In CamelCase."
)


@cache
def custom_resources() -> tuple[type[CustomResource], ...]:
    kinds = all_kinds()
    models: dict[str, type[CustomResource]] = {}
    for area in installed().values():
        for _, model in inspect.getmembers(importlib.import_module(area.resources), inspect.isclass):
            if issubclass(model, CustomResource) and model is not CustomResource:
                models[model.kind_of.name] = model
    return tuple(models[name] for name in kinds if name in models)


class Belonging(NamedTuple):
    """An object's delegate and owner, as `Kind/namespace/name`; both are empty if the object cannot be read.

    `delegate` is the object whose workflow does the work for this object; empty if this object has its own workflow.
    `owner` is the object that this object exists for.
    """

    delegate: str = ""
    owner: str = ""


def belonging_of(kind: Kind, obj: Mapping[str, object]) -> Belonging:
    model = next((model for model in custom_resources() if model.kind_of.name == kind.name), None)
    read_as = read(model, obj) if model is not None else None
    return Belonging(read_as.delegate, read_as.owner) if isinstance(read_as, CustomResource) else Belonging()


def all_crds(domain: str, *, selectable_fields: bool = True) -> list[Document]:
    """Every CRD. `domain` is the OPERATOR_DOMAIN. Kubernetes before 1.30 needs `selectable_fields=False`."""
    return [crd_of(model, domain, selectable_fields=selectable_fields) for model in custom_resources()]


def crd_of(model: type[CustomResource], domain: str, *, selectable_fields: bool = True) -> Document:
    kind, annotations = model.kind_of.under(domain), model.definition.annotations
    scope = "Cluster" if model.definition.cluster_scoped else "Namespaced"
    version = _version(model) | (_selectable(model) if selectable_fields else {})
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            **({"annotations": dict(annotations)} if annotations else {}),
            "name": f"{kind.plural}.{kind.group}",
        },
        "spec": {"group": kind.group, "names": _names(model), "scope": scope, "versions": [version]},
    }


def _names(model: type[CustomResource]) -> Document:
    kind, short = model.kind_of, model.definition.short_names
    return {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        **({"shortNames": list(short)} if short else {}),
        "singular": kind.name.lower(),
    }


def _version(model: type[CustomResource]) -> Document:
    columns = [{"jsonPath": item.json_path, "name": item.name, "type": item.type} for item in model.printer_columns]
    return {
        "additionalPrinterColumns": columns,
        "name": model.kind_of.version,
        "schema": {"openAPIV3Schema": _object_schema(model)},
        "served": True,
        "storage": True,
        **_subresources(model.definition),
    }


def _subresources(definition: Definition) -> Document:
    served: Document = {}
    if definition.scale_subresource:
        served["scale"] = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    if definition.status_subresource:
        served["status"] = {}
    return {"subresources": served} if served else {}


def _selectable(model: type[CustomResource]) -> Document:
    fields = [{"jsonPath": path} for path in model.definition.selectable_fields]
    return {"selectableFields": fields} if fields else {}


def _object_schema(model: type[CustomResource]) -> Document:
    required = model.definition.required
    parts: Document = {
        name: field_schema(model.model_fields[name]) for name in ("spec", "status") if name in model.model_fields
    }
    return {
        "description": summary(model),
        "type": "object",
        "properties": {
            "apiVersion": {"description": _API_VERSION, "type": "string"},
            "kind": {"description": _KIND, "type": "string"},
            "metadata": _metadata_schema(model.definition),
            **parts,
        },
        **({"required": list(required)} if required else {}),
    }


def _metadata_schema(definition: Definition) -> Document:
    """The API server validates metadata itself, so a CRD may only restrict the name."""
    rules: Document = {}
    if definition.name_length:
        rules["maxLength"] = definition.name_length
    if definition.name_pattern:
        rules["pattern"] = definition.name_pattern
    return {"type": "object", **({"properties": {"name": {"type": "string", **rules}}} if rules else {})}
