"""What a demo can observe and do: apply files, wait for objects' states, report.

The stage watches the objects, so it misses no short-lived states. The demo writes with its own field manager, because
Perdure's watcher ignores Perdure's own writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

import yaml
from temporalio.client import Client, WorkflowExecution, WorkflowQueryFailedError
from temporalio.service import RPCError

from domain import operator_domain
from domain.built_in_kinds import BUILT_IN
from domain.identity import Key, Kind, all_kinds
from domain.instances import EXTERNAL_KINDS
from domain.resource import parse_timestamp
from domain.why import Why
from engine.errors import Absent, Conflict
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject, key_of, text
from engine.temporal import OP_DEADLINE, OP_PHASE, OP_WAITS_FOR
from localcloud.aws.control import Emulator
from localcloud.deployment import Deployment
from localcloud.objects import Objects
from localcloud.state import Cloud

FIELD_MANAGER = "perdure-demo"

# How often Temporal is queried; visibility on SQLite costs some milliseconds per query.
LIFECYCLES_SECONDS = 1.0
ASKED_WHY_SECONDS = 5
BREATH_SECONDS = 1.5
LOOK_SECONDS = 0.2


class UnsettledError(Exception):
    pass


@dataclass(frozen=True)
class Waiting:
    phase: str = ""
    waits_for: tuple[str, ...] = ()
    until: datetime | None = None


@dataclass(frozen=True)
class Row:
    key: Key
    phase: str
    waits_for: tuple[str, ...] = ()
    until: datetime | None = None
    created: datetime | None = None


class Spectator(Protocol):
    def say(self, line: str) -> None:
        pass

    def show(self, rows: tuple[Row, ...]) -> None:
        pass

    def present(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None: ...


class Stage:
    def __init__(
        self,
        kube: KubeApi,
        temporal: Client,
        deployment: Deployment,
        emulator: Emulator | None,
        manifests: Path,
        spectator: Spectator,
        scenario: Scenario,
        *,
        fast: bool = False,
    ) -> None:
        self.kube = kube
        self.deployment = deployment
        self._emulator = emulator
        self.objects = Objects(kube, on_change=self._show)
        self._temporal = temporal
        self._manifests = manifests
        self._spectator = spectator
        self._scenario = scenario
        self._fast = fast
        self._awaited = "the first step"
        self._waiting: dict[str, Waiting] = {}
        self._rows: tuple[Row, ...] = ()
        self.on_progress: Callable[[], None] = lambda: None
        """Called when the scenario begins its next step, and when a lifecycle changes."""

    @property
    def emulator(self) -> Emulator:
        assert self._emulator is not None, "the scenario is played without AWS"
        return self._emulator

    # For scenarios.

    def say(self, line: str) -> None:
        self._spectator.say(line)
        self.on_progress()

    async def breathe(self) -> None:
        await asyncio.sleep(0 if self._fast else BREATH_SECONDS)

    def present(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        self._spectator.present(columns, rows)

    async def apply(self, file: str, of: str = "") -> None:
        """Create or update a manifest's objects under the configured OPERATOR_DOMAIN.

        `of` is another demo whose folder contains the file.
        """
        folder = self._manifests.parent / of if of else self._manifests
        manifest = (folder / file).read_text().replace(operator_domain.DEFAULT, self.kube.operator_domain)
        for document in yaml.safe_load_all(manifest):
            if document:
                await self._apply(document)

    async def delete(self, kind: Kind, namespace: str, name: str) -> None:
        try:
            await self.kube.delete(kind, namespace, name)
        except Absent:
            return

    async def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until a condition on the objects is true; raises `UnsettledError` if an object has failed."""
        self._await(what)
        await self.objects.until(lambda: self._failed() != "" or condition())
        if reason := self._failed():
            raise UnsettledError(reason)

    async def looking(self, what: str, holds: Callable[[], Awaitable[bool]]) -> None:
        self._await(what)
        while not await holds():  # noqa: ASYNC110 - a client gets no event
            await asyncio.sleep(LOOK_SECONDS)

    def shown(self) -> dict[str, JsonObject]:
        return {id_: obj for id_, obj in self.objects.by_workflow.items() if self._scenario.shows(obj)}

    # For the command.

    async def reason(self) -> str:
        kinds = all_kinds()
        answers = await asyncio.gather(
            *(self._why(id_) for id_ in self.shown() if id_.split("/", maxsplit=1)[0] in kinds)
        )
        return "\n  ".join([f"waited for: {self._awaited}", *filter(None, answers)])

    async def follow_lifecycles(self) -> None:
        while True:
            with contextlib.suppress(RPCError):  # retried at once; the table shows the previous state
                found = [row async for row in self._temporal.list_workflows("ExecutionStatus = 'Running'")]
                self._waiting = {row.id: _waiting(row) for row in found}
                self._show()
            await asyncio.sleep(LIFECYCLES_SECONDS)

    def _await(self, what: str) -> None:
        self._awaited = what
        self.on_progress()

    def _show(self) -> None:
        rows = tuple(self._row(id_, obj) for id_, obj in self.shown().items())
        if rows != self._rows:
            self._rows = rows
            self.on_progress()
        self._spectator.show(rows)

    def _failed(self) -> str:
        reasons = (self._scenario.failure(obj) for obj in self.objects.by_workflow.values())
        return next(filter(None, reasons), "")

    def _row(self, id_: str, obj: JsonObject) -> Row:
        known = self._waiting.get(id_, Waiting())
        deleting = "Deleting" if text(obj, "metadata", "deletionTimestamp") else ""
        shown = self._scenario.look(obj)
        phase = deleting or shown.phase or known.phase or "New"
        if shown.waits_for:
            known = shown
        elif known.phase != phase:
            known = Waiting()  # Temporal's answer is older than the object
        return Row(
            key=key_of(id_.split("/", maxsplit=1)[0], obj),
            phase=phase,
            waits_for=known.waits_for,
            until=known.until,
            created=parse_timestamp(text(obj, "metadata", "creationTimestamp")),
        )

    async def _apply(self, document: JsonObject) -> None:
        kind = _kind_of(document, self.kube.operator_domain)
        namespace, name = text(document, "metadata", "namespace"), text(document, "metadata", "name")
        try:
            await self.kube.create(kind, document, namespace)
        except Conflict:
            await self.kube.patch(kind, namespace, name, document, field_manager=FIELD_MANAGER)

    async def why(self, id_: str) -> Why | None:
        handle = self._temporal.get_workflow_handle(id_)
        try:
            async with asyncio.timeout(ASKED_WHY_SECONDS):
                answer: Why = await handle.query("why", result_type=Why)
        except (RPCError, WorkflowQueryFailedError, TimeoutError):
            return None
        return answer

    async def _why(self, id_: str) -> str:
        answer = await self.why(id_)
        if answer is None:
            return f"{id_}: does not answer"
        if answer.outcome == "settled":
            return ""
        blockers = "".join(f"; {each.action}: {each.message}" for each in answer.hindrances)
        return f"{answer.object} is {answer.phase}: {answer.why}{blockers}"


