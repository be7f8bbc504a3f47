"""`perdure plan -f FILE`: shows what would be done if the file's objects were applied. Nothing is written anywhere.

A server-side dry run returns each object as the API server would store it. The lifecycle's pass then runs in this
process, in observe mode and with the caller's rights. Recent refusals are ignored: only an open lifecycle knows them.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import yaml
from temporalio import activity
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.clients import Clients
from domain.carried_memory import Carry
from domain.decision import Action, World
from domain.identity import Key, Kind, all_kinds
from domain.pauses import why_paused
from domain.refusal import Refusal
from domain.why import Why
from engine.errors import ApiError, Denied
from engine.kube import JsonObject, KubeApi, Listing, WatchEvent
from engine.kube.json import key_of, sequence, text
from engine.settings import settings
from starters.cli.object_reference import Target
from starters.cli.output import CommandError, Format, printed, say, utc_now
from starters.cli.pause_areas import current_pauses
from starters.cli.session import Session, perform
from starters.cli.why_output import print_plan
from workers.main import activities_of
from workers.registry import workflows_of
from workflows.durable_driver import Entity

FIELD_MANAGER = "perdure-plan"


def plan_file(file: Path, namespace: str, form: Format) -> None:
    objects = read(file, namespace)
    planned = perform(lambda session: _planned(session, objects))
    if printed([answer for _, answer in planned], form):
        return
    for number, (target, answer) in enumerate(planned):
        if number:
            say("")
        print_plan(target, answer, form)


def read(file: Path, namespace: str) -> list[tuple[Kind, JsonObject]]:
    try:
        written = sys.stdin.read() if str(file) == "-" else file.read_text()
        found = [obj for each in yaml.load_all(written, _Manifests) if each for obj in _members(each)]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from error
    objects: list[tuple[Kind, JsonObject]] = []
    for obj in found:
        kind = all_kinds().get(text(obj, "kind")) if isinstance(obj, dict) else None
        if kind is None or not kind.lifecycle or not kind.plural or text(obj, "apiVersion") != _api_version(kind):
            named = f"{text(obj, 'kind')} of {text(obj, 'apiVersion')}" if isinstance(obj, dict) else repr(obj)
            raise CommandError(
                f"{file}: {named} has no lifecycle here", "`perdure crds` prints the kinds that have lifecycles"
            )
        if not text(obj, "metadata", "name"):
            raise CommandError(f"{file}: a {kind.name} has no name", "set metadata.name")
        metadata = {**obj["metadata"], "namespace": text(obj, "metadata", "namespace") or namespace}
        objects.append((kind, {**obj, "metadata": metadata}))
    if not objects:
        raise CommandError(f"{file} contains no object")
    return objects


class _Manifests(yaml.SafeLoader):
    # kubectl reads times as text.
    yaml_implicit_resolvers = {
        first: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _members(document: object) -> Sequence[Any]:
    return sequence(document, "items") if text(document, "kind") == "List" else (document,)


def _api_version(kind: Kind) -> str:
    return kind.under(settings().claims_domain).api_version


async def _planned(session: Session, objects: Sequence[tuple[Kind, JsonObject]]) -> list[tuple[Target, Why]]:
    applied = [(kind, await _as_applied(session, kind, obj)) for kind, obj in objects]
    pauses = await current_pauses(session)
    return [
        (Target(kind, *_name(obj)), await _plan(session, applied, kind, obj, why_paused(pauses, kind.area)))
        for kind, obj in applied
    ]


async def _as_applied(session: Session, kind: Kind, obj: JsonObject) -> JsonObject:
    found = await session.cluster_of(kind).applied(
        kind, obj, text(obj, "metadata", "namespace"), field_manager=FIELD_MANAGER
    )
    # A dry run of a new object has no version yet.
    metadata = {"resourceVersion": "0", **cast("JsonObject", found["metadata"])}
    return {**found, "metadata": metadata}


async def _plan(
    session: Session, applied: Sequence[tuple[Kind, JsonObject]], kind: Kind, obj: JsonObject, paused: str
) -> Why:
    settings = session.settings.model_copy(update={"mode": "observe"})
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(await SupposedKube.open(settings, "cli"))
        kube.suppose(applied)
        served = session.served if session.served is not None and session.served is not session.kube else kube
        temporal = cast("Client", OnlyAsking(session.temporal))
        clients = Clients(settings, temporal, kube, served)
        activities = (await activities_of(clients, (kind.area,), stack))[kind.area]
        key = key_of(kind.name, obj, session.settings.cluster)
        lifecycle = lifecycle_of(kind, key)
        look = lifecycle.observation(dry_run=True)

        async def perform(action: Action) -> Any:
            return await _environment(key).run(_named(activities, action.activity), action)

        async def answer(read: Action) -> Any:
            try:
                return await perform(read)
            except ApiError as error:
                return Refusal(type=error.type, message=error.message, code=error.code, at=utc_now())

        try:
            seen = cast("World", await perform(look))
        except ApiError as error:
            raise CommandError(f"plan {key.path}: {error.message}") from error
        planned = await lifecycle.planned(seen, utc_now, answer)
        return planned.model_copy(update={"hold": paused})


def lifecycle_of(kind: Kind, key: Key) -> Entity[World]:
    found = {cast("Any", each).__temporal_workflow_definition.name: each for each in workflows_of(kind.area)}
    return cast("Entity[World]", found[kind.name](Carry(key=key)))


class SupposedKube(KubeApi):
    """A client that returns the file's objects in place of stored objects."""

    _supposed: dict[tuple[str, str, str], JsonObject] = {}

    def suppose(self, objects: Sequence[tuple[Kind, JsonObject]]) -> None:
        self._supposed = {(kind.name, *_name(obj)): obj for kind, obj in objects}

    async def get(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        supposed = self._supposed.get((kind.name, namespace, name))
        return supposed if supposed is not None else await super().get(kind, namespace, name)

    async def pages(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        **how: Any,
    ) -> AsyncGenerator[Listing, None]:
        """The pages, with the file's objects in place of stored ones. Unless a selector is given, objects that are not
        stored yet follow on a last page.
        """
        ours = {(where, name): obj for (of, where, name), obj in self._supposed.items() if of == kind.name}
        new = {name: obj for name, obj in ours.items() if namespace in ("", name[0])}
        version = ""
        async for page in super().pages(
            kind, namespace, label_selector=label_selector, field_selector=field_selector, **how
        ):
            version = page.resource_version
            for each in page.items:
                new.pop(_name(each), None)
            yield Listing([ours.get(_name(each), each) for each in page.items], version)
        if new and not label_selector and not field_selector:
            yield Listing(list(new.values()), version)

    async def watch(self, kind: Kind, namespace: str = "", **how: Any) -> AsyncGenerator[WatchEvent, None]:
        async for event in super().watch(kind, namespace, **how):
            if (kind.name, *_name(event.object)) not in self._supposed:
                yield event


class OnlyAsking:
    """A Temporal client or workflow handle that only sends queries. All else raises Denied."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def get_workflow_handle(self, workflow_id: str, **how: Any) -> OnlyAsking:
        return OnlyAsking(self._real.get_workflow_handle(workflow_id, **how))

    async def query(self, *what: Any, **how: Any) -> Any:
        return await self._real.query(*what, **how)

    def __getattr__(self, name: str) -> object:
        raise Denied(f"{name} is not possible: a plan sends only queries to Temporal", code="Plan")


def _environment(key: Key) -> ActivityEnvironment:
    environment = ActivityEnvironment()
    now = utc_now()
    environment.info = dataclasses.replace(
        environment.info,
        workflow_type=key.kind,
        workflow_id=key.workflow_id,
        scheduled_time=now,
        current_attempt_scheduled_time=now,
        started_time=now,
    )
    return environment


def _named(activities: Sequence[Callable[..., object]], name: str) -> Callable[..., Any]:
    return next(each for each in activities if activity._Definition.must_from_callable(each).name == name)


def _name(obj: JsonObject) -> tuple[str, str]:
    return text(obj, "metadata", "namespace"), text(obj, "metadata", "name")
