"""The binder's pass over a claim without a handle. `domain/claims/claim_binding.py` decides."""

from __future__ import annotations

import logging
from functools import partial

from temporalio import activity

from activities.activity_class import Activities
from activities.claims import metrics
from activities.claims.binder_queue import BinderQueue
from activities.claims.evaluation import Evaluation
from activities.claims.tools import Tools
from activities.inline_driver import Passed, effects_of
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.claim_binding import Created, CreateHandle, TakeHandle, Taken, decide, wanted_of
from domain.claims.claim_preparation import Claim
from domain.claims.evaluator_interface import BindingQuestion
from domain.claims.faults import FAULTS, HANDLE_REFUSED, Faulty, fault_of, handle_refused
from domain.claims.handle_creation import claim_labels, new_handle
from domain.claims.handle_names import claim_handle_name
from domain.claims.json_objects import JsonObject, is_deleting, text_at, with_added
from domain.claims.passes import ObjectWorld, PassClaim
from domain.claims.references import handle_name, holder_of
from domain.identity import Key
from engine.clock import now
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid

log = logging.getLogger(__name__)


class Unusable(Faulty):
    pass


class Binding(Activities):
    def __init__(self, tools: Tools, queue: BinderQueue, evaluation: Evaluation) -> None:
        self._tools = tools
        self._cache = tools.cache
        self._writer = tools.writer
        self._queue = queue
        self._evaluation = evaluation
        tools.reconciliation.effects |= effects_of(*self.all())

    async def bind(self, key: Key) -> tuple[Passed[Claim], ObjectWorld]:
        look, edits = PassClaim(key=key, woken=False), self._cache.edits
        passed, world = await self._tools.reconciliation.carry_out(look, decide, partial(self._observe, key))
        seen = passed.world
        if handle_name(seen.claim) and not handle_name(seen.claim_observed):
            pool = text_at(seen.handle, "spec", "resourcePool", "name")
            metrics.claim_bound(seen.claim or {}, seen.question.now, pool=pool, made=seen.made)
            self._cache.check_later(key, edits)
        return passed, world

    async def _observe(self, key: Key, fresh: bool) -> Claim:
        """Read the claim and, after an interrupted binding, the handle that names it."""
        cache, tools, moment = self._cache, self._tools, now()
        claim = await cache.own(RESOURCE_CLAIM, key, fresh=fresh)
        if claim is None:
            return Claim.of(key, now=moment, names=cache.names, handle={}, exists=False)
        # Read from the API server: a recreated claim must not get its predecessor's handle, and be deleted with it.
        handle: JsonObject = {}
        for each in cache.handles_of_claim(key.namespace, key.name):
            if not is_deleting(each) and (there := await self._there_for(key, text_at(each, "metadata", "name"))):
                handle = there
                break
        return Claim.of(
            key,
            now=moment,
            names=cache.names,
            handle=handle,
            claim=claim,
            claim_observed=claim,
            hold=tools.hold(claim),
            handle_hold=tools.hold(handle) if handle else "",
            fresh=fresh,
            binds=True,
            cadence=tools.cadence,
        )

    # --- free handles ---

    @activity.defn(name=TakeHandle.activity)
    async def take_handle(self, action: TakeHandle) -> Taken:
        try:
            fitting = self._queue.free.candidates(wanted_of(action.plan), action.at)
            best = next((each.name for each in fitting if each.name not in action.passed_over), "")
            if not best:
                return Taken()
            # Removed before the first await: no other claim of this batch can choose it.
            self._queue.free.remove(best)
            try:
                return Taken(name=best, handle=await self._try(action, best))
            except Unusable as error:
                log.warning("%s was not bound to ResourceHandle %s: %s", action.key, best, error)
                return Taken(name=best, unusable=fault_of(error))
            finally:
                self._queue.may_be_free(best)
        except FAULTS as error:
            return Taken(fault=fault_of(error))

    async def _try(self, action: TakeHandle, name: str) -> JsonObject | None:
        """Bind the handle; None if it is no longer available. After an error, a read shows whether it is bound."""
        handle = self._cache.get(RESOURCE_HANDLE, self._cache.namespace, name)
        if handle is None or holder_of(handle):
            return None
        try:
            return await self._bind(action, handle)
        except (Absent, Conflict):
            metrics.bind_missed()
            return await self._there_for(action.key, name)
        except (Denied, Invalid) as error:
            raise Unusable(HANDLE_REFUSED, f"{name} cannot be bound: {error.message}") from error
        except ApiError:
            if (there := await self._there_for(action.key, name)) is None:
                raise
            return there

    async def _there_for(self, key: Key, name: str) -> JsonObject | None:
        there = await self._cache.fresh(RESOURCE_HANDLE, self._cache.namespace, name)
        return there if holder_of(there) == (key.namespace, key.name) and not is_deleting(there) else None

    async def _bind(self, action: TakeHandle, handle: JsonObject) -> JsonObject:
        cache, claim = self._cache, action.claim
        providers = await cache.providers_for(claim, handle)
        question = BindingQuestion(
            now=action.at, names=cache.names, claim=claim, handle=handle, providers=providers, wanted=action.plan.wanted
        )
        binding = await self._evaluation.binding(question)
        if binding.fault is not None:
            raise Unusable(binding.fault.reason, binding.fault.message)
        bound = with_added({**handle, "spec": binding.spec}, labels=binding.labels)
        return await self._writer.put(RESOURCE_HANDLE, handle, bound)

    # --- new handles ---

    @activity.defn(name=CreateHandle.activity)
    async def create_handle(self, action: CreateHandle) -> Created:
        cache, claim = self._cache, action.claim
        name = claim_handle_name(text_at(claim, "metadata", "uid"), action.salt)
        labels, spec = claim_labels(cache.names, claim), action.plan.creation or {}
        body = new_handle(cache.names, cache.namespace, name, labels, spec)
        try:
            plan = await self._tools.reconciliation.planned(
                action.key, body, action.at, claim, assigned=action.assigned, push=action.push
            )
            body = {**body, "spec": plan.spec or spec}
            return Created(handle=await self._writer.create(RESOURCE_HANDLE, body, cache.namespace), plan=plan)
        except Conflict:
            # The name is taken: use the handle if it is this claim's and not being deleted.
            return Created(handle=await self._there_for(action.key, name))
        except (Denied, Invalid) as error:
            return Created(fault=handle_refused(error.message))
        except ApiError:
            if (there := await self._there_for(action.key, name)) is None:
                raise
            return Created(handle=there)
        except FAULTS as error:
            return Created(fault=fault_of(error))
