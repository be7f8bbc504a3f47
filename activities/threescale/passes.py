"""The pass over an object of the area: decide, act, and decide again until nothing is left to do.

    own object, fresh ─► gather ─► work ─► patch ─► effects ─► status ─► reads, or writes ─► work ─► ... ─► idle
                                    ▲                              │ refused: remembered by slot
                                    └──────────────────────────────┘

Calls of 3scale are made one after the other, on a seat of the tenant that the pass takes with its first call. After a
refusal the pass decides again and continues without what was refused. After a lost answer, an absence or a name that is
taken, what was known of 3scale is dropped and read again, so that a creation whose answer was lost is found and not
repeated. A short pause that 3scale asks for is waited for; a longer one ends the pass. The status shows neither, nor
the first lost answer: it is written when a person may have to act. A sync that lasts shows `InSync`, once in a pass.

A pass looks before it creates anything, so the next pass finds whatever a crash left behind. After a change that may be
half done it compares with 3scale, also if the change was taken back and the object remembers the old state as synced.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime, timedelta
from typing import cast

from temporalio import activity

from activities import attempt
from activities.conflicts import until_undisturbed
from activities.leaders import HELD_FOR
from activities.threescale import metrics
from activities.threescale.errors import Call, of_known_shape
from activities.threescale.ground import Ground
from activities.threescale.guard import Guard
from activities.threescale.ineffective_writes import Repeats
from activities.threescale.secrets import insecure
from activities.threescale.subjects import Subject
from activities.threescale.tenants import Calls
from domain.decision import Decision, Outcome, earliest
from domain.identity import all_kinds
from domain.levers import RETRIED, retry_wanted
from domain.reading import Malformed
from domain.refusal import ErrorType, Refusal
from domain.resource import CustomResource
from domain.runner import MOST_SHORT_PAUSES, SHORT_PAUSE
from domain.threescale.calls import TAKEN, Read, Resource, Write
from domain.threescale.conditions import INVALID, Standing
from domain.threescale.digests import DRIFT, LOOKED, annotated
from domain.threescale.orphans import next_look, waiting_since
from domain.threescale.passes import GONE, Memory, PassObject, ThreescaleWorld, decision_of
from domain.threescale.providers import ProviderAccount
from domain.threescale.resources import Tenant
from domain.threescale.work import Blocker, Phase, Told, Work, blocked, told_in_sync
from domain.writes import JsonPatch
from engine.clock import now
from engine.errors import ApiError, Conflict, Invalid
from engine.pauses import held

MOST_ROUNDS = 60
AFTER_NO_END = timedelta(minutes=1)
# A change is written from what the last pass has kept, in as few calls as it takes. So long after the last change the
# object is read as a whole, which finds changes that were made below it by hand.
COMPARED_AFTER_CHANGE = timedelta(seconds=30)
# What 3scale refuses as invalid waits for a change; it is tried again once after an hour, and then once a day.
UNTIL_CHANGED = timedelta(hours=1)
LATER_UNTIL_CHANGED = timedelta(days=1)
# A sync that is quicker, or is taken up again sooner, says nothing of itself: clients write what they have just read.
LASTING = timedelta(seconds=10)
# What was known is outdated: read again so often in one pass before it counts as refused.
MOST_SURPRISES = 2
_SURPRISES = frozenset({ErrorType.ABSENT, ErrorType.CONFLICT})
# What 3scale may say only because it has something else than was kept.
_BY_WHAT_WAS_KEPT = frozenset({ErrorType.INVALID, ErrorType.DENIED})
# What passes by itself, as far as the first attempt can tell.
_PASSING = frozenset({ErrorType.THROTTLED, ErrorType.UNAVAILABLE})

log = logging.getLogger(__name__)


class PassActivities:
    """The area's activity."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._half_done: set[str] = set()  # of whom a pass has written to 3scale that has not come to its end

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.pass_object,)

    @activity.defn(name=PassObject.activity)
    async def pass_object(self, look: PassObject) -> ThreescaleWorld:
        """One pass; another one at once if what was read has been written meanwhile."""
        await self._ground.known.settled()
        with metrics.passing(look.key.kind):
            world = await until_undisturbed(look.key, lambda _: self._pass(look))
        if not world.hold and not look.dry_run:
            self._half_done.discard(look.key.uid)  # its memory says it from here on
        metrics.passed(look.key.kind, world.decision)
        return world

    async def _pass(self, look: PassObject) -> ThreescaleWorld:
        key, ground = look.key, self._ground
        kind = all_kinds()[key.kind]
        view = ground.known.view(key)
        resource = await ground.own(kind, key)
        if resource is None:
            return ThreescaleWorld(key=key, exists=False, decision=GONE)
        if isinstance(resource, Malformed):
            return ThreescaleWorld(key=key, refusals=look.refusals, known=look.memory, decision=_unreadable(resource))
        subject = ground.subject(resource, view)
        await subject.gather()
        async with AsyncExitStack() as stack:
            one = _Pass(ground, subject, look, stack, self._half_done)
            return await one.world()


