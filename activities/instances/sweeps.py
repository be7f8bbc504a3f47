"""The sweep: every instance of every place is looked at once in a while, for those whose events never came.

Of Spot, Auto Scaling and state no event is promised to arrive. DescribeInstances and DescribeInstanceStatus show 200
instances a call; whoever stands otherwise than its label says, or has a scheduled event that its annotation does not
know of, has its workflow told the answer, which then asks nothing itself. An AWSMachine does not say its account: its
region stands in its provider id, and of several accounts of that region the one that knows the instance is its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from temporalio import activity
from temporalio.client import Client

from activities.aws.instances import MOST_AT_ONCE, describe
from activities.instances import metrics
from activities.instances.asking import Ground
from activities.instances.known import KnownInstances
from domain.decision import Decision, Outcome
from domain.instances.actions import Answer
from domain.instances.handover import ANSWERED
from domain.instances.names import InstanceKey, region_of_provider_id
from domain.instances.passes import SweepInstances, SweepMemory, SweepWorld
from domain.instances.places import Place
from domain.instances.resources import AWSMachine
from domain.instances.resync import differs
from domain.instances.verification import Facts, Question
from engine.clock import now
from engine.errors import ApiError
from engine.temporal import tell

_ASKED = (Question.INSTANCE, Question.STATUS)


class SweepActivities:
    """The activity over all places."""

    def __init__(self, client: Client, known: KnownInstances, ground: Ground, interval: timedelta) -> None:
        self._client = client
        self._known = known
        self._ground = ground
        self._interval = interval

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.sweep,)

    @activity.defn(name=SweepInstances.activity)
    async def sweep(self, look: SweepInstances) -> SweepWorld:
        """One sweep; none before its time has come."""
        moment, due = now(), look.memory.next_sweep
        if due is not None and moment < due:
            return _world(look, "all instances have been looked at", due)
        await self._known.ready()
        machines = self._known.instances()
        if not machines:
            return _world(look, "there is no AWSMachine with an instance", None)
        found, troubles = await self._found(machines, moment)
        differing = {key: facts for key, facts in found.items() if differs(machines[key.instance_id], facts)}
        if not look.dry_run:
            for key, facts in differing.items():
                await tell(self._client, key.lifecycle, ANSWERED, Answer(facts=facts))
                metrics.RESYNC.labels(facts.state.value if facts.state else "absent").inc()
        why = f"{len(found)} instances were looked at, {len(differing)} differed"
        return _world(look, "; ".join((why, *sorted(set(troubles)))), moment + self._interval)

    async def _found(
        self, machines: Mapping[str, AWSMachine], moment: datetime
    ) -> tuple[dict[InstanceKey, Facts], list[str]]:
        """What EC2 says of each instance whose account is known, or becomes so by the answer."""
        answers: dict[str, dict[Place, Facts]] = {each: {} for each in machines}
        troubles: list[str] = []
        asked: dict[str, int] = dict.fromkeys(machines, 0)
        for place in self._ground.places:
            ids = [each for each, machine in machines.items() if _may_live_in(place, machine)]
            for each in ids:
                asked[each] += 1
            for first in range(0, len(ids), MOST_AT_ONCE):
                some = ids[first : first + MOST_AT_ONCE]
                activity.heartbeat(f"{place}: {first} of {len(ids)}")
                try:
                    caller = self._ground.caller(place.account, place.region)
                    told = await asyncio.to_thread(partial(describe, caller, place.region, some, _ASKED, moment))
                except ApiError as error:
                    troubles.append(error.message)
                    continue
                for each, facts in told.items():
                    answers[each][place] = facts
        owned = ((each, _own(told, asked[each])) for each, told in answers.items())
        return {_key(own[0], each): own[1] for each, own in owned if own is not None}, troubles


def _may_live_in(place: Place, machine: AWSMachine) -> bool:
    region = region_of_provider_id(machine.spec.provider_id)
    return not region or region == place.region


def _own(told: Mapping[Place, Facts], asked: int) -> tuple[Place, Facts] | None:
    """The place that knows the instance; where one was asked alone, also that it does not."""
    knowing = [(place, facts) for place, facts in told.items() if facts.found]
    if len(knowing) == 1:
        return knowing[0]
    return next(iter(told.items())) if not knowing and asked == 1 and told else None


def _key(place: Place, instance: str) -> InstanceKey:
    return InstanceKey(account=place.account, region=place.region, instance_id=instance)


def _world(look: SweepInstances, why: str, due: datetime | None) -> SweepWorld:
    decision = Decision(
        phase="Sweeping" if due else "Idle",
        outcome=Outcome.SETTLED,
        why=why,
        deadline=due,
        at_deadline="look at all instances" if due else "",
    )
    return SweepWorld(key=look.key, known=SweepMemory(next_sweep=due), decision=decision)
