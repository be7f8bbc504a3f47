"""When objects in sync are compared with 3scale, which sends no events.

each hour            all objects with their tenant's lists (`drift.py`); some Products and Backends completely
next pass            an object that differed, that a person retries, or whose last change may be incomplete
soon after a change  the changed object completely, because its passes used the cached state of 3scale
"""

from __future__ import annotations

from collections.abc import Sized
from datetime import datetime, timedelta

from domain.control_annotations import retry_wanted
from domain.resource import ObjectMeta
from domain.threescale.observed import Memory, Observed
from domain.threescale.passes import LONGEST_PASS

# DRIFT: each new value requests a comparison with 3scale. LOOKED: the last value that was honoured.
DRIFT = "perdure.dev/3scale-drift"
LOOKED = "perdure.dev/3scale-looked"

SWEEP = timedelta(hours=1)
# The number of a tenant's Products and Backends that one sweep compares with all parts; each needs about ten reads.
COMPARED_PER_SWEEP = 20
# For how long a sweep compares objects completely. Objects that it does not reach wait for their next turn.
COMPARES_FOR = LONGEST_PASS / 2
# How long after the last change of an object the object is read completely, which finds manual changes of its parts.
COMPARED_AFTER_CHANGE = timedelta(seconds=30)


def drift_noted(meta: ObjectMeta) -> bool:
    return meta.annotations.get(DRIFT, "") != meta.annotations.get(LOOKED, "")


def is_compared(meta: ObjectMeta, memory: Memory, now: datetime, *, begun: bool) -> bool:
    due = memory.compare_at is not None and memory.compare_at <= now
    return begun or due or bool(retry_wanted(meta)) or drift_noted(meta)


def compared_next(world: Observed, memory: Memory, now: datetime, *, begun: bool) -> datetime | None:
    """When an object in sync is compared next, if no person or sweep requests it before; None if not scheduled."""
    if world.look:
        return None
    return now + COMPARED_AFTER_CHANGE if world.recalled and begun else memory.compare_at


def no_sweep(memory: Memory, objects: Sized, now: datetime, interval: timedelta) -> tuple[str, datetime | None] | None:
    """Why no sweep is due, and when the next one is; None if a sweep is due."""
    if not objects:
        return "there is no object to compare with 3scale", None
    if memory.next_sweep is None:
        return "the first sweep is made one interval after the first object appears", now + interval
    return ("all tenants have been compared", memory.next_sweep) if now < memory.next_sweep else None
