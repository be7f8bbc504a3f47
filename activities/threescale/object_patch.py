"""A merge patch that keeps nulls in lists, such as in policies' configurations."""

from __future__ import annotations

from collections.abc import Mapping

from domain.identity import Kind
from domain.writes import merge
from engine.kube import JsonObject, KubeApi


async def patched(
    kube: KubeApi, kind: Kind, namespace: str, name: str, patch: Mapping[str, object], resource_version: str
) -> JsonObject:
    if not _has_null_in_list(patch):
        return await kube.patch(kind, namespace, name, patch, resource_version=resource_version)
    # From the lists of a merge patch the API server drops nulls, from a JSON Patch it does not.
    found = await kube.get(kind, namespace, name)
    after = {part: merge(found.get(part), value) for part, value in patch.items()}
    operations = [{"op": "add", "path": f"/{part}", "value": value} for part, value in after.items()]
    return await kube.json_patch(kind, namespace, name, operations, resource_version=resource_version)


def _has_null_in_list(value: object, *, listed: bool = False) -> bool:
    if isinstance(value, Mapping):
        return any((listed and each is None) or _has_null_in_list(each, listed=listed) for each in value.values())
    return isinstance(value, list) and any(_has_null_in_list(each, listed=True) for each in value)
