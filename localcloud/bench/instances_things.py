"""What instance benchmarks share: the emulator's instances, AWSMachines, messages, observed labels."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import boto3

from domain.built_in_kinds import NAMESPACE
from domain.instances import AWS_MACHINE, MACHINE
from domain.instances import constants as c
from domain.instances.event_topology import Queue, topology
from domain.instances.events import InstanceState
from domain.instances.served_queues import Place
from engine.errors import ApiError
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject, mapping, sequence, text
from localcloud import environment
from localcloud.aws.contract import PAYER_ACCOUNT_ID
from localcloud.aws.events_contract import EventFaultKind
from localcloud.bench.laboratory import PATIENCE_SECONDS, Laboratory, laboratory
from localcloud.instance_groups import image_of
from localcloud.services import INSTANCES_QUEUES, REGION
from localcloud.state import Cloud

PLACE = Place(account=PAYER_ACCOUNT_ID, region=REGION)
CLUSTER = "bench"
_AT_ONCE = 16
_MACHINE_FINALIZER = "machine.cluster.x-k8s.io"
_AWS_MACHINE_FINALIZER = "awsmachine.infrastructure.cluster.x-k8s.io"
_MOST_INSTANCES = 100
_BATCH = 10


class Labels:
    def __init__(self, kube: KubeApi) -> None:
        self._kube = kube
        self._first: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        self.now: dict[str, dict[str, str]] = {}

    def forget(self) -> None:
        self._first.clear()

    def first(self, instance: str, label: str, value: str) -> float | None:
        return self._first[instance, label].get(value)

    def value(self, instance: str, label: str) -> str:
        return self.now.get(instance, {}).get(label, "")

    async def follow(self) -> None:
        while True:
            with suppress(ApiError):
                listing = await self._kube.list(AWS_MACHINE)
                for obj in listing.items:
                    self._see(obj)
                async for event in self._kube.watch(AWS_MACHINE, resource_version=listing.resource_version):
                    if event.type != "BOOKMARK":
                        self._see(event.object)
            await asyncio.sleep(0.1)

    def _see(self, obj: JsonObject) -> None:
        self.see(text(obj, "spec", "instanceID"), obj)

    def see(self, instance: str, obj: JsonObject) -> None:
        labels = {name: str(value) for name, value in mapping(obj, "metadata", "labels").items()}
        self.now[instance] = labels
        for name, value in labels.items():
            self._first[instance, name].setdefault(value, time.time())


@dataclass
class Scene:
    lab: Laboratory
    labels: Labels
    sqs: Any
    ec2: Any
    instances: list[str] = field(default_factory=list)

    def client(self, service: str) -> Any:
        return _client(service, self.lab.deployment.env())

    # Instances.

    async def make(self, count: int) -> list[str]:
        made: list[str] = []
        image = await asyncio.to_thread(image_of, self.ec2)
        while len(made) < count:
            batch = min(_MOST_INSTANCES, count - len(made))
            answer = await asyncio.to_thread(
                self.ec2.run_instances, ImageId=image, InstanceType="t3.micro", MinCount=batch, MaxCount=batch
            )
            made += [text(each, "InstanceId") for each in sequence(answer, "Instances")]
        permits = asyncio.Semaphore(_AT_ONCE)

        async def one(instance: str) -> None:
            async with permits:
                await self.adopt(instance)

        await asyncio.gather(*map(one, made))
        self.instances += made
        return made

    async def adopt(self, instance: str) -> None:
        provider_id = f"aws:///{REGION}a/{instance}"
        labels = {c.CLUSTER_LABEL: CLUSTER}
        machine = await self.lab.kube.create(
            MACHINE,
            {
                "metadata": {"name": instance, "labels": labels, "finalizers": [_MACHINE_FINALIZER]},
                "spec": {"clusterName": CLUSTER, "providerID": provider_id},
            },
            CLUSTER,
        )
        owner = {
            "apiVersion": MACHINE.api_version,
            "kind": MACHINE.name,
            "name": instance,
            "uid": text(machine, "metadata", "uid"),
        }
        await self.lab.kube.create(
            AWS_MACHINE,
            {
                "metadata": {
                    "name": instance,
                    "labels": labels,
                    "finalizers": [_AWS_MACHINE_FINALIZER],
                    "ownerReferences": [owner],
                },
                "spec": {"providerID": provider_id, "instanceID": instance},
            },
            CLUSTER,
        )

    async def stop_silently(self, instances: Sequence[str]) -> None:
        self.lab.emulator.event_fault(EventFaultKind.DROP)
        await asyncio.to_thread(self.ec2.stop_instances, InstanceIds=list(instances))
        await self.until(lambda: self._all_stopped(instances))
        self.lab.emulator.clear()

    def _all_stopped(self, instances: Sequence[str]) -> bool:
        answer = self.ec2.describe_instances(InstanceIds=list(instances))
        found = [
            each for reservation in sequence(answer, "Reservations") for each in sequence(reservation, "Instances")
        ]
        return all(text(each, "State", "Name") == "stopped" for each in found)

    # Messages.

    def url(self, name: str = PLACE.queue) -> str:
        found: str = self.sqs.get_queue_url(QueueName=name)["QueueUrl"]
        return found

    def _send(self, bodies: Sequence[str]) -> None:
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]
        answer = self.sqs.send_message_batch(QueueUrl=self.url(), Entries=entries)
        assert not answer.get("Failed"), answer

    async def send(self, bodies: Sequence[str], *, per_second: float = 0.0) -> list[float]:
        began, sent = time.monotonic(), list[float]()
        batch = max(1, min(_BATCH, int(per_second / 5))) if per_second else _BATCH
        for first in range(0, len(bodies), batch):
            if per_second:
                await asyncio.sleep(max(0.0, began + first / per_second - time.monotonic()))
            part = bodies[first : first + batch]
            sent += [time.time()] * len(part)
            await asyncio.to_thread(self._send, part)
        return sent

    def left(self, name: str = PLACE.queue) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.get_queue_attributes(QueueUrl=self.url(name), AttributeNames=names)["Attributes"]
        return sum(int(number) for number in found.values())

    async def empty(self, seconds: float = PATIENCE_SECONDS) -> float:
        return await self.until(lambda: self.left() == 0, seconds)

    async def until(self, holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> float:
        """Wait until a condition is true, and ignore its errors; returns the time at which it was true.

        Raises TimeoutError.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(Exception):  # servers are being killed
                if await asyncio.to_thread(holds):
                    return time.time()
            await asyncio.sleep(0.2)
        raise TimeoutError("it did not settle in time")

    def reasons(self) -> list[str]:
        url, found = self.url(PLACE.dead_letters), list[str]()
        while True:
            answer = self.sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=_BATCH, VisibilityTimeout=600, MessageAttributeNames=["All"]
            )
            messages = answer.get("Messages", [])
            if not messages:
                return found
            found += [text(each, "MessageAttributes", "PERDURE_REASON", "StringValue") for each in messages]