class _Pass:
    """One pass over one object."""

    def __init__(
        self,
        ground: Ground,
        subject: Subject[CustomResource],
        look: PassObject,
        stack: AsyncExitStack,
        half_done: set[str],
    ) -> None:
        meta = subject.resource.metadata
        self._ground = ground
        self._subject = subject
        self._asked = look
        self._stack = stack
        self._calls: Calls | None = None
        self._token = retry_wanted(meta)
        self._drift = meta.annotations.get(DRIFT, "")
        self._half_done = half_done
        died = attempt.repeated() or look.key.uid in half_done
        # Something may have been made that a list of a moment ago does not show.
        self._unsure = bool(look.refusals) or died
        # A change may have got half way: what the object remembers says nothing of it.
        self._begun = look.memory.begun or died
        self._compare_at = look.memory.compare_at
        compares = self._compare_at is not None and self._compare_at <= now()
        self._look = self._begun or compares or bool(self._token) or self._drift != meta.annotations.get(LOOKED, "")
        dropped = look.woken or self._token not in ("", look.memory.retried)
        self._refused: dict[str, Refusal] = {} if dropped else dict(look.refusals)
        self._surprises: Counter[str] = Counter()
        self._repeats = Repeats()
        self._seated_since = 0.0
        self._told_in_sync = False
        self._recalled = False  # what the last pass has kept is taken for what 3scale has
        self._mute = False  # the API server refuses the status
        self._unwritable: Blocker | None = None  # the API server takes no such spec
        self._silent: ApiError | None = None  # the tenant gives no answers: all that is left waits for the same moment

    async def world(self) -> ThreescaleWorld:
        """What the pass came to."""
        key, subject = self._asked.key, self._subject
        leads = await self._ground.predecessor.leads(key.namespace)
        hold = leads or held(
            subject.resource.kind_of.area, subject.resource.metadata.annotations, self._ground.settings
        )
        if hold or self._asked.dry_run:
            decision = decision_of(self._work(), subject.resource.owner, would_act=True)
            if decision.outcome is Outcome.GONE:
                decision = decision.model_copy(update={"outcome": Outcome.WAITING})
            if leads:
                again = earliest([decision.deadline, now() + HELD_FOR])
                decision = decision.model_copy(update={"deadline": again, "at_deadline": "observe again"})
            before = self._asked
            return ThreescaleWorld(key=key, hold=hold, refusals=before.refusals, known=before.memory, decision=decision)
        if not self._look:
            self._recalled = self._ground.kept.recall(subject)
        for _ in range(MOST_ROUNDS):
            work = self._work()
            if work.idle:
                break
            if self._is_passing(work):
                await self._tell_in_sync(work.why, until=work.deadline)
                work = work.model_copy(update={"phase": Phase.SYNCING})
                break
            if await self._carry_out(work):
                return ThreescaleWorld(key=key, exists=False, decision=GONE)
        else:
            log.error("%s: not settled after %d rounds: %s", key.path, MOST_ROUNDS, work.why)
            work = work.model_copy(update={"deadline": now() + AFTER_NO_END})
        await self._noted(work)
        if work.phase is Phase.SYNCED:
            self._refused.clear()  # what was refused once is wanted no more
            if self._look:
                self._compare_at = None
            elif self._recalled and self._begun:
                self._compare_at = now() + COMPARED_AFTER_CHANGE
            self._begun = False
            self._ground.kept.keep(subject)
        await self._ground.tell(subject.resource, work)
        memory = Memory(retried=self._token, begun=self._begun, compare_at=self._compare_at)
        deadline = earliest([work.deadline, self._compare_at])
        decision = decision_of(work.model_copy(update={"deadline": deadline}), subject.resource.owner)
        return ThreescaleWorld(key=key, refusals=self._refused, known=memory, decision=decision)

    def _work(self) -> Work:
        if self._unwritable is not None:
            resource, moment = cast("Told", self._subject.resource), now()
            # What refuses it may be mended without a word: a CRD that was applied late, a webhook.
            again = next_look(waiting_since(resource.status.conditions, INVALID, moment), moment, resource.metadata.uid)
            return blocked(resource, self._unwritable, moment, {}).model_copy(update={"deadline": again})
        work = self._subject.belonging() or self._subject.work(self._refused, now(), look=self._look)
        return work.model_copy(update={"status": {}}) if self._mute else work

    def _is_passing(self, work: Work) -> bool:
        """Whether only a first refusal is left that may pass by itself: the status does not show that."""
        standing = [each for each in self._refused.values() if each.retry_at > now()]
        quiet = all(each.type in _PASSING and each.attempts == 1 for each in standing)
        tells = work.model_copy(update={"status": {}}).idle
        return bool(standing) and quiet and tells and work.phase in (Phase.FAILED, Phase.DELETING)

    async def _carry_out(self, work: Work) -> bool:
        """Do the next part of the work; whether the object is gone with it."""
        if work.writes or work.delete:
            await self._ground.tell(self._subject.resource, work)
        if work.patch:
            await self._patch(work)
        if self._unwritable is not None and not work.status:
            return False
        if await self._effected(work):
            return False
        if work.status:
            await self._show(work.status)
        if work.reads or work.writes:
            await self._call(work)
        if work.delete:
            left = await self._ground.deleted(self._subject.resource)
            if left is None:
                return True
            self._subject.take(left)
        if work.drop_finalizer:
            if work.left:
                log.info("%s: left in 3scale: %s", self._asked.key.path, ", ".join(work.left))
            await self._ground.drop_finalizer(self._subject.resource)
            return True
        return False

    async def _show(self, status: JsonPatch) -> None:
        """The status, and apart from it what the replaced operator's definitions drop of it, which may still stand.

        Their one of Tenants allows no status without ids.
        """
        try:
            self._subject.take(await self._ground.patch(self._subject.resource, {"status": status}, status=True))
        except Invalid as error:
            if not isinstance(self._subject.resource, Tenant):
                raise
            log.warning("%s: its status is refused, apply the definitions again: %s", self._asked.key.path, error)
            self._mute = True
            return
        dropped = annotated(self._subject.resource, status)
        if dropped:
            self._subject.take(await self._ground.patch(self._subject.resource, dropped))

    async def _effected(self, work: Work) -> bool:
        """Other objects of the cluster that are the object's to write; whether there were any."""
        for each in work.effects:
            try:
                await self._subject.carry_out(each)
            except Conflict:
                raise
            except ApiError as error:
                self._note(each.slot, error)
                break
            self._refused.pop(each.slot, None)
        return bool(work.effects)

    async def _patch(self, work: Work) -> None:
        """The object; where the API server refuses a spec with its defaults, that is told."""
        before = self._subject.resource.metadata.generation
        try:
            self._subject.take(await self._ground.patch(self._subject.resource, work.patch))
        except Invalid as error:
            if "spec" not in work.patch:
                raise
            self._unwritable = Blocker(standing=Standing.INVALID, message=error.message)
        if self._subject.resource.metadata.generation != before:
            await self._subject.gather()

    # --- 3scale ---

    async def _call(self, work: Work) -> None:
        """The calls, one after the other, until one is refused."""
        calls: list[Read | Write] = [*work.reads, *work.writes]
        for each in calls:
            slot = each.path if isinstance(each, Read) else each.slot
            await self._tell_in_sync("")
            try:
                await self._patiently(each, slot)
            except ApiError as error:
                self._note(slot, error, each)
                self._silent = error if error.code == Guard.silent else None
                return
            self._refused.pop(slot, None)

    async def _tell_in_sync(self, why: str, until: datetime | None = None) -> None:
        """Show that the sync lasts, if it does; a conflict is left to the next write.

        A pass that has found no seat has not begun.
        """
        if self._calls is None:
            return
        waits = max(timedelta(0), until - now()) if until else timedelta(0)
        lasts = timedelta(seconds=time.monotonic() - self._seated_since) + waits > LASTING
        resource = cast("Told", self._subject.resource)
        status = told_in_sync(resource, why, now()) if lasts and not self._told_in_sync else {}
        self._told_in_sync |= lasts
        if status:
            with suppress(Conflict):
                await self._show(status)

    async def _patiently(self, call: Read | Write, slot: str) -> None:
        """One call; a short delay that 3scale asks for is waited for."""
        for _ in range(MOST_SHORT_PAUSES):
            try:
                return await self._once(call, slot)
            except ApiError as error:
                short = error.delay is not None and error.delay <= SHORT_PAUSE
                if error.type is not ErrorType.THROTTLED or not short or self._calls is None:
                    raise
                await asyncio.sleep((error.delay or SHORT_PAUSE).total_seconds())
        return await self._once(call, slot)

    async def _once(self, call: Read | Write, slot: str) -> None:
        if isinstance(call, Read) and call.resource is Resource.TEXT:
            self._subject.read(call, await self._subject.fetch(call))
            return
        if self._silent is not None:
            raise self._silent
        calls = await self._seated()
        if isinstance(call, Read):
            answer = await calls.read(call, fresh=self._unsure)
            with of_known_shape(self._named("GET", call.path)):
                self._subject.read(call, answer)
            return
        self._repeats.refuse(call)
        await self._subject.prepare(call)
        texts = {key: await self._subject.secrets.text(key) or "" for key in call.secrets.values()}
        before = self._refused.get(slot)
        repeated = self._unsure or (before is not None and before.type is ErrorType.UNAVAILABLE)
        self._begun = True
        self._half_done.add(self._asked.key.uid)
        answer = await calls.write(call, texts, repeated=repeated)
        self._repeats.made(call)
        with of_known_shape(self._named(call.method, call.path)):
            await self._subject.keep(call, answer)
            self._subject.wrote(call, answer)

    def _named(self, method: str, path: str) -> Call:
        account = self._subject.provider
        return Call(method=method, path=path, tenant=account.url if isinstance(account, ProviderAccount) else "")

    async def _seated(self) -> Calls:
        """The tenant's calls, on the pass's seat."""
        if self._calls is None:
            account = self._subject.provider
            assert isinstance(account, ProviderAccount)  # noqa: S101 - without one no call is asked for
            token = await self._subject.secrets.text(account.token) or ""
            calls = self._ground.tenants.calls(account.url, token, insecure=insecure(self._subject.resource))
            await self._stack.enter_async_context(calls.seat())
            self._calls, self._seated_since = calls, time.monotonic()
        return self._calls

    def _note(self, slot: str, error: ApiError, call: Read | Write | None = None) -> None:
        """A call of 3scale, or a write of another object, was refused or had no answer."""
        log.info("%s: %s", self._asked.key.path, error.message)
        metrics.refused(self._asked.key.kind, error)
        self._unsure = True
        if error.type in _SURPRISES or error.type is ErrorType.UNAVAILABLE:
            self._subject.forget()
        recalled, self._recalled = self._recalled, False
        if recalled and error.type in _BY_WHAT_WAS_KEPT:
            self._subject.forget()
            return
        if error.type in _SURPRISES:
            self._surprises[slot] += 1
            if self._surprises[slot] <= MOST_SURPRISES:
                return
        self._refused[slot] = _refusal(error, self._refused.get(slot), call)

    async def _noted(self, work: Work) -> None:
        """What asked for this look has had it, where nothing stands in the way; else the next pass looks, too."""
        meta = self._subject.resource.metadata
        if work.phase is not Phase.SYNCED:
            return
        noted = {RETRIED: self._token} if self._token else {}
        if self._drift != meta.annotations.get(LOOKED, ""):
            noted[LOOKED] = self._drift
        if noted:
            patch: dict[str, object] = {"metadata": {"annotations": noted}}
            self._subject.take(await self._ground.patch(self._subject.resource, patch))


def _refusal(error: ApiError, before: Refusal | None, call: Read | Write | None) -> Refusal:
    """The refusal as it is kept; a delay that 3scale asks for is the time until the next attempt."""
    attempts = before.attempts + 1 if before is not None else 1
    pause = None
    if error.type is ErrorType.THROTTLED and error.delay is not None:
        attempts, pause = 1, error.delay
    elif error.type is ErrorType.INVALID and _asks_for_a_state(call) and TAKEN not in error.message:
        # The same would be refused again until the object changes, which drops this, or 3scale's own settings do.
        # A name that is taken may become free at any time, and so may what keeps something from its deletion.
        pause = UNTIL_CHANGED if attempts == 1 else LATER_UNTIL_CHANGED
    return Refusal(type=error.type, message=error.message, code=error.code, at=now(), attempts=attempts, pause=pause)


def _asks_for_a_state(call: Read | Write | None) -> bool:
    return isinstance(call, Write) and call.method != "DELETE"


def _unreadable(resource: Malformed) -> Decision:
    return Decision(
        phase=Phase.INVALID.value,
        outcome=Outcome.WAITING,
        why=f"the object cannot be read: {resource.problem}",
        waits_for=("a readable object",),
    )
