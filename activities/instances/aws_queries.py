"""Queries to AWS about instances, and answers to lifecycle hooks.

    query ──► no call for this account and region is running: call at once
         └──► a call is running: wait for the next call, which is for all waiting queries, up to 200 instances

EC2's limits are per account and region, so one call at a time runs for each account and region. If an answer has
several instances of a group, one query reads the group's hooks for all of them. It runs alongside the next call.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from temporalio import activity

from activities import attempt
from activities.activity_class import Activities
from activities.aws.instances import MOST_AT_ONCE, complete_hook, describe, hook_timings, send_heartbeat
from activities.aws.queue_account_roles import Places
from activities.aws.session import Services
from activities.instances import metrics
from domain.identity import Key
from domain.instances.actions import Answer, AskInstance, BeatHook, Done, EndHook
from domain.instances.event_verification import Facts, Question
from domain.instances.hook_timeouts import HookTiming
from domain.instances.served_queues import Place
from domain.instances.workflow_ids import InstanceKey
from engine.clock import now
from engine.errors import Invalid


@dataclass
class _Query:
    instance: str
    questions: tuple[Question, ...]
    tag_keys: tuple[str, ...]
    at: datetime
    answer: asyncio.Future[Answer]


class ServedPlaces:
    def __init__(self, places: Iterable[Place], callers: Places) -> None:
        self._callers = callers
        self._places = {place.where: place for place in places}

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(self._places.values())

    def serves(self, account: str, region: str) -> bool:
        return (account, region) in self._places

    def caller(self, account: str, region: str) -> Services:
        """The AWS clients for an account and region. Raises Invalid if the settings do not name them."""
        place = self._places.get((account, region))
        if place is None:
            raise Invalid(f"account {account} in {region} is not among PERDURE_INSTANCES_QUEUES", code="NotServed")
        return self._callers.caller(place)


class AskActivities(Activities):
    def __init__(self, served: ServedPlaces) -> None:
        self._served = served
        self._waiting: dict[tuple[str, str], list[_Query]] = {}
        self._calls: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._hooks: set[asyncio.Task[None]] = set()

    @activity.defn(name=AskInstance.activity)
    async def ask(self, question: AskInstance) -> Answer:
        return await self._gathered(InstanceKey.of(question.key), question.questions, question.tag_keys)

    @activity.defn(name=BeatHook.activity)
    async def heartbeat(self, beat: BeatHook) -> Done:
        """AWS's answer that the instance no longer waits for the hook is ignored, because the next query shows it."""
        caller, region = self._caller(beat.key)
        await asyncio.to_thread(send_heartbeat, caller, region, beat.group, beat.hook, beat.token)
        return Done(at=now())

    @activity.defn(name=EndHook.activity)
    async def complete(self, end: EndHook) -> Done:
        caller, region = self._caller(end.key)
        if await asyncio.to_thread(complete_hook, caller, region, end.group, end.hook, end.token, end.outcome):
            metrics.reacted("complete-hook", end.because)
        elif not attempt.repeated():
            # The hook has timed out, or another client has completed it.
            metrics.reacted("complete-hook", end.because, metrics.Outcome.LATE)
        return Done(at=now())

    def _caller(self, lifecycle: Key) -> tuple[Services, str]:
        key = InstanceKey.of(lifecycle)
        return self._served.caller(key.account, key.region), key.region

    async def _gathered(self, key: InstanceKey, questions: tuple[Question, ...], tag_keys: tuple[str, ...]) -> Answer:
        where = (key.account, key.region)
        query = _Query(key.instance_id, questions, tag_keys, now(), asyncio.get_running_loop().create_future())
        self._waiting.setdefault(where, []).append(query)
        if where not in self._calls:
            self._calls[where] = asyncio.create_task(self._call(where))
        return await query.answer

    async def _call(self, where: tuple[str, str]) -> None:
        try:
            await asyncio.sleep(0)  # lets queries of the same moment join
            while queries := self._waiting.pop(where, []):
                if rest := queries[MOST_AT_ONCE:]:
                    self._waiting[where] = rest
                await self._answer(where, queries[:MOST_AT_ONCE])
        finally:
            del self._calls[where]

    async def _answer(self, where: tuple[str, str], queries: Sequence[_Query]) -> None:
        account, region = where
        questions = {question for each in queries for question in each.questions}
        ids = {each.instance for each in queries}
        try:
            caller = self._served.caller(account, region)
            moment = min(each.at for each in queries)
            found = await asyncio.to_thread(describe, caller, region, ids, questions, moment)
        except Exception as error:
            _refuse(queries, error)
            return
        groups: defaultdict[str, list[_Query]] = defaultdict(list)
        for each in queries:
            groups[found[each.instance].group].append(each)
        _tell(groups.pop("", ()), found, {})
        for group, members in groups.items():
            task = asyncio.create_task(self._answer_group(caller, region, group, members, found))
            self._hooks.add(task)
            task.add_done_callback(self._hooks.discard)

    async def _answer_group(
        self, caller: Services, region: str, group: str, queries: Sequence[_Query], found: Mapping[str, Facts]
    ) -> None:
        try:
            timings = await asyncio.to_thread(hook_timings, caller, region, group)
        except Exception as error:
            _refuse(queries, error)
            return
        _tell(queries, found, timings)


def _tell(queries: Iterable[_Query], found: Mapping[str, Facts], timings: Mapping[str, HookTiming]) -> None:
    for each in queries:
        if not each.answer.done():
            facts = found[each.instance]
            tags = {key: (facts.tags or {}).get(key) for key in each.tag_keys} if each.tag_keys else None
            facts = facts.model_copy(update={"at": each.at, "tags": tags})
            each.answer.set_result(Answer(facts=facts, timings=dict(timings)))


def _refuse(queries: Iterable[_Query], error: Exception) -> None:
    for each in queries:
        if not each.answer.done():
            each.answer.set_exception(error)
