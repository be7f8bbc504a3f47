"""`perdure events` on real servers: the emulator's SQS, Temporal, an API server; processes that are killed.

The workflows are stand-ins of the same contract: they record the events they receive, each once.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import boto3
import pytest
from product import perdure, process
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from waiting import eventually

from activities.aws.queue_account_roles import Places
from domain.carried_memory import Carry
from domain.instances import AWS_MACHINE
from domain.instances.constants import INSTANCE_WORKFLOW
from domain.instances.event_handover import HAND_OVER, HandOver, Outcome, Taken
from domain.instances.events import InstanceEvent, InstanceState
from domain.instances.machine_pool_labels import GroupRecord
from domain.instances.served_queues import Place
from domain.instances.workflow_ids import GroupKey, InstanceKey
from engine.kube import KubeApi
from engine.settings import Settings
from engine.temporal import connect
from localcloud.aws.contract import PAYER_ACCOUNT_ID
from localcloud.deployment import Deployment
from localcloud.seed import seed_cluster_api
from starters.events.consumer import Consumer
from starters.events.consumer_benchmark import spot_warning, state_change
from starters.events.dispatcher import Dispatcher
from starters.events.machine_index import Index, machine
from starters.events.main import CALLS_PER_QUEUE, IN_WORK, POLLERS
from starters.events.sqs_queues import SqsQueue

pytestmark = pytest.mark.integration

REGION = "us-east-1"
TASK_QUEUE = "instances"
_SERIAL = itertools.count()


@workflow.defn(name=INSTANCE_WORKFLOW)
class Recording:
    """An instance's workflow that only records."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    @workflow.run
    async def run(self, carry: Carry) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update(name=HAND_OVER)
    async def hand_over(self, given: HandOver) -> Taken:
        outcomes = {}
        for event in given.events:
            outcomes[event.key] = Outcome.DUPLICATE if event.key in self.keys else Outcome.APPLIED
            if event.key not in self.keys:
                self.keys.append(event.key)
        return Taken(outcomes=outcomes)

    @workflow.query
    def told(self) -> list[str]:
        return self.keys


class Ground:
    """A queue with its dead letters, AWSMachines, and the events that workflows received."""

    def __init__(self, deployment: Deployment, kube: KubeApi, client: Client, namespace: str) -> None:
        self.deployment = deployment
        self.place = Place(account=PAYER_ACCOUNT_ID, region=REGION, queue=f"events-{uuid4().hex[:8]}")
        self.settings = {
            "PERDURE_INSTANCES_QUEUES": str(self.place),
            "PERDURE_DRAIN": "2",
            "PERDURE_EVENTS_VISIBILITY": "5",
        }
        self._kube, self._client, self._namespace = kube, client, namespace
        env = deployment.env()
        self.sqs: Any = boto3.client(
            "sqs",
            region_name=REGION,
            endpoint_url=env["AWS_ENDPOINT_URL"],
            aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
        )

    @asynccontextmanager
    async def consumer(self) -> AsyncIterator[asyncio.subprocess.Process]:
        async with process(self.deployment, "events", **self.settings) as running:
            yield running

    async def machine(self) -> str:
        """An AWSMachine; the id of its instance."""
        instance = f"i-{uuid4().hex[:17]}"
        spec = {"instanceID": instance, "providerID": f"aws:///{REGION}a/{instance}"}
        await self._kube.create(AWS_MACHINE, {"metadata": {"name": instance}, "spec": spec}, self._namespace)
        return instance

    def make_queues(self) -> None:
        for name in (self.place.queue, self.place.dead_letters):
            self.sqs.create_queue(QueueName=name)

    def send(self, *bodies: str) -> None:
        url = self.url(self.place.queue)
        for first in range(0, len(bodies), 10):
            batch = bodies[first : first + 10]
            entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(batch)]
            assert not self.sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")

    def url(self, name: str) -> str:
        url: str = self.sqs.get_queue_url(QueueName=name)["QueueUrl"]
        return url

    def left(self, name: str = "") -> int:
        """How many messages a queue holds, in sight or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.get_queue_attributes(QueueUrl=self.url(name or self.place.queue), AttributeNames=names)
        return sum(int(number) for number in found["Attributes"].values())

    async def received_events(self, instance: str, account: str = PAYER_ACCOUNT_ID) -> list[str]:
        """The events that an instance's workflow received."""
        key = InstanceKey(account=account, region=REGION, instance_id=instance)
        reported: list[str] = await self._client.get_workflow_handle(key.workflow_id).query(
            "told", result_type=list[str]
        )
        return reported


