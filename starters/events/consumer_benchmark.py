"""Benchmarks the consumer on a queue in memory: the CPU time of parsing, index look-ups and acknowledging.

`python -m starters.events.consumer_benchmark` prints JSON; `perdure bench instances` runs it. The queue keeps SQS's
contract (visibility, receive counts, dead letters), so tests use it as well.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import itertools
import json
import resource
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from domain.instances import constants as c
from domain.instances.event_handover import Outcome, Taken
from domain.instances.events import InstanceEvent, InstanceState
from domain.instances.machine_pool_labels import GroupRecord
from domain.instances.message_unwrapping import Message
from domain.instances.workflow_ids import GroupKey, InstanceKey
from domain.model import Model
from engine.errors import ApiError
from engine.kube.json import JsonObject
from starters.events.consumer import Consumer
from starters.events.dispatcher import Dispatcher
from starters.events.machine_index import Index, machine
from starters.events.sqs_queues import Receipt, TextAttributes

ACCOUNT, REGION = "123456789012", "eu-central-1"


class MemoryQueue:
    def __init__(
        self, *, visibility: timedelta = timedelta(seconds=60), wait: timedelta = timedelta(seconds=1)
    ) -> None:
        self.dead: list[tuple[str, TextAttributes]] = []  # dead letters: body and message attributes
        self.refuse: ApiError | None = None  # raised by every call while it is set
        self.deleted = self.received = self.hidden_anew = 0
        self._visibility = visibility.total_seconds()
        self._wait = wait.total_seconds()
        self._serial = itertools.count(1)
        self._bodies: dict[str, tuple[str, datetime]] = {}
        self._receives: dict[str, int] = {}
        self._visible: deque[str] = deque()
        self._hidden: dict[str, float] = {}
        self._appearing: list[tuple[float, str]] = []
        self._changed = asyncio.Event()

    @property
    def name(self) -> str:
        return f"{ACCOUNT}/{REGION}/memory"

    def __len__(self) -> int:
        return len(self._bodies)

    def put(self, body: str) -> None:
        id_ = f"message-{next(self._serial)}"
        self._bodies[id_] = (body, datetime.now(UTC))
        self._visible.append(id_)
        self._changed.set()

    def receives(self) -> dict[str, int]:
        return {id_: count for id_, count in self._receives.items() if id_ in self._bodies}

    @property
    def visible(self) -> int:
        self._surface()
        return len(self._visible)

    def show_all(self) -> None:
        self._appearing = [(0.0, id_) for id_ in self._hidden]
        self._hidden = dict.fromkeys(self._hidden, 0.0)
        self._changed.set()

    async def receive(self, most: int) -> list[Message]:
        deadline = time.monotonic() + self._wait
        while True:
            self._refuse()
            self._surface()
            if self._visible or time.monotonic() >= deadline:
                break
            await self._change(deadline)
        taken = [self._taken(self._visible.popleft()) for _ in range(min(most, len(self._visible)))]
        await asyncio.sleep(0)
        return taken

    async def delete(self, receipts: Sequence[Receipt]) -> list[Receipt]:
        self._refuse()
        for receipt in receipts:
            id_, _, number = receipt.partition("#")
            if id_ in self._bodies and self._receives[id_] == int(number):
                del self._bodies[id_]
                if self._hidden.pop(id_, None) is None:
                    self._visible.remove(id_)
                self.deleted += 1
        return []

    async def hide(self, entries: Sequence[tuple[Receipt, timedelta]]) -> list[Receipt]:
        self._refuse()
        for receipt, duration in entries:
            id_, _, number = receipt.partition("#")
            if id_ in self._bodies and self._receives[id_] == int(number):
                self.hidden_anew += duration.total_seconds() == self._visibility
                self._hide(id_, duration.total_seconds())
        self._changed.set()
        return []

    async def bury(self, body: str, attributes: TextAttributes) -> None:
        self._refuse()
        self.dead.append((body, attributes))

    def _refuse(self) -> None:
        if self.refuse is not None:
            raise self.refuse

    def _taken(self, id_: str) -> Message:
        body, sent = self._bodies[id_]
        self._receives[id_] = self._receives.get(id_, 0) + 1
        self.received += 1
        self._hide(id_, self._visibility)
        return Message.model_construct(
            body=body,
            message_id=id_,
            sent_at=sent,
            received_at=datetime.now(UTC),
            receives=self._receives[id_],
            receipt_handle=f"{id_}#{self._receives[id_]}",
            account=ACCOUNT,
            region=REGION,
        )

    def _hide(self, id_: str, seconds: float) -> None:
        self._hidden[id_] = time.monotonic() + seconds
        heapq.heappush(self._appearing, (self._hidden[id_], id_))

    def _surface(self) -> None:
        while self._appearing and self._appearing[0][0] <= time.monotonic():
            at, id_ = heapq.heappop(self._appearing)
            if self._hidden.get(id_) == at and id_ in self._bodies:
                del self._hidden[id_]
                self._visible.append(id_)

    async def _change(self, deadline: float) -> None:
        self._changed.clear()
        until = min([deadline, *(at for at, _ in self._appearing[:1])])
        try:
            async with asyncio.timeout(max(0.001, until - time.monotonic())):
                await self._changed.wait()
        except TimeoutError:
            return


# What is sent.


def instance_name(number: int) -> str:
    return f"i-{number:017x}"


def aws_machine(number: int) -> JsonObject:
    id_ = instance_name(number)
    conditions = ("Ready", "InstanceReady", "SecurityGroupsReady")
    return {
        "apiVersion": f"{c.INFRASTRUCTURE_GROUP}/{c.INFRASTRUCTURE_VERSION}",
        "kind": "AWSMachine",
        "metadata": {
            "namespace": f"cluster-{number % 100}",
            "name": f"worker-{number}",
            "uid": f"uid-{number}",
            "resourceVersion": str(number + 1),
            "labels": {c.CLUSTER_LABEL: f"cluster-{number % 100}", c.STATE_LABEL: "running"},
        },
        "spec": {"providerID": f"aws:///{REGION}a/{id_}", "instanceID": id_, "instanceType": "m7i.large"},
        "status": {
            "ready": True,
            "instanceState": "running",
            "conditions": [{"type": each, "status": "True"} for each in conditions],
        },
    }


def envelope(source: str, kind: str, event_id: str, detail: JsonObject, at: datetime) -> str:
    return json.dumps(
        {
            "version": "0",
            "id": event_id,
            "detail-type": kind,
            "source": source,
            "account": ACCOUNT,
            "time": f"{at:%Y-%m-%dT%H:%M:%SZ}",
            "region": REGION,
            "resources": [],
            "detail": detail,
        }
    )


def state_change(instance_id: str, state: InstanceState, event_id: str, at: datetime) -> str:
    return envelope(c.EC2_SOURCE, c.STATE_CHANGE, event_id, {"instance-id": instance_id, "state": state.value}, at)


def spot_warning(instance_id: str, event_id: str, at: datetime) -> str:
    detail: JsonObject = {"instance-id": instance_id, "instance-action": "terminate"}
    return envelope(c.EC2_SOURCE, c.SPOT_WARNING, event_id, detail, at)


def maintenance(instance_id: str, event_id: str, at: datetime) -> str:
    start = at + timedelta(days=14)
    detail: JsonObject = {
        "eventArn": f"arn:aws:health:{REGION}::event/EC2/{event_id}",
        "service": "EC2",
        "eventTypeCode": "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED",
        "eventTypeCategory": "scheduledChange",
        "eventScopeCode": "ACCOUNT_SPECIFIC",
        "communicationId": f"{event_id}-1",
        "startTime": f"{start:%a, %d %b %Y %H:%M:%S} GMT",
        "statusCode": "upcoming",
        "eventRegion": REGION,
        "affectedEntities": [{"entityValue": instance_id, "status": "PENDING"}],
        "affectedAccount": ACCOUNT,
        "page": "1",
        "totalPages": "1",
    }
    return envelope(c.HEALTH_SOURCE, c.HEALTH_EVENT, event_id, detail, at)


def mixture(instances: int) -> Iterator[str]:
    """An endless sequence of messages: states, Spot notices and maintenance in equal parts."""
    for number in itertools.count():
        name, id_, now = instance_name(number % instances), f"event-{number}", datetime.now(UTC)
        if number % 3 == 0:
            yield state_change(name, InstanceState.RUNNING, id_, now)
        elif number % 3 == 1:
            yield spot_warning(name, id_, now)
        else:
            yield maintenance(name, id_, now)


# What is measured.


class Rehearsed(Model):
    """The benchmark's result. Times are in milliseconds, except `look_up_us` in microseconds; memory is in MiB."""

    events: int
    per_second: float
    cpu_ms_per_event: float
    paced_per_second: float
    paced_median_ms: float
    paced_p99_ms: float
    machines: int
    index_mib: float
    process_mib: float
    look_up_us: float


