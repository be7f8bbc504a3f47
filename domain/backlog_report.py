"""Which waiting work counts as a backlog."""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.model import Model

# A backlog younger than this is not reported: workers with free slots are about to take its tasks.
UNHURRIED = timedelta(seconds=2)
# An activity of a lifecycle without an object is late after this time. (A batch of the binder takes 15 s.)
LONG = timedelta(seconds=30)


class Backlog(Model):
    what: str
    since: datetime | None
    why: str


def of_queue(queue: str, kind: str, tasks: int, age: timedelta, now: datetime) -> Backlog | None:
    if not tasks or age < UNHURRIED:
        return None
    why = "workers start fewer tasks than arrive: they, Temporal or the API server lack CPU, or more workers are needed"
    return Backlog(what=f"{tasks} {kind} tasks in the queue {queue}", since=now - age, why=why)


def of_batches(who: str, waits_for: str) -> Backlog:
    why = "the lifecycle handles them in batches, one after another"
    return Backlog(what=f"{who}: {waits_for}", since=None, why=why)


def of_step(who: str, attempt: int, since: datetime) -> Backlog | None:
    if attempt <= 1:
        return None
    why = f"attempt {attempt}: no worker has completed it in time, or its code failed"
    return Backlog(what=f"{who}: its next step", since=since, why=why)


def of_activity(who: str, name: str, attempt: int, failure: str, since: datetime, now: datetime) -> Backlog | None:
    if attempt > 1:
        why = f"attempt {attempt}; the previous one: {failure or 'no answer in time'}"
    elif now - since > LONG:
        why = "it takes longer than usual: too little CPU, or the called API is slow"
    else:
        return None
    return Backlog(what=f"{who}: {name}", since=since, why=why)
