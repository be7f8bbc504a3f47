"""`perdure bench instances`: the event consumer's figures (docs/benchmarks.md describes the rows).

The instances exist in the emulator, since EC2 is queried to confirm events.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial

from domain.instances.constants import INTERRUPTION_LABEL, STATE_LABEL
from domain.instances.events import InstanceState as State
from domain.model import Model
from localcloud.bench.claims_telling import step, told
from localcloud.bench.figures import Figure, Found, percentile
from localcloud.bench.instances_hooks import held
from localcloud.bench.instances_storm import hour
from localcloud.bench.instances_things import PLACE, Scene, life, now, scene, spot_warning, state_change
from localcloud.bench.laboratory import PATIENCE_SECONDS
from localcloud.services import API_SERVER, AWS, EVENTS, TEMPORAL, WATCH, WORKER

ON_REQUEST = frozenset({"e", "f1", "f2", "f3", "h", "i"})  # minutes each

_OURS = (WORKER, WATCH, EVENTS, TEMPORAL)
_PACED_PER_SECOND = 10.0
_STORM_SECONDS = 120.0
_MET_BY_OUTAGE = 10
_URGENT = 10
_LIVED = (State.PENDING, State.RUNNING, State.STOPPING, State.STOPPED)
_LIFE = _LIVED * 5
_KILLED = (EVENTS, WORKER, TEMPORAL)
# Examples of malformed messages.
_MALFORMED = ("", "<html></html>", "null", "[]", "{}", '{"source":"aws.ec2"}', "[" * 5000, '{"a": NaN}')


class Sizes(Model):
    event_count: int = 5000
    end_to_end: int = 100
    storm_instances: int = 1000
    outage_seconds: float = 600.0
    held_seconds: float = 270.0
    fleet: int = 200
    storm_minutes: float = 60.0


async def alone(sizes: Sizes, rows: frozenset[str]) -> Found:
    command = [sys.executable, "-m", "starters.events.consumer_benchmark"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    found: Mapping[str, float] = json.loads(output)
    figures = (
        Figure(
            row="a",
            what="events a second: parsed, looked up, dispatched and acknowledged in memory",
            measured=found["per_second"],
            goal="≥ 2000",
            note=f"{found['cpu_ms_per_event']} ms of CPU each, {found['machines']:.0f} machines",
        ),
        Figure(
            row="a",
            what=f"from receiving to deleting, p99 at {found['paced_per_second']:.0f} a second",
            measured=found["paced_p99_ms"],
            unit="ms",
            goal="< 20",
            note=f"median {found['paced_median_ms']} ms",
        ),
        Figure(
            row="d",
            what=f"memory of the process with {found['machines']:.0f} machines in the index",
            measured=found["process_mib"],
            unit="MiB",
            goal="< 300",
            note=f"the index {found['index_mib']} MiB",
        ),
        Figure(row="d", what="one look-up", measured=found["look_up_us"], unit="µs", goal="< 50"),
    )
    return told(Found(figures=tuple(each for each in figures if each.row in rows)))


async def end_to_end(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with scene() as on:
        step(f"{sizes.end_to_end} instances")
        instances = await on.make(sizes.end_to_end)
        await _labelled(on, instances, State.RUNNING)
        await on.lab.quiet()
        until = now()
        lives = [life(each, _LIVED, until) for each in instances]
        four = [body for bodies in zip(*lives, strict=True) for body in bodies]
        burst = await _burst(on, instances, four, _LIVED[-1], f"{len(four)} events at once", goals=("≥ 20", "≤ 45"))
        await _answered(on)
        paced = await _paced(on, instances)
        await _answered(on)
        at = now() + timedelta(seconds=1)
        one = [state_change(each, State.STOPPED, at) for each in instances]
        single = await _burst(
            on, instances, one, State.STOPPED, f"{len(one)} at once, each of another instance", goals=("≥ 60", "≤ 20")
        )
    return told(Found(figures=(*burst, *paced, *single)))


async def _answered(on: Scene) -> None:
    await asyncio.sleep(45)
    await on.lab.quiet()


async def _burst(
    on: Scene, instances: Sequence[str], bodies: Sequence[str], last: State, what: str, *, goals: tuple[str, str]
) -> list[Figure]:
    before = on.lab.cpu()
    sent = await on.send(bodies)
    await on.empty()
    done = await _labelled(on, instances, last)
    after = on.lab.cpu()
    spent = {name: 1000 * (after[name] - before[name]) / len(bodies) for name in before}
    note = ", ".join(f"{name} {ms:.1f}" for name, ms in spent.items() if name in _OURS)
    others = ", ".join(f"{name} {ms:.1f}" for name, ms in spent.items() if name not in _OURS)
    return [
        Figure(
            row="b",
            what=f"{what}: events handled and labelled a second",
            measured=round(len(bodies) / (done - sent[0]), 1),
            goal=goals[0],
        ),
        Figure(
            row="b",
            what=f"{what}: CPU of our processes and Temporal for each",
            measured=round(sum(ms for name, ms in spent.items() if name in _OURS), 1),
            unit="ms",
            goal=goals[1],
            note=f"{note}; beside them {others}",
        ),
    ]


async def _paced(on: Scene, instances: Sequence[str]) -> list[Figure]:
    on.labels.forget()
    at = now() + timedelta(seconds=1)
    sent = await on.send([state_change(each, State.STOPPING, at) for each in instances], per_second=_PACED_PER_SECOND)
    await _labelled(on, instances, State.STOPPING)
    late = [
        seen - began
        for each, began in zip(instances, sent, strict=True)
        if (seen := on.labels.first(each, STATE_LABEL, State.STOPPING)) is not None
    ]
    return [
        Figure(
            row="b",
            what="from sending a message until its label, p95 at 10 a second",
            measured=round(percentile(late, 0.95), 2),
            unit="s",
            goal="< 2",
            note=f"median {percentile(late, 0.5):.2f} s of {len(late)}",
        )
    ]


async def _labelled(on: Scene, instances: Sequence[str], state: State) -> float:
    return await on.until(lambda: all(on.labels.value(each, STATE_LABEL) == state for each in instances))


async def broken(sizes: Sizes, rows: frozenset[str]) -> Found:
    dice = random.Random(7)  # noqa: S311 - repeatable on purpose
    states = _LIFE
    count = max(2, sizes.event_count // len(states))
    async with scene(PERDURE_INSTANCES_REACTIONS="terminated=delete-machine") as on:
        step(f"{count} instances")
        instances = await on.make(count)
        ended = instances[: count // 2]
        await _labelled(on, instances, State.RUNNING)
        await asyncio.to_thread(on.ec2.terminate_instances, InstanceIds=ended)
        await asyncio.to_thread(on.ec2.stop_instances, InstanceIds=instances[count // 2 :])
        last = {each: State.TERMINATED if each in ended else State.STOPPED for each in instances}
        bodies, malformed = disturbed(last, states, dice)
        mark = on.lab.audit_mark()
        step(f"{len(bodies)} messages, {malformed} of them malformed; processes are killed")
        killing = asyncio.create_task(_kill_all(on))
        sent = await on.send(bodies)
        await killing
        done = await on.empty()
        settled = await _settled(on, last)
        deleted = on.lab.requests_since(mark)["delete machines"]
        reasons = Counter(on.reasons())
    right = sum(settled.get(each) == state for each, state in last.items())
    figures = (
        Figure(
            row="c",
            what=f"{len(bodies)} messages, consumer, worker and Temporal killed twice each: instances with the right "
            "final label",
            measured=f"{right} of {count}",
            goal="all",
            note=f"the queue is empty {done - sent[0]:.0f} s after the first was sent",
        ),
        Figure(row="c", what="deletions of Machines", measured=f"{deleted}", goal=f"{len(ended)}"),
        Figure(
            row="c",
            what="malformed messages among the dead letters, each with its reason",
            measured=f"{sum(number for reason, number in reasons.items() if reason)}",
            goal=f"≥ {malformed}",
            note=", ".join(f"{reason or 'without reason'} {number}" for reason, number in reasons.most_common()),
        ),
    )
    return told(Found(figures=figures, breakdown={"c: dead letters": dict(reasons)}))


def disturbed(last: Mapping[str, State], states: Sequence[State], dice: random.Random) -> tuple[list[str], int]:
    """The messages of all instances and the number of malformed ones. A fifth of the messages is repeated, a tenth is
    out of order; for every ten a malformed one is added.
    """
    until = now()
    lives = [life(each, (*states[:-1], state), until) for each, state in last.items()]
    bodies = [body for bodies in zip(*lives, strict=True) for body in bodies]
    count = len(bodies)
    for _ in range(count // 10):
        one, other = dice.randrange(count), dice.randrange(count)
        bodies[one], bodies[other] = bodies[other], bodies[one]
    for body in dice.sample(bodies, count // 5):
        bodies.insert(dice.randrange(len(bodies)), body)
    malformed = [body for body, _ in zip(itertools.cycle(_MALFORMED[1:]), range(count // 10), strict=False)]
    for body in malformed:
        bodies.insert(dice.randrange(len(bodies)), body)
    return bodies, len(malformed)


async def _kill_all(on: Scene) -> None:
    for name in (*_KILLED, *_KILLED):
        await asyncio.sleep(4)
        pid = await asyncio.to_thread(on.lab.deployment.kill, name)
        step(f"{name} is killed")
        await asyncio.to_thread(on.lab.deployment.wait_service, name, other_than_pid=pid)


async def _settled(on: Scene, last: Mapping[str, State]) -> dict[str, str]:
    try:
        await on.until(lambda: all(on.labels.value(each, STATE_LABEL) == state for each, state in last.items()), 90)
    except TimeoutError:
        step("not all labels are right")
    return {each: on.labels.value(each, STATE_LABEL) for each in last}


async def storm(sizes: Sizes, rows: frozenset[str]) -> Found:
    count = sizes.storm_instances
    async with scene() as on:
        step(f"{count} instances")
        instances = await on.make(count)
        await _labelled(on, instances, State.RUNNING)
        await on.lab.quiet()
        at = now()
        warnings = [spot_warning(each, at) for each in instances]
        changes = [[state_change(each, state, at) for each in instances] for state in (State.STOPPING, State.STOPPED)]
        bodies = [body for bodies in zip(warnings, *changes, strict=True) for body in bodies]
        await on.stop_silently(instances)
        step(f"{len(bodies)} messages within {_STORM_SECONDS:.0f} s")
        on.labels.forget()
        sent = await on.send(bodies, per_second=len(bodies) / _STORM_SECONDS)
        await on.empty()
        noticed = dict(zip(instances, sent[:: len(bodies) // count], strict=True))
        seen = {each: on.labels.first(each, INTERRUPTION_LABEL, "spot-terminate") for each in instances}
    late = [at - noticed[each] for each, at in seen.items() if at is not None]
    figures = (
        Figure(
            row="e",
            what=f"{count} Spot notices among {len(bodies)} events in 2 min: labelled",
            measured=f"{len(late)} of {count}",
            goal="all",
        ),
        Figure(
            row="e",
            what="from sending a notice until its label, longest",
            measured=round(max(late, default=0.0), 1),
            unit="s",
            goal="< 120",
            note=f"p50 {percentile(late, 0.5):.1f} s, p95 {percentile(late, 0.95):.1f} s",
        ),
    )
    return told(Found(figures=figures))


async def urgent(sizes: Sizes, rows: frozenset[str]) -> Found:
    count = max(2, sizes.event_count // len(_LIFE))
    async with scene() as on:
        step(f"{count} instances")
        instances = await on.make(count)
        await _labelled(on, instances, State.RUNNING)
        await on.lab.quiet()
        taken, until = instances[:_URGENT], now()
        lives = [life(each, (*_LIFE[:-1], State.RUNNING), until) for each in instances]
        bodies = [body for bodies in zip(*lives, strict=True) for body in bodies]
        async with on.lab.frozen(EVENTS):
            step(f"{len(bodies)} changes of state, then {len(taken)} Spot notices")
            await on.send([*bodies, *(spot_warning(each, now()) for each in taken)])
            on.labels.forget()
            before, began = on.lab.cpu(), time.time()
        await on.until(lambda: all(on.labels.first(each, INTERRUPTION_LABEL, "spot-terminate") for each in taken))
        spent = {name: seconds - before[name] for name, seconds in on.lab.cpu().items()}
        left = await asyncio.to_thread(on.left)
        late = [(on.labels.first(each, INTERRUPTION_LABEL, "spot-terminate") or 0.0) - began for each in taken]
    return told(
        Found(
            figures=(
                Figure(
                    row="g",
                    what=f"{len(taken)} Spot notices behind {len(bodies)} waiting events: the last labelled after",
                    measured=round(max(late), 1),
                    unit="s",
                    goal="< 10",
                    note=f"the first after {min(late):.1f} s; {left} messages were left then; CPU "
                    + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent.items() if seconds >= 0.1),
                ),
            )
        )
    )


async def outage(row: str, service: str, sizes: Sizes, rows: frozenset[str]) -> Found:
    seconds = sizes.outage_seconds
    # Sweeps would hide losses.
    async with scene(PERDURE_SWEEP="86400") as on:
        instances = await on.make(_MET_BY_OUTAGE)
        await _labelled(on, instances, State.RUNNING)
        await on.stop_silently(instances)
        step(f"{service} is unavailable for {seconds:.0f} s")
        changes = [state_change(each, State.STOPPED, now()) for each in instances]
        # If SQS itself is stopped, messages can only be sent before.
        if service == AWS:
            await on.send(changes)
        async with on.lab.frozen(service):
            if service != AWS:
                await on.send(changes)
            await asyncio.sleep(seconds)
            left = "" if service == AWS else f"{on.left()} of {len(instances)} messages kept meanwhile, "
        began = time.time()
        done = await on.empty(seconds * 2 + 300)
        shown = await on.until(
            lambda: all(on.labels.first(each, STATE_LABEL, State.STOPPED) for each in instances), PATIENCE_SECONDS
        )
        dead = on.left(PLACE.dead_letters)
    return told(
        Found(
            figures=(
                Figure(
                    row=row,
                    what=f"{service} unavailable for {seconds:.0f} s: events applied afterwards, lost",
                    measured=f"{len(instances)}, {dead}",
                    goal=f"{len(instances)}, 0",
                    note=f"{left}all applied {max(0.0, max(done, shown) - began):.0f} s after it came back",
                ),
            )
        )
    )


async def hooks(sizes: Sizes, rows: frozenset[str]) -> Found:
    return await held(sizes.held_seconds)


async def everything(sizes: Sizes, rows: frozenset[str]) -> Found:
    return await hour(sizes.fleet, sizes.storm_minutes)


MEASUREMENTS = (
    (frozenset({"a", "d"}), alone),
    (frozenset({"b"}), end_to_end),
    (frozenset({"c"}), broken),
    (frozenset({"e"}), storm),
    (frozenset({"f1"}), partial(outage, "f1", API_SERVER)),
    (frozenset({"f2"}), partial(outage, "f2", TEMPORAL)),
    (frozenset({"f3"}), partial(outage, "f3", AWS)),
    (frozenset({"g"}), urgent),
    (frozenset({"h"}), hooks),
    (frozenset({"i"}), everything),
)
