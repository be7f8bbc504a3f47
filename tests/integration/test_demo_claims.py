"""`perdure demo claims` as a person or a CI job runs it, and `perdure audit claims` on what it leaves."""

from __future__ import annotations

import json

import pytest
from product import perdure

from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def _findings(deployment: Deployment) -> list[str]:
    found = perdure(deployment, "audit", "claims", "-o", "json")
    assert found.returncode in {0, 1}, found.stdout + found.stderr
    return [f"{each['subject']}: {each['problem']}" for each in json.loads(found.stdout)]


def test_the_demo_settles_can_be_repeated_and_leaves_nothing_for_the_audit(fresh: Deployment) -> None:
    fresh.up(tether=True)
    first = perdure(fresh, "demo", "claims", "--exit")
    assert first.returncode == 0, first.stdout + first.stderr
    for said in (
        "The pool is full",
        "the live lab has it",
        "the claim has deleted itself",
        "were gone",
        "Deleted monday",
    ):
        assert said in first.stdout
    assert _findings(fresh) == []
    second = perdure(fresh, "demo", "claims", "--exit")
    assert second.returncode == 0, second.stdout + second.stderr
    assert "large, notebooks are left from an earlier run: deleted first" in second.stdout


def test_the_audit_finds_a_resource_whose_handle_is_gone(fresh: Deployment) -> None:
    fresh.up(tether=True)
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "lost",
            "namespace": "default",
            "annotations": {"poolboy.gpte.redhat.com/resource-handle-name": "guid-zzzzz"},
        },
    }
    provider = {
        "apiVersion": "poolboy.gpte.redhat.com/v1",
        "kind": "ResourceProvider",
        "metadata": {"name": "any", "namespace": "poolboy"},
        "spec": {"override": {"apiVersion": "v1", "kind": "ConfigMap"}},
    }
    _create(fresh, manifest, provider)
    assert _findings(fresh) == ["ConfigMap default/lost: created for ResourceHandle guid-zzzzz, which does not exist"]


def _create(deployment: Deployment, *manifests: dict[str, object]) -> None:
    import asyncio

    from domain.built_in_kinds import CONFIG_MAP
    from domain.claims import RESOURCE_PROVIDER
    from engine.kube.api import KubeApi
    from engine.kube.json import text
    from engine.settings import Settings

    async def create() -> None:
        async with await KubeApi.open(Settings(), "test", deployment.env()["KUBECONFIG"]) as kube:
            for manifest in manifests:
                kind = CONFIG_MAP if manifest["kind"] == "ConfigMap" else RESOURCE_PROVIDER
                await kube.create(kind, manifest, text(manifest, "metadata", "namespace"))

    asyncio.run(create())
