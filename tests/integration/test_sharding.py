"""Two installations in one cluster, each with areas and a Temporal namespace of its own (docs/operating.md)."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
from product import command_line, process
from temporalio.client import Client
from waiting import eventually

from domain.accounts import ACCOUNT_POOL
from domain.claims import RESOURCE_CLAIM, RESOURCE_PROVIDER
from domain.identity import Kind
from engine.kube import NAMESPACE, KubeApi
from engine.kube.json import JsonObject, key_of, text
from localcloud.bench.claims_things import OPERATOR
from localcloud.deployment import Deployment
from tests.running.programs import COMMAND, ROOT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


async def test_two_installations_serve_an_area_each_from_a_temporal_namespace_of_their_own(
    deployment: Deployment, kube: KubeApi
) -> None:
    name = f"sharding-{uuid4().hex[:6]}"
    shards = {
        area: {
            "PERDURE_AREAS": area,
            "TEMPORAL_NAMESPACE": f"{name}-{area}",
            "PERDURE_INSTALLATION": f"{name}-{area}",
        }
        for area in ("claims", "accounts")
    }
    for environ in shards.values():
        await bootstrapped(deployment, environ)
    await kube.create(NAMESPACE, {"metadata": {"name": name}})
    await kube.create(RESOURCE_PROVIDER, provider(name), OPERATOR)
    async with process(deployment, "run", **shards["claims"]), process(deployment, "run", **shards["accounts"]):
        claim = {"metadata": {"name": name}, "spec": {"provider": {"name": name}}}
        made = {
            "claims": (RESOURCE_CLAIM, await kube.create(RESOURCE_CLAIM, claim, name)),
            "accounts": (
                ACCOUNT_POOL,
                await kube.create(ACCOUNT_POOL, {"metadata": {"name": name}, "spec": {"poolSize": 0}}, name),
            ),
        }
        try:
            for area, (kind, obj) in made.items():
                for other, environ in shards.items():
                    client = await Client.connect(
                        deployment.env()["TEMPORAL_ADDRESS"], namespace=environ["TEMPORAL_NAMESPACE"]
                    )
                    if other == area:
                        await eventually(lambda c=client, k=kind, o=obj: opened(c, k, o), f"{kind.name} has a workflow")
                    else:
                        assert not await opened(client, kind, obj)

            async def is_bound() -> bool:
                return bool(text(await kube.get(RESOURCE_CLAIM, name, name), "status", "resourceHandle", "name"))

            await eventually(is_bound, "the claim is bound")
        finally:
            await kube.delete(RESOURCE_CLAIM, name, name)
            await kube.delete(ACCOUNT_POOL, name, name)
            await eventually(lambda: gone(kube, name), "both are gone")
            await kube.delete(RESOURCE_PROVIDER, OPERATOR, name)


async def bootstrapped(deployment: Deployment, environ: dict[str, str]) -> None:
    settings = deployment.program_env() | {"PERDURE_STATE": ""} | environ
    command = command_line(COMMAND, "temporal", "bootstrap", "--retention-days", "1", forked=True)
    made = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=settings)
    assert await made.wait() == 0


async def opened(client: Client, kind: Kind, obj: JsonObject) -> bool:
    query = f"WorkflowId = '{key_of(kind.name, obj).workflow_id}'"
    return (await client.count_workflows(query)).count > 0


async def gone(kube: KubeApi, namespace: str) -> bool:
    claims, pools = await kube.list(RESOURCE_CLAIM, namespace), await kube.list(ACCOUNT_POOL, namespace)
    return not claims.items and not pools.items


def provider(name: str) -> JsonObject:
    definition = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": name}}
    template = {"enable": True, "definition": definition}
    return {"metadata": {"name": name}, "spec": {"template": template, "override": {}}}
