"""Instances are served where the clusters of the AWS provider live: real API server, Temporal and SQS."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import boto3
import pytest
from botocore.exceptions import ClientError
from product import perdure, process
from waiting import eventually

from domain.instances import AWS_CLUSTER
from engine.kube import KubeApi
from localcloud.aws.contract import PAYER_ACCOUNT_ID
from localcloud.deployment import Deployment
from localcloud.seed import seed_cluster_api


async def cluster(kube: KubeApi, namespace: str, name: str, region: str) -> None:
    await kube.create(AWS_CLUSTER, {"metadata": {"name": name}, "spec": {"region": region}}, namespace)


async def test_instances_are_served_where_the_clusters_live_and_where_new_ones_do(
    deployment: Deployment,
    kube: KubeApi,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await seed_cluster_api(kube)
    queue, env = f"events-{uuid4().hex[:8]}", deployment.env()
    setting = {"PERDURE_INSTANCES_QUEUES": f"clusters/{queue}"}

    async def exists(region: str) -> bool:
        sqs = boto3.client("sqs", region_name=region, endpoint_url=env["AWS_ENDPOINT_URL"])
        try:
            await asyncio.to_thread(sqs.get_queue_url, QueueName=queue)
        except ClientError:
            return False
        return True

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, env[name])
    await cluster(kube, namespace, "first", "eu-west-1")
    async with AsyncExitStack() as stack:
        worker = await stack.enter_async_context(process(deployment, "worker", "--only", "instances", **setting))
        watcher = await stack.enter_async_context(process(deployment, "watch", **setting))
        consumer = await stack.enter_async_context(process(deployment, "events", **setting))
        await eventually(lambda: exists("eu-west-1"), "the queue of the cluster's region is made")
        assert not await exists("ap-south-1")
        await cluster(kube, namespace, "second", "ap-south-1")
        async with asyncio.timeout(120):
            codes = [await each.wait() for each in (worker, watcher, consumer)]
        assert codes == [0, 0, 0], "each ends by itself, to be started again"
    async with (
        process(deployment, "worker", "--only", "instances", **setting),
        process(deployment, "watch", **setting),
    ):
        await eventually(lambda: exists("ap-south-1"), "the queue of the new cluster's region is made")

    monkeypatch.setenv("PERDURE_INSTANCES_QUEUES", setting["PERDURE_INSTANCES_QUEUES"])
    written = await asyncio.to_thread(perdure, deployment, "install", "iam", "--output", str(tmp_path))
    assert written.returncode == 0, written.stderr
    document = json.loads((tmp_path / "instances.json").read_text())
    (received,) = (each["Resource"] for each in document["Statement"] if each["Sid"] == "Consume")
    for region in ("eu-west-1", "ap-south-1"):
        assert f"arn:aws:sqs:{region}:{PAYER_ACCOUNT_ID}:{queue}" in received
    listed = await asyncio.to_thread(perdure, deployment, "events", "list")
    assert listed.returncode == 0, listed.stderr