@pytest.fixture
def environment(deployment: Deployment) -> Iterator[None]:
    """What this process needs to find Temporal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEMPORAL_ADDRESS", deployment.env()["TEMPORAL_ADDRESS"])
        yield


@pytest.fixture
async def ground(environment: None, deployment: Deployment, kube: KubeApi, namespace: str) -> AsyncIterator[Ground]:
    await seed_cluster_api(kube)
    client = await connect(Settings(), "tests")
    async with Worker(
        client, task_queue=TASK_QUEUE, workflows=[Recording], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        yield Ground(deployment, kube, client, namespace)
        async for left in client.list_workflows(f"WorkflowType='{INSTANCE_WORKFLOW}' AND ExecutionStatus='Running'"):
            await client.get_workflow_handle(left.id).terminate()


def event(instance: str, state: InstanceState, id_: str = "", account: str = PAYER_ACCOUNT_ID) -> str:
    """A change of state, as EventBridge sends it."""
    body = json.loads(state_change(instance, state, id_ or f"event-{next(_SERIAL)}", datetime.now(UTC)))
    return json.dumps(body | {"account": account, "region": REGION})


async def test_the_events_of_accounts_that_share_a_queue_are_delivered(ground: Ground) -> None:
    other = "9" * 12
    sharing = f"{other}/{REGION}={ground.place}"
    ground.settings["PERDURE_INSTANCES_QUEUES"] += f",{sharing}"
    instance, own = await ground.machine(), await ground.machine()
    ground.make_queues()
    ground.send(
        event(instance, InstanceState.RUNNING, "shared", other),
        event(own, InstanceState.RUNNING, "own"),
        event(own, InstanceState.STOPPED, "foreign", "8" * 12),
    )
    async with ground.consumer():
        await eventually(lambda: not ground.left(), "all are delivered or deleted")
    assert await ground.received_events(instance, other) == [f"shared/{instance}"]
    assert await ground.received_events(own) == [f"own/{own}"]


async def test_every_message_ends_where_it_belongs_though_a_consumer_is_killed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    instances = [await ground.machine() for _ in range(4)]
    sent = {each: [f"{each}-{number}" for number in range(5)] for each in instances}
    good = [event(each, InstanceState.RUNNING, id_) for each, ids in sent.items() for id_ in ids]
    foreign = [event("i-stranger", InstanceState.RUNNING), event(instances[0], InstanceState.STOPPED, "f", "9" * 12)]
    early = [*good[::2], *foreign, "no event"]
    async with ground.consumer() as first:
        ground.make_queues()  # only now
        ground.send(*early)
        await eventually(lambda: ground.left() < len(early), "it has begun")
        first.kill()
        await first.wait()
    ground.send(*good)
    async with ground.consumer():
        await eventually(lambda: ground.left() == 0, "all messages are done with")
    for instance, ids in sent.items():
        assert sorted(await ground.received_events(instance)) == sorted(f"{id_}/{instance}" for id_ in ids)
    for name, value in (ground.deployment.program_env() | ground.settings).items():
        monkeypatch.setenv(name, value)
    await _resend_dead_letter(ground)


async def test_an_urgent_event_on_sqs_is_delivered_before_five_thousand_others(
    deployment: Deployment, kube: KubeApi, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each workflow takes a second, 32 run at once: in order, the notice would arrive after 156 seconds."""
    waiting, urgent, received = 5000, f"i-{'f' * 17}", asyncio.Event()
    for name, value in deployment.env().items():
        monkeypatch.setenv(name, value)
    ground = Ground(deployment, kube, None, namespace)  # type: ignore[arg-type]
    ground.make_queues()
    names = [f"i-{number:017x}" for number in range(waiting)]
    notice = json.loads(spot_warning(urgent, "spot", datetime.now(UTC))) | {"account": PAYER_ACCOUNT_ID}
    bodies = [event(each, InstanceState.RUNNING) for each in names]
    await asyncio.to_thread(ground.send, *bodies, json.dumps(notice | {"region": REGION}))
    index = Index()
    for each in (*names, urgent):
        spec = {"instanceID": each, "providerID": f"aws:///{REGION}a/{each}"}
        owner = machine({"metadata": {"name": each}, "spec": spec})
        index.machines[owner.name] = owner

    async def hand_over(key: InstanceKey, events: Sequence[InstanceEvent], receives: int) -> Taken:
        if key.instance_id == urgent:
            received.set()
        await asyncio.sleep(1)
        return Taken(outcomes={each.key: Outcome.APPLIED for each in events})

    async def wake(group: GroupKey, ended: GroupRecord) -> None:
        raise AssertionError(f"no event names {group}")

    settings, stop = Settings(), asyncio.Event()
    with ThreadPoolExecutor(POLLERS + CALLS_PER_QUEUE) as threads:
        caller = Places(connections=10, observing=False).caller(ground.place)
        queue = SqsQueue(
            ground.place, caller, threads, wait=timedelta(seconds=1), visibility=settings.events_visibility
        )
        dispatcher = Dispatcher(index, {ground.place.where}, hand_over, wake)
        consumer = Consumer(queue, dispatcher, pollers=POLLERS, most=IN_WORK, drain=timedelta(0))
        running = asyncio.create_task(consumer.run(stop))
        try:
            async with asyncio.timeout(150):
                await received.wait()
        finally:
            stop.set()
            await running
            await dispatcher.close()


async def _resend_dead_letter(ground: Ground) -> None:
    """The dead letter is listed, shown, and sent again."""
    listed = await asyncio.to_thread(perdure, None, "events", "list", "-o", "json")
    assert listed.returncode == 0, listed.stderr
    found: list[dict[str, Any]] = json.loads(listed.stdout)
    assert {(each["body"], each["reason"], each["told"]) for each in found} == {
        ("no event", "not JSON", "unreadable: not JSON")
    }
    shown = await asyncio.to_thread(perdure, None, "events", "show", found[0]["message_id"][:12])
    assert shown.stdout.rstrip().endswith("no event"), shown.stderr
    again = await asyncio.to_thread(perdure, None, "events", "redrive", "--all")
    assert again.returncode == 0, again.stderr
    assert (ground.left(), ground.left(ground.place.dead_letters)) == (len(found), 0)