async def _taken(key: InstanceKey, events: Sequence[InstanceEvent], receives: int) -> Taken:
    return Taken(outcomes={event.key: Outcome.APPLIED for event in events})


async def _woken(group: GroupKey, ended: GroupRecord) -> None:
    return None


class _Timed(MemoryQueue):
    def __init__(self) -> None:
        super().__init__()
        self.handled_ms: list[float] = []
        self._taken_at: dict[str, float] = {}

    async def receive(self, most: int) -> list[Message]:
        found = await super().receive(most)
        now = time.perf_counter()
        for each in found:
            self._taken_at[each.receipt_handle] = now
        return found

    async def delete(self, receipts: Sequence[Receipt]) -> list[Receipt]:
        now = time.perf_counter()
        self.handled_ms += [1000 * (now - self._taken_at.pop(each)) for each in receipts]
        return await super().delete(receipts)


async def rehearse(machines: int, events: int, rate: float) -> Rehearsed:
    before = _resident_mib()
    index = _filled(machines)
    grown = _resident_mib() - before
    look_up = _look_up_us(index, machines)
    bodies = mixture(machines)
    full = [next(bodies) for _ in range(events)]
    queue, cpu, began = _Timed(), time.process_time(), time.perf_counter()
    for body in full:
        queue.put(body)
    await _consumed(queue, index, events)
    spent, seconds = time.process_time() - cpu, time.perf_counter() - began
    paced = _Timed()
    took = await _paced(paced, index, bodies, events, rate)
    ordered = sorted(paced.handled_ms)
    return Rehearsed(
        events=events,
        per_second=round(events / seconds),
        cpu_ms_per_event=round(1000 * spent / events, 3),
        paced_per_second=round(events / took),
        paced_median_ms=round(ordered[len(ordered) // 2], 2),
        paced_p99_ms=round(ordered[int(len(ordered) * 0.99)], 2),
        machines=machines,
        index_mib=round(grown, 1),
        process_mib=round(_resident_mib(), 1),
        look_up_us=round(look_up, 2),
    )


def _filled(machines: int) -> Index:
    index = Index()
    for number in range(machines):
        holder = machine(json.loads(json.dumps(aws_machine(number))))
        index.machines[holder.name] = holder
    return index


def _look_up_us(index: Index, machines: int) -> float:
    names = [instance_name(number * 7919 % (2 * machines)) for number in range(100_000)]
    began = time.perf_counter()
    for name in names:
        index.machines.find("instance", name)
    return 1e6 * (time.perf_counter() - began) / len(names)


async def _consumed(queue: MemoryQueue, index: Index, events: int) -> None:
    async with _Consuming(queue, index):
        await _until(lambda: queue.deleted >= events)


async def _paced(queue: MemoryQueue, index: Index, bodies: Iterator[str], events: int, rate: float) -> float:
    async with _Consuming(queue, index):
        began, sent = time.perf_counter(), 0
        while sent < events:
            due = min(events, int((time.perf_counter() - began) * rate) + 1)
            while sent < due:
                queue.put(next(bodies))
                sent += 1
            await asyncio.sleep(0.002)
        await _until(lambda: queue.deleted >= events)
        return time.perf_counter() - began


class _Consuming:
    def __init__(self, queue: MemoryQueue, index: Index) -> None:
        dispatcher = Dispatcher(index, {(ACCOUNT, REGION)}, _taken, _woken)
        self._stop = asyncio.Event()
        self._consumer = Consumer(queue, dispatcher)

    async def __aenter__(self) -> None:
        self._running = asyncio.create_task(self._consumer.run(self._stop))

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await self._running


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - the queue sends no notification
        await asyncio.sleep(0.001)


def _resident_mib() -> float:
    with open("/proc/self/statm") as status:
        return int(status.read().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    from engine.garbage_collection import collect_seldom

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--machines", type=int, default=10_000)
    options.add_argument("--events", type=int, default=20_000)
    options.add_argument("--rate", type=float, default=2_000.0)
    chosen = options.parse_args()
    collect_seldom()
    print(asyncio.run(rehearse(chosen.machines, chosen.events, chosen.rate)).model_dump_json())


if __name__ == "__main__":
    main()
