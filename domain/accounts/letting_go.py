"""When something that cannot be removed is let go: a release never wedges for ever.

A customer may take away every way into the account while Perdure still has things there, and a pool's account may
refuse to be cleaned. The deletion then says what refuses, tries on, and ends in one of two ways, whichever comes first:

- an operator says so, by the annotation `perdure.dev/let-go: "<why>"` on the Account (`perdure release`); for a
  customer's account the claim's annotation counts as well, since nothing of anybody else is at stake;
- for a customer's account, a day after its deletion was asked for: nobody but the customer can do more there, and the
  namespace of the claim is held up by it.

What is left behind then is named in the lifecycle's story and by `perdure audit`. A pool's account is never let go by
time, and goes to nobody: it stays Failed and without a claim, where operators' tools look for it, and bears
`perdure.dev/uncleaned` with the reason. While it does, no claim is given it, whatever its state: its key may be live,
and the tenant's things may be in it. Deleting the Account cleans it; whoever cleans it by hand removes the annotation.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.accounts.resources import Account, AccountClaim
from domain.resource import ObjectMeta

LET_GO = "perdure.dev/let-go"
UNCLEANED = "perdure.dev/uncleaned"
PATIENCE = timedelta(hours=24)


def told_to(*objects: Account | AccountClaim | None) -> str:
    """Why a person has one of these let go, empty if nobody has."""
    return next((why for each in objects if each is not None if (why := _said(each.metadata))), "")


def patience_ends(meta: ObjectMeta) -> datetime | None:
    """Until when a customer's account is tried, once it is being deleted."""
    return meta.deletion_timestamp + PATIENCE if meta.deletion_timestamp else None


def _said(meta: ObjectMeta) -> str:
    return meta.annotations.get(LET_GO, "").strip()
