"""The area's pass: one activity observes an object of any kind, decides, acts and reports.

    object, referents, Secrets ─► decide (`reconciliation.py`) ─► actions, one after the other ─► nothing left to do
                                     ▲                                 │
                                     └───── answers of 3scale ◄────────┘

A pass hands its refusals to the next pass, so that refused calls are retried after growing pauses; a wake drops the
refusals. The workflow does not store 3scale's state (`digests.py`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.decision import Queue
from domain.model import Model
from domain.passes import Observation, Pass, PassedWorld
from domain.threescale.observed import Memory, Phase

# A large product takes some hundred calls, each of which may take its whole timeout.
LONGEST_PASS = timedelta(minutes=10)
HEARTBEAT = timedelta(seconds=10)

# The phases in which a person's retry works. A retry compares even an object in sync, because 3scale may have changed.
RETRYABLE = frozenset(each.value for each in (Phase.SYNCED, Phase.ORPHAN, Phase.INVALID, Phase.FAILED, Phase.DELETING))


class ThreescaleWorld(PassedWorld):
    known: Memory = Memory()


class PassObject(Pass):
    activity: ClassVar[str] = "threescale.pass_object"
    queue: ClassVar[str] = Queue.THREESCALE
    result: ClassVar[type[Model] | None] = ThreescaleWorld
    start_to_close: ClassVar[timedelta] = LONGEST_PASS
    heartbeat: ClassVar[timedelta] = HEARTBEAT

    memory: Memory = Memory()

    @property
    def summary(self) -> str:
        return "reconcile the object with 3scale"


class SweepTenants(Observation):
    activity: ClassVar[str] = "threescale.sweep_tenants"
    queue: ClassVar[str] = Queue.THREESCALE
    result: ClassVar[type[Model] | None] = ThreescaleWorld
    start_to_close: ClassVar[timedelta] = LONGEST_PASS
    heartbeat: ClassVar[timedelta] = HEARTBEAT

    memory: Memory = Memory()

    @property
    def summary(self) -> str:
        return "compare all tenants with their objects, and wake the objects that differ"
