"""Permissive CustomResourceDefinitions of Cluster API and its AWS provider, for clusters without them.

They are installed only on clusters that Perdure started, never over existing definitions.
"""

from __future__ import annotations

from domain.identity import Kind
from domain.instances import (
    AWS_CLUSTER,
    AWS_CLUSTER_ROLE_IDENTITY,
    AWS_MACHINE,
    AWS_MACHINE_POOL,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
)
from domain.instances.constants import INTERRUPTION_LABEL, STATE_LABEL
from engine.kube.json import JsonObject

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SHORT = {
    AWS_CLUSTER: "awsc",
    AWS_CLUSTER_ROLE_IDENTITY: "awsri",
    AWS_MACHINE: "awsm",
    AWS_MACHINE_POOL: "awsmp",
    MACHINE: "ma",
    MACHINE_DEPLOYMENT: "md",
    MACHINE_SET: "ms",
}


def definitions() -> tuple[JsonObject, ...]:
    return tuple(_definition(kind) for kind in _SHORT)


def _definition(kind: Kind) -> JsonObject:
    schema = {"type": "object", "properties": {"spec": _ANYTHING, "status": _ANYTHING}}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": _columns() if kind in (AWS_MACHINE, AWS_MACHINE_POOL, MACHINE) else [],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Cluster" if kind == AWS_CLUSTER_ROLE_IDENTITY else "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [_SHORT[kind]],
            },
            "versions": [version],
        },
    }


def _columns() -> list[dict[str, str]]:
    shown = {
        "Instance": ".spec.instanceID",
        "State": f".metadata.labels.{STATE_LABEL}",
        "Interruption": f".metadata.labels.{INTERRUPTION_LABEL}",
    }
    return [{"name": name, "type": "string", "jsonPath": path} for name, path in shown.items()]
