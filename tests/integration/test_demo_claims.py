"""`perdure demo claims` as a person or a CI job runs it, and `perdure audit claims` on what it leaves."""

from __future__ import annotations

import asyncio
import json

import pytest
from claim_domain import NAMES
from product import perdure

from engine.kube import CONFIG_MAP, KubeApi
from engine.settings import Settings
from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def _findings(deployment: Deployment) -> list[str]:
    found = perdure(deployment, "audit", "claims", "-o", "json")
    assert found.returncode in {0, 1}, found.stdout + found.stderr
    return [f"{each['subject']}: {each['problem']}" for each in json.loads(found.stdout)]


def test_the_demo_settles_can_be_repeated_and_only_a_lost_resource_is_audited(fresh: Deployment) -> None:
    fresh.up(tether=True)
    first = perdure(fresh, "demo", "claims", "--exit")
    assert first.returncode == 0, first.stdout + first.stderr
    for line in (
        "The pool is full",
        "the live lab has this size",
        "the claim has deleted itself",
        "were gone",
        "Deleted monday",
    ):
        assert line in first.stdout
    assert _findings(fresh) == []
    second = perdure(fresh, "demo", "claims", "--exit")
    assert second.returncode == 0, second.stdout + second.stderr
    assert "large, notebooks are left from an earlier run: deleted first" in second.stdout

    asyncio.run(_lose_a_resource(fresh))
    assert _findings(fresh) == ["ConfigMap default/lost: created for ResourceHandle guid-zzzzz, which does not exist"]


async def _lose_a_resource(deployment: Deployment) -> None:
    """A resource whose handle is gone."""
    marks = {NAMES.resource_handle_name_annotation: "guid-zzzzz"}
    async with await KubeApi.open(Settings(), "tests", deployment.env()["KUBECONFIG"]) as kube:
        await kube.create(CONFIG_MAP, {"metadata": {"name": "lost", "annotations": marks}}, "default")
