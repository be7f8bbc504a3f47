"""Verifies the states that events report: half a minute later, one call asks EC2 about up to 200 instances.

The label gets an event's state before this check, because the label only makes the AWS provider's controllers look at
the instance. But events may be late, doubled or forged. A check by each instance's own workflow would cost more than
the event itself (measured). If a worker dies or a query fails, the sweep makes up for lost checks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from temporalio.client import Client
from temporalio.service import RPCError

from activities.aws.instances import MOST_AT_ONCE, describe
from activities.instances import metrics
from activities.instances.aws_queries import ServedPlaces
from domain.instances.actions import Answer
from domain.instances.event_handover import ANSWERED
from domain.instances.event_record import ASK_AFTER
from domain.instances.event_verification import Facts, Question
from domain.instances.events import InstanceState
from domain.instances.workflow_ids import InstanceKey
from engine.errors import ApiError
from engine.temporal import signal_with_start

# Seconds. Checks that become due within this time share a call.
GATHERED = 2.0
MOST_REMEMBERED = 100_000

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Expected:
    state: InstanceState
    written_at: datetime
    noted: float
    due: float

    def moment(self) -> datetime:
        return self.written_at + timedelta(seconds=time.monotonic() - self.noted)


class Checks:
    """The scheduled checks of states. At the end of the `async with` block they are cancelled."""

    def __init__(
        self, served: ServedPlaces, client: Client, after: timedelta = ASK_AFTER, *, cluster: str = ""
    ) -> None:
        self._served = served
        self._client = client
        self._cluster = cluster
        self._after = after.total_seconds()
        self._expected: dict[InstanceKey, Expected] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Checks:
        self._task = asyncio.create_task(self._run(), name="checks of instances")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()

    def expect(self, key: InstanceKey, state: InstanceState, at: datetime) -> None:
        """Check later that EC2 reports the state. A further change of the instance replaces the check."""
        noted = time.monotonic()
        self._expected.pop(key, None)
        if len(self._expected) < MOST_REMEMBERED:
            self._expected[key] = Expected(state, at, noted, noted + self._after)
        self._news.set()

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._expected:
                first = next(iter(self._expected.values()))
                await asyncio.sleep(max(0.0, first.due - time.monotonic()) + GATHERED)
                due = self._due()
                for where, expected in due.items():
                    await self._look(where, expected)

    def _due(self) -> dict[tuple[str, str], dict[InstanceKey, Expected]]:
        now = time.monotonic()
        found: defaultdict[tuple[str, str], dict[InstanceKey, Expected]] = defaultdict(dict)
        for key, expected in list(self._expected.items()):
            if expected.due > now:
                break  # the checks are in the order in which they become due
            found[key.account, key.region][key] = self._expected.pop(key)
        return found

    async def _look(self, where: tuple[str, str], expected: Mapping[InstanceKey, Expected]) -> None:
        keys = list(expected)
        for first in range(0, len(keys), MOST_AT_ONCE):
            some = keys[first : first + MOST_AT_ONCE]
            ids = [key.instance_id for key in some]
            try:
                caller = self._served.caller(*where)
                moment = expected[some[0]].moment()
                found = await asyncio.to_thread(describe, caller, where[1], ids, (Question.INSTANCE,), moment)
                for key in some:
                    await self._compare(key, expected[key], found[key.instance_id])
            except (ApiError, RPCError) as error:
                log.warning("%d instances in %s could not be checked: %s", len(some), "/".join(where), error)
            except Exception:
                log.exception("%d instances in %s could not be checked", len(some), "/".join(where))

    async def _compare(self, key: InstanceKey, expected: Expected, facts: Facts) -> None:
        gone = not facts.found and expected.state.final
        if key in self._expected or gone or facts.state is expected.state:
            return
        metrics.RESYNC.labels(facts.state.value if facts.state else "absent").inc()
        await signal_with_start(self._client, key.lifecycle_in(self._cluster), ANSWERED, Answer(facts=facts))