def state_of(obj: JsonObject) -> Waiting:
    return Waiting(phase=text(obj, "status", "state"))


def since(began: float) -> str:
    return f"{time.monotonic() - began:.2f} s"


@dataclass(frozen=True)
class Scenario:
    title: str
    clouds: tuple[Cloud, ...]
    kinds: tuple[Kind, ...]
    """The kinds whose objects are shown."""
    play: Callable[[Stage], Awaitable[None]]
    hints: tuple[str, ...]
    """Commands to try next."""
    areas: tuple[str, ...]
    """The areas whose lifecycles Temporal's web UI lists at the demo's link."""
    delays: Mapping[str, float] = field(default_factory=dict)
    """Settings that slow the emulator down, so that a person can follow."""
    failure: Callable[[JsonObject], str] = lambda obj: ""
    """Returns why an object has failed; empty if it has not failed."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings that the deployment needs for this demo; the caller's own have precedence."""
    package: bool = False
    """Whether the demo's folder is a package with an area of its own, to be installed beside Perdure."""
    shows: Callable[[JsonObject], bool] = lambda obj: True
    """Whether an object of these kinds is shown."""
    look: Callable[[JsonObject], Waiting] = state_of
    """Returns the state that an object itself shows; if its phase is empty, Temporal's search attributes are used."""


def _waiting(row: WorkflowExecution) -> Waiting:
    known = row.typed_search_attributes
    return Waiting(
        phase=known.get(OP_PHASE, ""),
        waits_for=tuple(known.get(OP_WAITS_FOR, ())),
        until=known.get(OP_DEADLINE),
    )


def _kind_of(document: JsonObject, domain: str) -> Kind:
    name = text(document, "kind")
    kind = _known_kinds().get(name)
    if kind is None or kind.under(domain).api_version != text(document, "apiVersion"):
        raise UnsettledError(
            f"a manifest has an object of {text(document, 'apiVersion')} {name}, which the cluster does not know"
        )
    return kind


def _known_kinds() -> Mapping[str, Kind]:
    return {**BUILT_IN, **{kind.name: kind for kind in EXTERNAL_KINDS}, **all_kinds()}
