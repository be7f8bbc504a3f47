"""The condition `Stalled` of a LoadBalancer: True while a problem needs a person.

kstatus (Argo CD, Flux) reads it as "will not progress by itself". Outages, and blockers that end by themselves, do not
change it.
"""

from __future__ import annotations

from datetime import datetime

from domain.loadbalancers.refused_calls import Blocker, Nature
from domain.loadbalancers.resources import LoadBalancer
from domain.refusal import without_request
from domain.resource import Condition, condition_of, timestamp
from domain.writes import JsonPatch

STALLED = "Stalled"
REFUSED, QUOTA_EXCEEDED, BLOCKED = "Refused", "QuotaExceeded", "Blocked"

_REASONS = {Nature.REFUSED: REFUSED, Nature.QUOTA: QUOTA_EXCEEDED}


def stalled_patch(balancer: LoadBalancer, problem: str, blocker: Blocker | None, now: datetime) -> JsonPatch:
    """The patch of the condition Stalled; empty if nothing changes. `problem` is empty if there is none. `blocker` is
    the cloud's refusal of a step; None if no step was refused.
    """
    if blocker is not None and blocker.nature not in _REASONS:
        return {}
    reason = _REASONS[blocker.nature] if blocker is not None and blocker.problem == problem else BLOCKED
    message = without_request(problem)
    before = condition_of(balancer.status.conditions, STALLED)
    shown = (before.reason, before.message) if before is not None else None
    if shown == ((reason, message) if problem else None):
        return {}
    conditions = [each for each in balancer.status.conditions if each.type != STALLED]
    if problem:
        since = before.last_transition_time if before is not None and before.reason == reason else None
        conditions.append(
            Condition(
                type=STALLED,
                status="True",
                reason=reason,
                message=message,
                last_transition_time=since or timestamp(now),
            )
        )
    dumped = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in conditions]
    return {"status": {"conditions": dumped or None}}
