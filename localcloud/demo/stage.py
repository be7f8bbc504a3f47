"""What a demo can see and do: apply files, wait until objects have come so far, tell the spectator.

The stage follows the objects by watches, so no state is missed however briefly it lasts, and asks Temporal once a
second what each lifecycle waits for. A scenario is a function that plays on it:

    apply -> until(...) -> do something -> until(...) -> ...

`until` ends at the first of: its condition holds; an object has failed (`Scenario.failure`); the time of the whole demo
is over. The last two raise `UnsettledError` with the reason. What the demo writes has a field manager of its own,
since the watcher takes writes of the product's field manager for echoes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

import yaml
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError

from domain.identity import Key, Kind, all_kinds
from domain.resource import parse_timestamp
from domain.why import Why
from engine.errors import Absent, Conflict, Unavailable
from engine.kube.api import KubeApi
from engine.kube.errors import Expired
from engine.kube.json import JsonObject, text
from engine.kube.kinds import BUILT_IN
from engine.temporal import OP_DEADLINE, OP_PHASE, OP_WAITS_FOR
from localcloud.aws.control import Emulator
from localcloud.deployment import Deployment
from localcloud.state import Cloud

FIELD_MANAGER = "perdure-demo"

# How often Temporal is asked; its visibility on SQLite costs some milliseconds a query.
LIFECYCLES_SECONDS = 1.0
WATCH_AGAIN_SECONDS = 1.0
ASKED_WHY_SECONDS = 5


class UnsettledError(Exception):
    """The demo did not end well; the message says which object, and why."""


@dataclass(frozen=True)
class Waiting:
    """What Temporal says of one lifecycle."""

    phase: str = ""
    waits_for: tuple[str, ...] = ()
    until: datetime | None = None


@dataclass(frozen=True)
class Row:
    """One lifecycle as the spectator sees it; times are UTC."""

    key: Key
    phase: str
    waits_for: tuple[str, ...] = ()
    until: datetime | None = None
    created: datetime | None = None


class Spectator(Protocol):
    """Who is shown what happens."""

    def tell(self, line: str) -> None:
        """A line of the story."""

    def show(self, rows: tuple[Row, ...]) -> None:
        """The lifecycles as they are now."""


@dataclass
class Stage:
    """The deployment as a scenario plays on it."""

    kube: KubeApi
    temporal: Client
    deployment: Deployment
    emulator: Emulator
    manifests: Path
    spectator: Spectator
    failure: Callable[[JsonObject], str]
    objects: dict[str, JsonObject] = field(default_factory=dict)
    """By workflow id."""
    waiting: dict[str, Waiting] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    awaited: str = ""
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    # What a scenario says.

    def tell(self, line: str) -> None:
        """A line of the story."""
        self.spectator.tell(line)

    async def apply(self, file: str) -> None:
        """Create the objects of a manifest, or change those that exist, as `kubectl apply -f` would."""
        for document in yaml.safe_load_all((self.manifests / file).read_text()):
            if document:
                await self._apply(document)

    async def delete(self, kind: Kind, namespace: str, name: str) -> None:
        """Ask for an object's deletion; one that is not there is as good as deleted."""
        try:
            await self.kube.delete(kind, namespace, name)
        except Absent:
            return

    async def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds on the objects.

        Raises:
            UnsettledError: an object has failed.
        """
        self.awaited = what
        async with self._changed:
            await self._changed.wait_for(lambda: self._failed() != "" or condition())
        if reason := self._failed():
            raise UnsettledError(reason)
        self.awaited = ""

    def of(self, kind: Kind, namespace: str = "") -> list[JsonObject]:
        """The objects of a kind, by name."""
        found = (
            (text(obj, "metadata", "name"), obj)
            for id_, obj in self.objects.items()
            if id_.startswith(f"{kind.name}/") and namespace in ("", text(obj, "metadata", "namespace"))
        )
        return [obj for _, obj in sorted(found, key=lambda pair: pair[0])]

    def one(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """One object, None if it does not exist."""
        return next((obj for obj in self.of(kind, namespace) if text(obj, "metadata", "name") == name), None)

    # What the command asks.

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every lifecycle, in the order of kinds and names."""
        return tuple(self._row(id_, obj) for id_, obj in sorted(self.objects.items()))

    async def reason(self) -> str:
        """Why it is not settled: what was waited for, and what each unsettled lifecycle says of itself."""
        asked = await asyncio.gather(*(self._why(id_) for id_ in self.objects))
        lines = [why for why in asked if why]
        return "\n  ".join([f"waited for: {self.awaited or 'the first step'}", *lines])

    # How it knows.

    async def follow(self, kind: Kind) -> None:
        """Keep the objects of a kind, by list and watch, for ever."""
        while True:
            try:
                listing = await self.kube.list(kind)
                await self._replace(kind, listing.items)
                async for event in self.kube.watch(kind, resource_version=listing.resource_version):
                    await self._learn(kind, event.type, event.object)
            except (Expired, Unavailable, Absent):
                await asyncio.sleep(WATCH_AGAIN_SECONDS)

    async def follow_lifecycles(self) -> None:
        """Keep what Temporal says of them, for ever."""
        while True:
            try:
                found = [row async for row in self.temporal.list_workflows("ExecutionStatus = 'Running'")]
                self.waiting = {row.id: _waiting(row) for row in found}
            except RPCError:
                pass  # asked again at once; the table shows what was known
            self.spectator.show(self.rows)
            await asyncio.sleep(LIFECYCLES_SECONDS)

    async def _replace(self, kind: Kind, items: Iterable[JsonObject]) -> None:
        async with self._changed:
            kept = {id_: obj for id_, obj in self.objects.items() if not id_.startswith(f"{kind.name}/")}
            self.objects = kept | {_id(kind, obj): obj for obj in items}
            self.listed.add(kind.name)
            self._announce()

    async def _learn(self, kind: Kind, event: str, obj: JsonObject) -> None:
        if event == "BOOKMARK":
            return
        async with self._changed:
            if event == "DELETED":
                self.objects.pop(_id(kind, obj), None)
            else:
                self.objects[_id(kind, obj)] = obj
            self._announce()

    def _announce(self) -> None:
        self.spectator.show(self.rows)
        self._changed.notify_all()

    def _failed(self) -> str:
        reasons = (self.failure(obj) for obj in self.objects.values())
        return next(filter(None, reasons), "")

    def _row(self, id_: str, obj: JsonObject) -> Row:
        known = self.waiting.get(id_, Waiting())
        deleting = "Deleting" if text(obj, "metadata", "deletionTimestamp") else ""
        phase = deleting or text(obj, "status", "state") or known.phase or "New"
        if known.phase != phase:
            known = Waiting()  # Temporal was asked before the object moved on
        return Row(
            key=_key(text(obj, "kind") or id_.split("/", maxsplit=1)[0], obj),
            phase=phase,
            waits_for=known.waits_for,
            until=known.until,
            created=parse_timestamp(text(obj, "metadata", "creationTimestamp")),
        )

    async def _apply(self, document: JsonObject) -> None:
        kind = _kind_of(document)
        namespace, name = text(document, "metadata", "namespace"), text(document, "metadata", "name")
        try:
            await self.kube.create(kind, document, namespace)
        except Conflict:
            await self.kube.patch(kind, namespace, name, document, field_manager=FIELD_MANAGER)

    async def _why(self, id_: str) -> str:
        """What a lifecycle that has not settled says, empty for one that has."""
        handle = self.temporal.get_workflow_handle(id_)
        try:
            async with asyncio.timeout(ASKED_WHY_SECONDS):
                answer = await handle.query("why", result_type=Why)
        except (RPCError, TimeoutError):
            return f"{id_}: does not answer"
        if answer.outcome == "settled":
            return ""
        hindrances = "".join(f"; {each.action}: {each.message}" for each in answer.hindrances)
        return f"{answer.object} is {answer.phase}: {answer.why}{hindrances}"


