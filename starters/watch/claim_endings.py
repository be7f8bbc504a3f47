"""Which changes are steps of an end that is being carried out: claim, handle and resources that go together.

    handle marked ──► resources gone ──► claim marked ──► handle gone ──► claim gone

Whoever carries the end out makes all of these changes, within some tens of milliseconds; a wake at each would cost its
workflow four more tasks, and one of them comes as it closes, which Temporal answers by letting it begin anew. That an
end is carried out is seen from its cause, which comes before all of this: a lifespan that is over, for which the
claim's workflow looks by itself, or a claim on its way out, for which it has been woken.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.resource import parse_timestamp
from starters.watch.index import Index
from starters.watch.projection import Projection

# Clocks of several computers differ, and what goes right before its end is looked at right afterwards.
ABOUT_TO_END = timedelta(seconds=3)


def claim_ending(before: Projection | None, after: Projection | None, index: Index) -> bool:
    """A claim that goes as its end has come, or has gone after it was marked."""
    if after is None:
        return before is not None and before.deleting
    return after.deleting and _over(after) and not _let_go(before, after)


def handle_ending(before: Projection | None, after: Projection | None, index: Index) -> bool:
    """A handle that goes as its end or its claim's has come, or with its claim, or has gone after it was marked."""
    if after is None:
        return before is not None and before.deleting
    namespace, _, name = after.fact("claim").partition("/")
    claim = index.get(RESOURCE_CLAIM.name, namespace, name) if name else None
    goes = _over(after) or (claim is not None and (claim.deleting or _over(claim)))
    return after.deleting and goes and not _let_go(before, after)


def managed_ending(before: Projection | None, after: Projection | None, index: Index, namespace: str) -> bool:
    """A managed object that goes while its handle, which is in the operator's namespace, does."""
    subject = after or before
    if subject is None or (after is not None and not after.deleting):
        return False
    handle = index.get(RESOURCE_HANDLE.name, namespace, subject.fact("handle"))
    return handle is not None and handle.deleting


def _let_go(before: Projection | None, after: Projection) -> bool:
    """Whether it was paused until now: nobody carries its end out yet."""
    return before is not None and bool(before.fact("paused")) and not after.fact("paused")


def _over(known: Projection) -> bool:
    """Whether its end has come, or is about to: then its lifecycle looks by itself."""
    end = parse_timestamp(known.fact("end"))
    return end is not None and end <= datetime.now(UTC) + ABOUT_TO_END
