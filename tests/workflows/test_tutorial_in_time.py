"""The lifecycle of docs/adding-a-lifecycle.md on Temporal's time-skipping server: it shows its text, until its moment.

The package is built from the page; its activities run on an API server in memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tutorial
from documented import ROOT

LIVES = """
import asyncio, os, sys
from datetime import timedelta
from lifecycles import server_binary
from memory_kube import MemoryKube
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from perdure_greeting import GREETING
from perdure_greeting.activities import Greetings
from activities.kube import KubeActivities
from domain.carried_memory import Carry
from domain.identity import Key
from engine.errors import Absent
from engine.kube import CONFIG_MAP
from engine.settings import Settings
from engine.temporal_namespace import SEARCH_ATTRIBUTES
from workers.activity_interceptor import Boundary
from workers.registry import workflows_of


async def until(holds, what):
    for _ in range(1200):
        if await holds():
            return
        await asyncio.sleep(0.05)
    sys.exit(f"not within a minute: {what}")


async def live(env):
    kube, client = MemoryKube(), env.client
    await client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(namespace=client.namespace, search_attributes=SEARCH_ATTRIBUTES)
    )
    end = (await env.get_current_time() + timedelta(hours=1)).isoformat()
    made = await kube.create(
        GREETING, {"metadata": {"name": "hello"}, "spec": {"text": "good morning", "until": end}}, "default"
    )
    key = Key(kind="Greeting", namespace="default", name="hello", uid=made["metadata"]["uid"])

    async def phase():
        return (await kube.get(GREETING, "default", "hello")).get("status", {}).get("phase")

    async def shown():
        try:
            return (await kube.get(CONFIG_MAP, "default", "hello"))["data"]["text"]
        except Absent:
            return None

    async def is_shown():
        return (await phase(), await shown()) == ("Shown", "good morning")

    async def is_over():
        return (await phase(), await shown()) == ("Over", None)

    greetings = Greetings(kube, Settings())
    played = [greetings.observe, greetings.show, *KubeActivities(kube, client).all()]
    async with (
        Worker(
            client,
            task_queue="greetings",
            workflows=workflows_of("greetings"),
            activities=played,
            interceptors=[Boundary()],
        ),
    ):
        handle = await client.start_workflow("Greeting", Carry(key=key), id=key.workflow_id, task_queue="greetings")
        await until(is_shown, "the text is shown")
        await kube.delete(CONFIG_MAP, "default", "hello")
        await handle.signal("wake")
        await until(is_shown, "it is shown again")
        await env.sleep(timedelta(hours=2))
        await until(is_over, "its time is over")
        await kube.delete(GREETING, "default", "hello")
        await handle.signal("wake")
        await handle.result()


async def main():
    env = await WorkflowEnvironment.start_time_skipping(
        data_converter=pydantic_data_converter,
        test_server_existing_path=server_binary(),
        test_server_startup_timeout=timedelta(seconds=30),
    )
    async with env:
        await live(env)


asyncio.run(main())
os._exit(0)  # Temporal's Rust core and the end of an interpreter do not go well together
"""


def test_the_tutorials_greeting_is_restored_when_lost_and_ends_on_time(tmp_path: Path) -> None:
    paths = (tutorial.build(tmp_path), ROOT / "tests" / "decisions", ROOT / "tests" / "workflows")
    ran = subprocess.run(
        [sys.executable, "-c", LIVES],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
