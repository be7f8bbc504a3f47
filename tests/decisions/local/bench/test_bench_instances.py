"""What `perdure bench instances` sends, and which rows it knows."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from typing import Any

import pytest
import typer

from domain.instances.event_parser import Events, parse
from domain.instances.events import InstanceState as State
from domain.instances.message_unwrapping import Invalid, Message
from localcloud.aws.contract import Call
from localcloud.bench import instances_consumer as bench
from localcloud.bench.command import Benchmark, selected_work
from localcloud.bench.instances_storm_figures import hooks_figure
from localcloud.bench.instances_storm_fleet import Member
from localcloud.bench.instances_things import PLACE, life, now, spot_warning

LAST = {f"i-{number}": State.TERMINATED if number % 2 else State.STOPPED for number in range(50)}


def test_a_fifth_is_doubled_a_tenth_malformed_and_every_life_ends_as_it_should() -> None:
    states = (State.PENDING, State.RUNNING, State.STOPPING, State.STOPPED)
    bodies, malformed = bench.disturbed(LAST, states, random.Random(1))
    read = [parse(Message(body=body, received_at=now(), account=PLACE.account, region=PLACE.region)) for body in bodies]
    events = [event for each in read if isinstance(each, Events) for event in each.events]
    assert sum(isinstance(each, Invalid) for each in read) == malformed == 20
    assert Counter(Counter(event.key for event in events).values()) == {1: 160, 2: 40}
    lives = defaultdict(list)
    for event in events:
        assert event.state is not None
        lives[event.instance_id].append((event.time, event.state))
    assert {instance: max(reported)[1] for instance, reported in lives.items()} == LAST
    assert any(reported != sorted(reported) for reported in lives.values())


def test_what_is_sent_is_of_the_place_that_is_served() -> None:
    reported = [json.loads(body) for body in (*life("i-1", (State.RUNNING,), now()), spot_warning("i-1", now()))]
    assert {(each["account"], each["region"]) for each in reported} == {PLACE.where}


def test_storm_outages_and_hooks_are_measured_on_request_only() -> None:
    sizes = {"event_count": 40.0, "storm_instances": 10.0, "outage_seconds": 5.0}
    assert len(selected_work(Benchmark.INSTANCES, "", sizes)) == 4
    assert len(selected_work(Benchmark.INSTANCES, "e,f,h", sizes)) == 5
    assert len(selected_work(Benchmark.INSTANCES, "f2", sizes)) == 1
    with pytest.raises(typer.BadParameter):
        selected_work(Benchmark.INSTANCES, "z", sizes)


def test_a_refused_completion_does_not_count_as_the_end_of_a_hook() -> None:
    """A forged launch hook named the group of a hook that had been completed long before."""
    hooked = Member("i-1", "storm-a", "1", "pool", hooked="storm-a-0", cause="hook", since=100.0)

    def completion(moment: float, status: int) -> Call:
        where: Any = {"service": "autoscaling", "account": "1", "region": "r", "seconds": 0.1, "mutating": True}
        return Call(**where, action="CompleteLifecycleAction", at=moment, status=status, named=("storm-a-0",))

    done, refused = completion(108.0, 200), completion(1528.0, 400)
    assert hooks_figure([hooked], [done, refused], "hook").measured == "1; 8.0 s"
