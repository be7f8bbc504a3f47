"""What a pass over one object observes and does; `domain/threescale/reconciliation.py` decides.

Calls are sequential, in a slot of the tenant (`tenant_concurrency.py`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Self

from temporalio import activity

from activities import attempt
from activities.activity_class import Activities
from activities.inline_driver import Effect, Passed, effects_of
from activities.replaced_operator import HELD_FOR
from activities.threescale import metrics
from activities.threescale.call_limits import Guard
from activities.threescale.errors import of_known_shape
from activities.threescale.ineffective_writes import IneffectiveWrites
from activities.threescale.pass_context import PassContext
from activities.threescale.secrets import Secrets
from activities.threescale.subjects import Subject
from activities.threescale.tenant_concurrency import Calls
from domain.control_annotations import retry_wanted
from domain.decision import Decision, Outcome, World, earliest
from domain.identity import all_kinds
from domain.reading import Malformed
from domain.resource import CustomResource
from domain.threescale.actions import Beside, ClusterWrite, DropFinalizer, ShowStatus, Stored
from domain.threescale.calls import Answer, Read, Resource, Write
from domain.threescale.conditions import lasts
from domain.threescale.denied_observation import DeniedObservation
from domain.threescale.digests import annotated
from domain.threescale.drift_schedule import compared_next, is_compared
from domain.threescale.observed import Memory, Observed, Phase, Unreadable, status_in_sync
from domain.threescale.passes import PassObject, ThreescaleWorld
from domain.threescale.provider_account import NoAccount, ProviderAccount
from domain.threescale.reconciliation import decide
from domain.threescale.tls_verification import insecure
from domain.writes import Delete, JsonPatch, Patch, RecordEvents
from engine.clock import now
from engine.errors import Absent, ApiError, Conflict, Denied
from engine.kube.events import record_events
from engine.pauses import held

log = logging.getLogger(__name__)


class Effects(Activities):
    """Leaving this asynchronous context manager releases the tenant's slot."""

    _request: PassObject
    _resource: CustomResource
    _secrets: Secrets
    _subject: Subject[CustomResource]
    _world: Observed

    def __init__(self, context: PassContext) -> None:
        self._context = context
        self._half_done: set[str] = set()
        self._stack = AsyncExitStack()
        self._observed = False
        self._leads = ""
        self._token = ""
        self._died = False
        self._begun = False
        self._calls: Calls | None = None
        self._began = 0.0
        self._reported_in_sync = False
        self._silent: ApiError | None = None  # set if the tenant does not answer; all further calls raise this error
        self._repeats = IneffectiveWrites()
        self._found_ids: set[int] = set()  # of entries that reads of this pass have found; 0 if a read found none

    @classmethod
    def of(cls, context: PassContext, request: PassObject, half_done: set[str]) -> Self:
        """`half_done` has the uids of objects for which a pass of this worker was interrupted after a write."""
        made = cls(context)
        made._request, made._half_done = request, half_done
        # True if a change may be incomplete although the object's stored digest does not show it.
        made._died = attempt.repeated() or request.key.uid in half_done
        made._begun = request.memory.begun or made._died
        return made

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def by_activity(self) -> Mapping[str, Effect]:
        record = partial(record_events, kube=self._context.kube)
        return {
            Patch.activity: self.patch,
            Delete.activity: self.delete,
            RecordEvents.activity: record,
            **effects_of(*self.all()),
        }

    # --- observe, decide, report ---

    async def observe(self, fresh: bool) -> World:
        key, request, context = self._request.key, self._request, self._context
        resource = await context.own(all_kinds()[key.kind], key)
        if resource is None:
            return World(key=key, exists=False)
        if isinstance(resource, Malformed):
            return Unreadable(key=key, problem=resource.problem)
        meta = resource.metadata
        self._token = retry_wanted(meta)
        self._leads = await context.operator_leads(key.namespace)
        hold = self._leads or held(resource.kind_of.area, meta.annotations, context.settings)
        fields: dict[str, object] = {
            "hold": hold,
            "unsure": self._died,
            "retry": self._token,
            "look": is_compared(meta, request.memory, now(), begun=self._begun),
        }
        if not self._observed:
            fields["drops_refusals"] = request.woken or self._token not in ("", request.memory.retried)
        self._secrets = context.secrets()
        world = (await self._observed_beside(resource)).beside(fields)
        if not (self._observed or world.look or hold or request.dry_run):
            remembered = context.responses.recall(world)
            world = world if remembered is None else world.recalling(remembered).beside({"recalled": True})
        self._observed = True
        return world

    async def _observed_beside(self, resource: CustomResource) -> Observed:
        self._resource = resource
        self._subject = self._context.subject(resource, self._secrets)
        try:
            seen = await self._subject.observed()
        except Denied as error:
            unknown = NoAccount(why=error.message, waits_for="a permitted read", incomplete=True)
            return DeniedObservation(key=resource.key, resource=resource, provider=unknown)
        # The new observation keeps the entries that this pass has found, so it needs their holders, too.
        return seen.beside({"holders": await self._subject.holders(*self._found_ids)}) if self._found_ids else seen

    def decide(self, world: World, at: datetime) -> Decision:
        if isinstance(world, Observed):
            if self._calls is not None:  # without a call, no long sync was reported
                more = {
                    "resource": self._resource,
                    "slot_held_for": self._slot_held_for,
                    "reported_in_sync": self._reported_in_sync,
                }
                world = world.beside(more)
            self._world = world
        return decide(world, at)

    def outcome(self, passed: Passed[World]) -> ThreescaleWorld:
        request, world, decision, before = self._request, passed.world, passed.decision, self._request.memory
        if not isinstance(world, Observed) or not world.exists:
            return passed.as_world(ThreescaleWorld, refusals=request.refusals, known=before)
        if world.hold or request.dry_run:
            if decision.outcome is Outcome.GONE:
                decision = decision.model_copy(update={"outcome": Outcome.WAITING})
            if self._leads:
                decision = _until(decision, now() + HELD_FOR)
            return passed.as_world(
                ThreescaleWorld, exists=True, refusals=request.refusals, known=before, decision=decision
            )
        begun, compare_at = self._begun, before.compare_at
        if decision.phase == Phase.SYNCED:
            compare_at, begun = compared_next(world, before, now(), begun=begun), False
            self._context.responses.keep(world)
        known = Memory(retried=self._token, begun=begun, compare_at=compare_at)
        return passed.as_world(ThreescaleWorld, known=known, decision=_until(decision, compare_at))

    # --- the object itself ---

    async def patch(self, action: Patch) -> Stored:
        generation = self._resource.metadata.generation
        if isinstance(action, DropFinalizer):
            if action.left:
                log.info("%s: finalizer removed; left behind: %s", action.key.path, ", ".join(action.left))
            with suppress(Absent):
                await self._store(action.patch)
            return Stored()
        if isinstance(action, ShowStatus):
            self._reported_in_sync |= action.in_sync
            return await self._show(action.patch)
        self._repeats.refuse(action)
        stored = await self._store(action.patch)
        self._repeats.made(action)
        if self._resource.metadata.generation == generation:
            return stored
        seen = await self._observed_beside(self._resource)
        same = {name: getattr(self._world, name) for name in ("hold", "look", "retry", "unsure")}
        return stored.model_copy(update={"world": seen.beside(same)})

    async def _store(self, patch: JsonPatch, *, status: bool = False) -> Stored:
        obj = await self._context.patch(self._resource, patch, status=status)
        self._resource = type(self._resource).model_validate(obj)
        return Stored(obj=obj)

    async def _show(self, patch: JsonPatch) -> Stored:
        """If the API server drops `status.digests` (`digests.py`), also write them to an annotation."""
        stored = await self._store(patch, status=True)
        status = patch["status"]
        dropped = annotated(self._resource, status) if isinstance(status, dict) else {}
        return await self._store(dropped) if dropped else stored

    async def delete(self, action: Delete) -> Stored:
        """The result contains the object if a finalizer retains it; otherwise it is empty."""
        left = await self._context.deleted(self._resource)
        if left is not None:
            self._resource = type(self._resource).model_validate(left)
        return Stored(obj=left or {})

    # --- the cluster and 3scale ---

    @activity.defn(name=ClusterWrite.activity)
    async def write_cluster(self, write: ClusterWrite) -> Beside:
        with self._noting():
            self._repeats.refuse(write)
            beside = await self._subject.write(write)
            self._repeats.made(write)
            return Beside(beside=beside)

    @activity.defn(name=Read.activity)
    async def read(self, read: Read) -> Answer:
        with self._calling():
            if read.resource is Resource.TEXT:
                return Answer(body=await self._subject.fetch(read))
            calls = await self._with_slot()
            body = await calls.read(read, fresh=read.unsure)
            with of_known_shape(read.named(self._subject.provider.url)):
                world = self._world.read(read, body)
                self._found_ids.add(world.found_id)
                return Answer(body=body, beside=await self._subject.noticed(read, world))

    @activity.defn(name=Write.activity)
    async def write(self, write: Write) -> Answer:
        with self._calling():
            calls = await self._with_slot()
            self._repeats.refuse(write)
            await self._subject.prepare(write)
            texts = {key: await self._secrets.text(key) or "" for key in write.secrets.values()}
            self._begun = True
            self._half_done.add(self._request.key.uid)
            body = await calls.write(write, texts, repeated=write.unsure)
            self._repeats.made(write)
            with of_known_shape(write.named(self._subject.provider.url)):
                return Answer(body=body, beside=await self._subject.keep(write, body))

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            log.info("%s: %s", self._request.key.path, error.message)
            metrics.refused(self._request.key.kind, error)
            raise

    @contextmanager
    def _calling(self) -> Iterator[None]:
        with self._noting():
            try:
                yield
            except ApiError as error:
                self._silent = error if error.code == Guard.silent else None
                raise

    async def _with_slot(self) -> Calls:
        """The first call of a pass takes a slot. Raises ApiError if no slot is free or the tenant does not answer."""
        if self._silent is not None:
            raise self._silent
        if self._calls is None:
            account = self._subject.provider
            assert isinstance(account, ProviderAccount)  # noqa: S101 - without an account, no call is decided
            token = await self._secrets.text(account.token) or ""
            calls = self._context.tenants.calls(account.url, token, insecure=insecure(self._resource))
            await self._stack.enter_async_context(calls.slot())
            self._calls, self._began = calls, time.monotonic()
        await self._show_if_it_lasts()
        return self._calls

    @property
    def _slot_held_for(self) -> timedelta:
        return timedelta(seconds=time.monotonic() - self._began)

    async def _show_if_it_lasts(self) -> None:
        if self._reported_in_sync or not lasts(self._slot_held_for):
            return
        self._reported_in_sync = True
        if status := status_in_sync(self._resource, "", now()):
            with suppress(Conflict):
                await self._show({"status": status})


def _until(decision: Decision, moment: datetime | None) -> Decision:
    if moment is None:
        return decision
    return decision.model_copy(
        update={"deadline": earliest([decision.deadline, moment]), "at_deadline": "observe again"}
    )
