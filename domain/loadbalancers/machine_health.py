"""A machine's health, from its agent's reports: whether it is ready, and whether it must be replaced.

    booting --first report--> running <--> ready
       | boot timeout            | unhealthy for 3 minutes
       v                         v
       `--------> marked <-------'
                    |--healthy again--> the mark is removed
                    `--2 minutes later--> condemned: its set replaces it

As in yawol, the first report is due within the boot timeout (`boot_timeout.py`), and a machine that reports only some
of the conditions is unhealthy at once. A machine whose server failed or was lost is condemned at once; its lifecycle
records the reason in an annotation. A mark for deletion is an annotation with the time, which is authoritative, and a
condition, which the agent may overwrite. yawol writes only the condition.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum

from domain.decision import earliest
from domain.loadbalancers.boot_timeout import BOOT_TIMEOUT, boot_deadline, waits_for_server
from domain.loadbalancers.constants import GIVEN_UP_ANNOTATION, MARKED_AT_ANNOTATION
from domain.loadbalancers.resources import LoadBalancerMachine, MachineCondition
from domain.model import Model
from domain.resource import reckonable_timestamp, timestamp
from domain.writes import JsonPatch

CONFIG_READY = "ConfigReady"
ENVOY_READY = "EnvoyReady"
ENVOY_UP_TO_DATE = "EnvoyUpToDate"
KEEPALIVED_MASTER = "KeepalivedMaster"
MARKED = "MarkedForDeletion"
CONFIG_REJECTED = "EnvoyConfigurationFailed"  # ConfigReady's reason if Envoy or the agent rejects the configuration
# The conditions that decide whether a machine is healthy, in the order in which they are checked.
RELEVANT = (CONFIG_READY, ENVOY_READY, ENVOY_UP_TO_DATE)

TRUE = "True"
_PENDING = "PendingDeletion"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_TICK = timedelta(seconds=1)  # Kubernetes stores whole seconds


class Timings(Model):
    window: timedelta = timedelta(minutes=3)  # how long a report is valid, and how long a fault is tolerated
    boot: timedelta = BOOT_TIMEOUT
    grace: timedelta = timedelta(minutes=2)  # how much time a machine that is marked for deletion has to recover


class HealthState(StrEnum):
    BOOTING = "booting"  # has not reported yet, within the boot timeout
    RUNNING = "running"  # reports, but is not ready
    READY = "ready"
    MARKED = "marked"  # to be replaced unless it recovers within the grace period
    CONDEMNED = "condemned"  # to be replaced


class Health(Model):
    state: HealthState
    ready: bool = False  # a machine that has recovered is ready, even before its mark is removed
    why: str = ""  # what is wrong with the machine; empty if healthy
    reported: bool = False  # its agent has reported at least once
    hopeless: bool = False  # its server cannot be created or is gone, so the machine will never report
    mark: datetime | None = None  # the time to write as the mark; None if no mark is to be written
    unmark: bool = False  # its mark must be removed
    # When the state may change without any write; None if it never does. Expiring reports are not considered, because
    # the watcher notices them.
    next_change: datetime | None = None


DEFAULT_TIMINGS = Timings()


def health_of(machine: LoadBalancerMachine, now: datetime, timings: Timings = DEFAULT_TIMINGS) -> Health:
    conditions = reports_of(machine)
    if given_up := machine.metadata.annotations.get(GIVEN_UP_ANNOTATION):
        return Health(state=HealthState.CONDEMNED, why=given_up, reported=bool(conditions), hopeless=True)
    fault = unmet(machine, now, timings.window, stable=False)
    doomed = _doomed(machine, now, timings)
    marked = marked_at(machine)
    ahead = [moment for moment in _turning_points(machine, timings) if moment and moment > now]
    base = Health(
        state=HealthState.READY if not fault else HealthState.RUNNING if conditions else HealthState.BOOTING,
        ready=not fault,
        why=fault,
        reported=bool(conditions),
        next_change=earliest(ahead),
    )
    if not doomed:
        has_mark = marked is not None or _condition(machine, MARKED) is not None
        return base.model_copy(update={"unmark": has_mark})
    since = marked if marked is not None else now
    end = since + timings.grace
    if end <= now:
        return base.model_copy(update={"state": HealthState.CONDEMNED, "why": doomed, "next_change": None})
    noted = marked is not None and MARKED_AT_ANNOTATION in machine.metadata.annotations
    mark = None if noted and _condition(machine, MARKED) is not None else since
    return base.model_copy(update={"state": HealthState.MARKED, "why": doomed, "mark": mark, "next_change": end})


def unmet(machine: LoadBalancerMachine, now: datetime, window: timedelta, *, stable: bool) -> str:
    """Why the machine is not healthy; empty if it is healthy.

    `window` is how long a report is valid. With `stable`, a condition that is not True is ignored until its
    status is older than `window`.
    """
    limit = now - window
    if not reports_of(machine):
        return "no conditions set"
    for type_ in RELEVANT:
        found = _condition(machine, type_)
        if found is None:
            return f"required condition {type_} not present on machine"
        if found.status != TRUE and (not stable or _moment(found.last_transition_time) < limit):
            return f"condition {type_} is in status {found.status} with reason: {found.reason or ''}"
        if _moment(found.last_heartbeat_time) < limit:
            return f"condition {type_} heartbeat is stale"
    return ""


def reports_of(machine: LoadBalancerMachine) -> tuple[MachineCondition, ...]:
    return tuple(each for each in machine.status.conditions if each.type != MARKED)


def is_master(machine: LoadBalancerMachine) -> bool:
    found = _condition(machine, KEEPALIVED_MASTER)
    return found is not None and found.status == TRUE


def last_report(machine: LoadBalancerMachine) -> datetime | None:
    beats = [reckonable_timestamp(each.last_heartbeat_time) for each in reports_of(machine)]
    known = [beat for beat in beats if beat is not None]
    return max(known) if known else None


def marked_at(machine: LoadBalancerMachine) -> datetime | None:
    noted = reckonable_timestamp(machine.metadata.annotations.get(MARKED_AT_ANNOTATION))
    if noted is not None:
        return noted
    found = _condition(machine, MARKED)
    return reckonable_timestamp(found.last_transition_time) if found is not None and found.status == TRUE else None


def mark_patches(machine: LoadBalancerMachine, health: Health) -> tuple[JsonPatch, JsonPatch]:
    """Patches that set or remove the mark for deletion, in annotation and conditions; each is empty if up to date."""
    if health.mark is None and not health.unmark:
        return {}, {}
    moment = timestamp(health.mark) if health.mark else None
    mark = MachineCondition(type=MARKED, status=TRUE, reason=_PENDING, message=health.why, last_transition_time=moment)
    conditions = (*reports_of(machine), mark) if moment else reports_of(machine)
    dumped = [each.model_dump(mode="json", exclude_none=True) for each in conditions]
    noted = machine.metadata.annotations.get(MARKED_AT_ANNOTATION) == moment
    shown = (_condition(machine, MARKED) is not None) == bool(moment)
    return (
        {} if noted else {"metadata": {"annotations": {MARKED_AT_ANNOTATION: moment}}},
        {} if shown else {"status": {"conditions": dumped}},
    )


def _doomed(machine: LoadBalancerMachine, now: datetime, timings: Timings) -> str:
    if not reports_of(machine):
        deadline = boot_deadline(machine, timings.boot)
        if waits_for_server(machine) or (deadline is not None and now < deadline):
            return ""
    return unmet(machine, now, timings.window, stable=True)


def expires_at(machine: LoadBalancerMachine, timings: Timings = DEFAULT_TIMINGS) -> datetime | None:
    """When the oldest relevant heartbeat expires; None without a heartbeat. Heartbeats wake no lifecycle, so the
    watcher compares this time with the clock.
    """
    beats = [_condition(machine, type_) for type_ in RELEVANT]
    moments = [reckonable_timestamp(each.last_heartbeat_time) for each in beats if each is not None]
    # A report is still valid at the end of its window.
    known = [moment + timings.window + _TICK for moment in moments if moment is not None]
    return min(known) if known else None


def _turning_points(machine: LoadBalancerMachine, timings: Timings) -> list[datetime | None]:
    if not reports_of(machine):
        return [] if waits_for_server(machine) else [boot_deadline(machine, timings.boot)]
    found = (_condition(machine, type_) for type_ in RELEVANT)
    faults = [reckonable_timestamp(each.last_transition_time) for each in found if each and each.status != TRUE]
    return [moment + timings.window + _TICK if moment else None for moment in faults]


def _moment(text: str | None) -> datetime:
    return reckonable_timestamp(text) or _LONG_AGO


def _condition(machine: LoadBalancerMachine, type_: str) -> MachineCondition | None:
    return next((each for each in machine.status.conditions if each.type == type_), None)
