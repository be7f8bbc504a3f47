"""Serving one claim that has no handle: judged, bound to a free handle or given a new one, and brought to ready.

    not begun | ignored | held --> left alone
    judged --> metadata, defaults --> approval pending, values refused, faults: said in the status
          '-> a handle that names it already | the best free one | a new one --> status --> its resources

Only the binder does this, for one claim after the other as far as the choice goes: a handle is taken out of the free
ones when it is chosen, and bound over the version that was read, so that even two binders could not bind it twice. A
handle made for a claim is named after the claim's uid: made again, it is found.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from activities.claims import metrics
from activities.claims.claim_validation import Judged, Judging
from activities.claims.evaluation import Beyond, Evaluation
from activities.claims.handle_reconciliation import Bundle, Bundles
from activities.claims.known import Known
from activities.claims.writing import Writer
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.conditions import with_own_stalled
from domain.claims.constants import HANDLE_NAME_PREFIX
from domain.claims.domain_names import DomainNames
from domain.claims.durations import UnreadableDuration, parse_duration
from domain.claims.faults import FAULTS, fault_of
from domain.claims.handle_reconciliation import HandleWorld
from domain.claims.lifespan import Terms, bound_status
from domain.claims.matching import FreeHandle, Wanted, WantedResource
from domain.claims.names import claim_handle_name
from domain.claims.objects import JsonObject, object_at, objects_at, text_at, value_at, with_metadata, without
from domain.claims.plans import BindingQuestion, ClaimPlan, Fault, HandlePlan
from domain.claims.references import handle_reference, holder_of
from domain.claims.timestamps import born, end_of_handle
from domain.identity import Key
from engine.errors import Absent, ApiError, Conflict

# Five characters of 27: two of a thousand claims meet with a chance of one in thirty, three times in a row never.
MOST_SALTS = 8
# A handle that others write to at the same time is tried so often for one claim.
MOST_TRIES = 3
# What one look at a claim takes at most until its handle is there; the clock of the API server may be another.
MADE_WITHIN = timedelta(seconds=10)

log = logging.getLogger(__name__)


class Unusable(Beyond):
    """A free handle cannot be bound as it is."""


class Serving:
    """Giving handles to claims."""

    def __init__(
        self,
        known: Known,
        writer: Writer,
        evaluation: Evaluation,
        judging: Judging,
        bundles: Bundles,
        hold: Callable[[JsonObject], str],
    ) -> None:
        """`hold`: why nothing may be changed on behalf of an object now, empty if it may."""
        self._known = known
        self._writer = writer
        self._evaluation = evaluation
        self._judging = judging
        self._bundles = bundles
        self._hold = hold

    async def serve(self, key: Key, claim: JsonObject, now: datetime) -> tuple[Judged, HandleWorld | None]:
        """Serve the claim: how it was judged, and what came of it if it has a handle now.

        Raises:
            Conflict: what was read was written meanwhile; observe again.
            ApiError: the API server gave no answer.
        """
        held = self._handle_that_names(claim)
        judged = await self._judging.judge(key, claim, now, handle=held, show=False)
        if judged.halted:
            return judged, None
        claim, plan = judged.claim, judged.plan
        made = False
        try:
            handle = held or await self._take_free(key, claim, plan, now)
            if handle is None:
                if plan.creation is None and plan.fault is not None:
                    return await self._judging.fault(judged, plan.fault, now), None
                if plan.creation is None:
                    return await self._wait_for_a_free_one(judged, now), None
                handle, made = await self._create(key, claim, plan, now), True
        except Beyond as beyond:
            return await self._judging.fault(judged, beyond.fault, now), None
        except FAULTS as error:
            return await self._judging.fault(judged, fault_of(error), now), None
        metrics.claim_bound(claim, now, pool=text_at(handle, "spec", "resourcePool", "name"), made=made)
        claim = _with_handle(self._known.names, claim, handle, now)
        claim = await self._writer.put_status(RESOURCE_CLAIM, claim, object_at(claim, "status"), unwritten=True)
        if self._known.names.ignore_label in object_at(handle, "metadata", "labels") or self._hold(handle):
            # A backup may be restored in any order: the claim has its handle, which is looked after once it may be.
            asked = {"now": now, "names": self._known.names, "handle": handle, "claim": claim}
            return judged, HandleWorld.of(key, answer=HandlePlan(handle_status=object_at(handle, "status")), **asked)
        bundle = Bundle(key, handle, claim, assigned=judged.assigned, push=True)
        states = tuple(None for _ in objects_at(handle, "spec", "resources")) if made else None
        return judged, await self._bundles.settle(bundle, now, states)

    def _handle_that_names(self, claim: JsonObject) -> JsonObject | None:
        """The handle that is the claim's already: a binding that was not finished, or whose trace was wiped out."""
        name = text_at(claim, "metadata", "name")
        for handle in self._known.handles_of_claim(text_at(claim, "metadata", "namespace"), name):
            if not value_at(handle, "metadata", "deletionTimestamp"):
                return handle
        return None

    # --- free handles ---

    async def _take_free(self, key: Key, claim: JsonObject, plan: ClaimPlan, now: datetime) -> JsonObject | None:
        """The best free handle, bound to the claim; None if none fits.

        One that cannot be bound as it is written (its default lifespan says no duration) keeps the claim from no other;
        several mean that it lies elsewhere.

        Raises:
            Unusable: only such were found, and none may be made.
        """
        wanted = _wanted(plan)
        tries: Counter[str] = Counter()
        unusable: list[Unusable] = []
        while len(unusable) < MOST_TRIES and (candidate := self._best(wanted, tries, now)) is not None:
            tries[candidate.name] += 1
            # Out of the free ones before anything is awaited: no other claim of this batch can choose it.
            self._known.free.remove(candidate.name)
            handle = self._known.get(RESOURCE_HANDLE, self._known.namespace, candidate.name)
            if handle is None or holder_of(handle):
                continue
            try:
                if (bound := await self._try(key, claim, handle, plan, now)) is not None:
                    return bound
            except Unusable as error:
                log.warning("%s: %s cannot be bound: %s", key, candidate.name, error)
                tries[candidate.name] = MOST_TRIES
                unusable.append(error)
            finally:
                self._known.may_be_free(candidate.name)
        if unusable and plan.creation is None:
            raise unusable[0]
        return None

    def _best(self, wanted: Wanted, tries: Mapping[str, int], now: datetime) -> FreeHandle | None:
        candidates = self._known.free.candidates(wanted, now)
        return next((each for each in candidates if tries.get(each.name, 0) < MOST_TRIES), None)

    async def _try(
        self, key: Key, claim: JsonObject, handle: JsonObject, plan: ClaimPlan, now: datetime
    ) -> JsonObject | None:
        """The handle bound to the claim; None if it is not to be had as it is known.

        A refusal, or no answer at all, may come of what was done without our hearing of it: the handle itself knows.

        Raises:
            ApiError: no answer.
        """
        try:
            return await self._bind(key, claim, handle, plan, now)
        except (Absent, Conflict):
            metrics.bind_missed()
            return await self._there_for(key, text_at(handle, "metadata", "name"))
        except ApiError:
            if (there := await self._there_for(key, text_at(handle, "metadata", "name"))) is None:
                raise
            return there

    async def _there_for(self, key: Key, name: str) -> JsonObject | None:
        """The handle of that name, if it holds the claim."""
        there = await self._known.fresh(RESOURCE_HANDLE, self._known.namespace, name)
        if holder_of(there) != (key.namespace, key.name) or value_at(there, "metadata", "deletionTimestamp"):
            return None
        return there

    async def _bind(
        self, key: Key, claim: JsonObject, handle: JsonObject, plan: ClaimPlan, now: datetime
    ) -> JsonObject:
        providers = await self._known.providers_for(key, claim, handle)
        question = BindingQuestion(
            now=now, names=self._known.names, claim=claim, handle=handle, providers=providers, wanted=plan.wanted
        )
        binding = await self._evaluation.binding(question)
        if binding.fault is not None:
            raise Unusable(binding.fault)
        labels = {**object_at(handle, "metadata", "labels"), **binding.labels}
        bound = with_metadata({**handle, "spec": binding.spec}, labels=labels)
        return await self._writer.put(RESOURCE_HANDLE, handle, bound)

    # --- new handles ---

    async def _create(self, key: Key, claim: JsonObject, plan: ClaimPlan, now: datetime) -> JsonObject:
        """A handle for the claim, its references recorded from birth."""
        for salt in range(MOST_SALTS):
            name = claim_handle_name(text_at(claim, "metadata", "uid"), salt)
            body = self._body(claim, plan, name)
            body = {**body, "spec": await self._with_references(key, claim, body, now)}
            try:
                return await self._writer.create(RESOURCE_HANDLE, body, self._known.namespace)
            except Conflict:
                # Another's, or an earlier one of this claim on its way out, which is never its handle again.
                if (there := await self._there_for(key, name)) is not None:
                    return there
            except ApiError:
                if (there := await self._there_for(key, name)) is None:
                    raise
                return there
        raise Beyond(Fault(reason="NameTaken", message=f"{MOST_SALTS} names for a ResourceHandle are taken"))

    def _body(self, claim: JsonObject, plan: ClaimPlan, name: str) -> JsonObject:
        creation, names = plan.creation or {}, self._known.names
        labels: JsonObject = {
            **object_at(creation, "metadata", "labels"),
            names.claim_name_label: text_at(claim, "metadata", "name"),
            names.claim_namespace_label: text_at(claim, "metadata", "namespace"),
        }
        return {
            "apiVersion": names.api_version,
            "kind": RESOURCE_HANDLE.name,
            "metadata": {
                "name": name,
                "generateName": HANDLE_NAME_PREFIX,
                "namespace": self._known.namespace,
                "labels": labels,
                "finalizers": [names.finalizer],
            },
            "spec": object_at(creation, "spec"),
        }

    async def _with_references(self, key: Key, claim: JsonObject, body: JsonObject, now: datetime) -> JsonObject:
        """The spec with the names of its resources, as far as they can be told: saves a write, and is the intent."""
        states = tuple(None for _ in objects_at(body, "spec", "resources"))
        planned: HandlePlan = await self._bundles.plan(Bundle(key, body, claim), now, states)
        return planned.spec or object_at(body, "spec")

    # --- the claim ---

    async def _wait_for_a_free_one(self, judged: Judged, now: datetime) -> Judged:
        """No free handle fits, and none may be made: no fault, the claim waits for one."""
        status = with_own_stalled(object_at(judged.claim, "status"), None, now, bound=False)
        claim = await self._writer.put_status(RESOURCE_CLAIM, judged.before, status)
        return judged.waiting_for(_wanted(judged.plan), claim)


