"""Which changes are steps of a deletion in progress: claim, handle and resources that are deleted together.

    handle deleting ──► resources gone ──► claim deleting ──► handle gone ──► claim gone

The workflow that deletes these objects makes the changes itself; each wake would cost it a workflow task. Such a
deletion is recognised by an expired lifespan, or by a claim that is being deleted.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from domain.claims import RESOURCE_CLAIM
from domain.resource import parse_timestamp
from starters.watch.projection import Projection
from starters.watch.projection_index import Index

# An object deleted at most this long before its expiry counts as expired: clocks differ, and the object's workflow runs
# at the expiry anyway.
ABOUT_TO_END = timedelta(seconds=3)


def claim_ending(before: Projection | None, after: Projection | None, index: Index) -> bool:
    """Whether an expired claim is being deleted, or a claim that was being deleted has disappeared."""
    if after is None:
        return before is not None and before.deleting
    return after.deleting and _over(after) and not _let_go(before, after)


def handle_ending(before: Projection | None, after: Projection | None, index: Index) -> bool:
    """Whether a handle that was being deleted has disappeared, or a handle is being deleted for one of these reasons:
    the handle or its claim has expired, or its claim is being deleted.
    """
    if after is None:
        return before is not None and before.deleting
    claim = claim_of(after, index)
    goes = _over(after) or (claim is not None and (claim.deleting or _over(claim)))
    return after.deleting and goes and not _let_go(before, after)


def claim_of(handle: Projection, index: Index) -> Projection | None:
    namespace, _, name = handle.fact("claim").partition("/")
    return index.get(RESOURCE_CLAIM.name, namespace, name) if name else None


def _let_go(before: Projection | None, after: Projection) -> bool:
    """Whether the object's pause has just ended. A wake must then continue its deletion."""
    return before is not None and bool(before.fact("paused")) and not after.fact("paused")


def _over(known: Projection) -> bool:
    end = parse_timestamp(known.fact("end"))
    return end is not None and end <= datetime.now(UTC) + ABOUT_TO_END
