"""Forced release, so that a refused clean-up never blocks a deletion forever.

The release of a customer's account is forced by a person, or a day after the deletion was requested; what Perdure
created in the account stays. The release of a pool's account is forced only by a person, because its key may still
work: the Account stays Failed, without a claim, and is not reused before the AWS account is cleaned.

To force a release, a person sets `perdure.dev/let-go: "<why>"` (`perdure abandon --skip-cleanup`) on the Account or,
for a customer's account, on the claim. `perdure.dev/uncleaned` on a pool's Account keeps the reason. Remove that
annotation after a manual clean-up.
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
    """When the release of a customer's account is forced: a day after its deletion was requested; None before."""
    return meta.deletion_timestamp + PATIENCE if meta.deletion_timestamp else None


def _reason_given(meta: ObjectMeta) -> str:
    return meta.annotations.get(FORCE_RELEASE, "").strip()
