"""What goes first, so that it does not wait behind thousands of others.

| queue | goes first |
|---|---|
| wakes (`starters/watch/wake_queue.py`) | deletions; people's retries and pauses |
| activities | observations at a deadline; writes for which a person waits |
| EC2's events (`domain/instances/event_urgency.py`) | Spot and capacity notices, lifecycle hooks, ended instances |
| workflow tasks | lifecycles that many objects wait for |
"""

from __future__ import annotations

from domain.decision import Action
from domain.identity import Kind


def is_urgent_activity(action: Action, *, at_deadline: bool) -> bool:
    return at_deadline or action.urgent


def is_urgent_lifecycle(kind: Kind) -> bool:
    return not kind.plural