def _wanted(plan: ClaimPlan) -> Wanted:
    resources = (
        WantedResource(entry.provider, entry.name, entry.template, entry.match_ignore) for entry in plan.wanted
    )
    return Wanted(tuple(resources), pool=plan.wanted_pool, provider=plan.provider)


def _bound_at(claim: JsonObject, handle: JsonObject, now: datetime) -> datetime:
    """When the claim got the handle: earlier where another attempt was broken off, as the end it was given tells."""
    end, default = end_of_handle(handle), text_at(handle, "spec", "lifespan", "default")
    if end is None or not default or value_at(claim, "spec", "lifespan", "end"):
        return now
    try:
        began = end - parse_duration(default)
    except (UnreadableDuration, OverflowError):
        return now  # a template, or cut by a maximum: the handle tells nothing of it
    return began if max(born(handle), born(claim)) <= began + MADE_WITHIN and began < now else now


def _with_handle(names: DomainNames, claim: JsonObject, handle: JsonObject, now: datetime) -> JsonObject:
    """The claim with its handle and its lifespan in the status: the two are always seen together.

    How long the lifespan may be at most follows when it is rendered.
    """
    ready = value_at(handle, "status", "ready") is True
    lifespan = bound_status(Terms(), end_of_handle(handle), ready=ready, now=_bound_at(claim, handle, now))
    status: JsonObject = {
        **object_at(claim, "status"),
        "resourceHandle": handle_reference(names, handle),
        "lifespan": {**lifespan, **without(object_at(claim, "status", "lifespan"), ("end",))},
    }
    return {**claim, "status": status}
