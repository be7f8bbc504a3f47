"""Forced release, so that a refused clean-up never blocks a deletion forever.

The release of a customer's account is forced by a person, or by Perdure a day after the deletion was requested. What
Perdure created in the account stays there. The release of a pool's account is forced only by a person, because its key
may still work. The released Account is Failed, and its annotation `perdure.dev/uncleaned` has the reason. No claim gets
the Account until a person has cleaned it and removed the annotation.

To force a release, a person sets `perdure.dev/let-go: "<why>"` (`perdure abandon --skip-cleanup`) on the Account or,
for a customer's account, on the claim.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.accounts.resources import Account, AccountClaim
from domain.resource import ObjectMeta

FORCE_RELEASE = "perdure.dev/let-go"
PATIENCE = timedelta(hours=24)


def release_reason(*objects: Account | AccountClaim | None) -> str:
    return next((why for each in objects if each is not None if (why := _reason_given(each.metadata))), "")


def released_at(meta: ObjectMeta) -> datetime | None:
    """When a customer's account is released by force: a day after the deletion was requested; None if it was not."""
    return meta.deletion_timestamp + PATIENCE if meta.deletion_timestamp else None


def _reason_given(meta: ObjectMeta) -> str:
    return meta.annotations.get(FORCE_RELEASE, "").strip()