@asynccontextmanager
async def scene(**settings: str) -> AsyncIterator[Scene]:
    with environment.restored():
        os.environ.update(served(**settings))
        async with laboratory((Cloud.AWS,)) as lab, scene_in(lab) as found:
            yield found


def served(**settings: str) -> dict[str, str]:
    return {INSTANCES_QUEUES: f"{PLACE.account}/{PLACE.region}", **settings}


@asynccontextmanager
async def scene_in(lab: Laboratory) -> AsyncIterator[Scene]:
    env = lab.deployment.env()
    sqs, ec2 = (_client(name, env) for name in ("sqs", "ec2"))
    wanted = topology(PLACE.account, PLACE.region, PLACE.queue)
    for queue in (wanted.dead_letters, wanted.queue):
        _make(sqs, queue)
    await lab.kube.create(NAMESPACE, {"metadata": {"name": CLUSTER}})
    labels = Labels(lab.kube)
    following = asyncio.create_task(labels.follow())
    try:
        yield Scene(lab, labels, sqs, ec2)
    finally:
        following.cancel()


def _client(service: str, env: dict[str, str]) -> Any:
    return boto3.client(
        service,  # type: ignore[call-overload]
        region_name=REGION,
        endpoint_url=env["AWS_ENDPOINT_URL"],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
    )


def _make(sqs: Any, queue: Queue) -> None:
    try:
        sqs.get_queue_url(QueueName=queue.name)
    except sqs.exceptions.QueueDoesNotExist:
        sqs.create_queue(QueueName=queue.name, Attributes=queue.attributes)


# Message bodies.


def _envelope(source: str, kind: str, detail: JsonObject, at: datetime, id_: str) -> str:
    return json.dumps(
        {
            "version": "0",
            "id": id_ or str(uuid4()),
            "detail-type": kind,
            "source": source,
            "account": PLACE.account,
            "time": f"{at:%Y-%m-%dT%H:%M:%SZ}",
            "region": PLACE.region,
            "resources": [f"arn:aws:ec2:{PLACE.region}:{PLACE.account}:instance/{detail['instance-id']}"],
            "detail": detail,
        }
    )


def state_change(instance: str, state: InstanceState, at: datetime, id_: str = "") -> str:
    return _envelope(c.EC2_SOURCE, c.STATE_CHANGE, {"instance-id": instance, "state": state.value}, at, id_)


def spot_warning(instance: str, at: datetime, id_: str = "") -> str:
    detail: JsonObject = {"instance-id": instance, "instance-action": "terminate"}
    return _envelope(c.EC2_SOURCE, c.SPOT_WARNING, detail, at, id_)


def life(instance: str, states: Iterable[InstanceState], until: datetime) -> list[str]:
    listed = list(states)
    return [state_change(instance, s, until - timedelta(seconds=len(listed) - 1 - n)) for n, s in enumerate(listed)]


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