@dataclass(frozen=True)
class Scenario:
    """One demo: what it needs, what it plays, and how to go on from there."""

    title: str
    clouds: tuple[Cloud, ...]
    kinds: tuple[Kind, ...]
    """The kinds whose objects are shown."""
    delays: Mapping[str, float]
    """Settings of the emulator that let a person follow; without them everything answers at once."""
    play: Callable[[Stage], Awaitable[None]]
    failure: Callable[[JsonObject], str]
    """Why an object has failed, empty if it has not."""
    hints: tuple[str, ...]
    """Commands to try next."""


@asynccontextmanager
async def watched(stage: Stage, kinds: Iterable[Kind]) -> AsyncIterator[None]:
    """The stage with its objects listed and kept."""
    wanted = tuple(kinds)
    tasks = [asyncio.create_task(stage.follow(kind)) for kind in wanted]
    tasks.append(asyncio.create_task(stage.follow_lifecycles()))
    try:
        while not stage.listed.issuperset(kind.name for kind in wanted):
            _raise_if_ended(tasks)
            await asyncio.sleep(0.05)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _raise_if_ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        if task.done():
            task.result()


def _waiting(row: WorkflowExecution) -> Waiting:
    known = row.typed_search_attributes
    return Waiting(
        phase=known.get(OP_PHASE, ""),
        waits_for=tuple(known.get(OP_WAITS_FOR, ())),
        until=known.get(OP_DEADLINE),
    )


def _key(kind: str, obj: JsonObject) -> Key:
    namespace, name = text(obj, "metadata", "namespace"), text(obj, "metadata", "name")
    return Key(kind=kind, namespace=namespace, name=name, uid=text(obj, "metadata", "uid"))


def _id(kind: Kind, obj: JsonObject) -> str:
    return _key(kind.name, obj).workflow_id


def _kind_of(document: JsonObject) -> Kind:
    name = text(document, "kind")
    kind = all_kinds().get(name) or BUILT_IN.get(name)
    if kind is None or kind.api_version != text(document, "apiVersion"):
        raise UnsettledError(f"a manifest has an object of {text(document, 'apiVersion')} {name}, which nobody knows")
    return kind
