"""Forced release, so that a deletion never blocks forever.

A customer may revoke all access while Perdure still has objects there, and a pool's account may refuse its clean-up.
The deletion shows the refusal, retries, and ends in one of two ways:

- a person sets the annotation `perdure.dev/let-go: "<why>"` on the Account (`perdure abandon --skip-cleanup`), for a
  customer's account also on the claim;
- for a customer's account, a day after the deletion was requested, because only the customer can help, and the claim's
  namespace is blocked.

A pool's account is never released by time, and not reused, because its key may be live and it may contain the tenant's
data: it stays Failed without a claim, with the reason in `perdure.dev/uncleaned`. Deleting the Account cleans it; after
a manual clean-up, remove the annotation.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.accounts.resources import Account, AccountClaim
from domain.resource import ObjectMeta

FORCE_RELEASE = "perdure.dev/let-go"
UNCLEANED = "perdure.dev/uncleaned"
PATIENCE = timedelta(hours=24)


def release_reason(*objects: Account | AccountClaim | None) -> str:
    """Empty if the release is not forced."""
    return next((why for each in objects if each is not None if (why := _said(each.metadata))), "")


def released_at(meta: ObjectMeta) -> datetime | None:
    """For a customer's account in deletion."""
    return meta.deletion_timestamp + PATIENCE if meta.deletion_timestamp else None


def _said(meta: ObjectMeta) -> str:
    return meta.annotations.get(FORCE_RELEASE, "").strip()
