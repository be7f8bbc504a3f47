"""Bulk queries to AWS: the instances of all AWSMachines and Nodes, and the groups of all AWSMachinePools.

AWSMachine and Node do not name their account. If several accounts are served in the provider id's region, the instance
belongs to the account in which EC2 knows it. An instance that EC2 knows in no account counts as missing only if exactly
one served account could have the instance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from activities.aws.instances import MOST_AT_ONCE, MOST_GROUPS, describe, describe_groups
from activities.aws.session import Services
from activities.instances.aws_queries import ServedPlaces
from domain.instances.event_verification import Facts, Question
from domain.instances.provider_ids import region_of_provider_id
from domain.instances.resources import AWSMachine, Node
from domain.instances.served_queues import Place
from domain.instances.workflow_ids import GroupKey, InstanceKey
from domain.model import Model
from engine.errors import ApiError

T = TypeVar("T")
A = TypeVar("A")

_QUESTIONS = (Question.INSTANCE, Question.STATUS)


class Bulk(Model):
    """AWS's answers about many instances. `troubles` has the errors of accounts and regions that gave no answer;
    `facts` lacks their instances.
    """

    facts: dict[str, tuple[InstanceKey, Facts]] = {}
    troubles: tuple[str, ...] = ()


class BulkGroups(Model):
    """The lifecycle states of each group's instances, by instance id. `troubles` is the same as in `Bulk`."""

    instances: dict[GroupKey, dict[str, str]] = {}
    troubles: tuple[str, ...] = ()


async def ask_about_all(
    served: ServedPlaces,
    machines: Mapping[str, AWSMachine | Node],
    moment: datetime,
    progress: Callable[[str], object],
    account_of: Callable[[AWSMachine | Node], str] = lambda _: "",
) -> Bulk:
    """Query each account and region about the instances that may be there. `progress` is called before each call."""
    answers: dict[str, dict[Place, Facts]] = {each: {} for each in machines}
    place_counts: dict[str, int] = dict.fromkeys(machines, 0)
    troubles: set[str] = set()
    for place in served.places:
        ids = [each for each, machine in machines.items() if _may_live_in(place, machine, account_of(machine))]
        for each in ids:
            place_counts[each] += 1
        describing = partial(describe, questions=_QUESTIONS, moment=moment)
        answered = await _answers(served, place, ids, MOST_AT_ONCE, describing, progress, troubles)
        for each, facts in answered.items():
            answers[each][place] = facts
    owned = ((each, _own(answered, place_counts[each])) for each, answered in answers.items())
    return Bulk(
        facts={each: (_key(own[0], each), own[1]) for each, own in owned if own is not None},
        troubles=tuple(sorted(troubles)),
    )


async def ask_about_groups(
    served: ServedPlaces, groups: Collection[GroupKey], progress: Callable[[str], object]
) -> BulkGroups:
    """Query the groups. A group that Auto Scaling does not know has no instances. Groups outside the served accounts
    and regions are left out.
    """
    found: dict[GroupKey, dict[str, str]] = {}
    troubles: set[str] = set()
    for place in served.places:
        keys = sorted((each for each in groups if (each.account, each.region) == place.where), key=str)
        found |= await _answers(served, place, keys, MOST_GROUPS, _describe_groups, progress, troubles)
    return BulkGroups(instances=found, troubles=tuple(sorted(troubles)))


async def _answers(
    served: ServedPlaces,
    place: Place,
    keys: Sequence[T],
    most: int,
    describing: Callable[[Services, str, Sequence[T]], Mapping[T, A]],
    progress: Callable[[str], object],
    troubles: set[str],
) -> dict[T, A]:
    facts: dict[T, A] = {}
    for first in range(0, len(keys), most):
        some = keys[first : first + most]
        progress(f"{place}: {first} of {len(keys)}")
        try:
            facts |= await asyncio.to_thread(describing, served.caller(place.account, place.region), place.region, some)
        except ApiError as error:
            troubles.add(error.message)
    return facts


def _describe_groups(caller: Services, region: str, groups: Sequence[GroupKey]) -> dict[GroupKey, dict[str, str]]:
    facts = describe_groups(caller, region, [each.group for each in groups])
    return {each: facts.get(each.group, {}) for each in groups}


def _may_live_in(place: Place, machine: AWSMachine | Node, account: str) -> bool:
    region = region_of_provider_id(machine.spec.provider_id)
    return region in ("", place.region) and account in ("", place.account)


def _own(answered: Mapping[Place, Facts], place_count: int) -> tuple[Place, Facts] | None:
    knowing = [(place, facts) for place, facts in answered.items() if facts.found]
    if len(knowing) == 1:
        return knowing[0]
    return next(iter(answered.items())) if not knowing and place_count == 1 and answered else None


def _key(place: Place, instance: str) -> InstanceKey:
    return InstanceKey(account=place.account, region=place.region, instance_id=instance)
