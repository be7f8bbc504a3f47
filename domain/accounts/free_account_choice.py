"""Chooses accounts of a pool for claims, or says why a claim gets no account.

The accounts are indexed once per pass, because a large pool may get many claims at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain

from domain.accounts.claim_holder import holds
from domain.accounts.constants import UNCLEANED
from domain.accounts.resources import PROGRESSING_STATES, Account, AccountClaim, AccountState, oldest_first


class Candidates:
    def __init__(self, accounts: Sequence[Account]) -> None:
        self._by_link: defaultdict[tuple[str, str], list[Account]] = defaultdict(list)
        for account in accounts:
            self._by_link[account.spec.claim_link_namespace, account.spec.claim_link].append(account)
        ordered = oldest_first(filter(is_free, accounts))
        by_entity: defaultdict[str, list[Account]] = defaultdict(list)
        for account in ordered:
            by_entity[account.spec.legal_entity.id].append(account)
        for own in by_entity.values():
            own.sort(key=lambda account: not account.status.reused)  # a stable sort: equal accounts stay ordered by age
        # Iterators, so that taken accounts are visited only once.
        self._own = {entity: iter(own) for entity, own in by_entity.items()}
        self._fresh = iter([a for a in ordered if not a.spec.legal_entity.id and not a.status.reused])
        self._taken: set[str] = set()

    def linked(self, claim: AccountClaim) -> Account | None:
        named = self._by_link.get((claim.metadata.namespace, claim.metadata.name), ())
        return next((account for account in named if holds(claim, account)), None)

    def take(self, claim: AccountClaim) -> Account | None:
        """Take the oldest reused account of the claim's legal entity, else the oldest unused account. None if there is
        neither.
        """
        for account in chain(self._own.get(claim.spec.legal_entity.id, ()), self._fresh):
            if account.metadata.name not in self._taken:  # an unused account may be in both iterators
                self._taken.add(account.metadata.name)
                return account
        return None


class Rejections:
    def __init__(self, accounts: Sequence[Account]) -> None:
        self._empty = not accounts
        self._kept = Counter(a.spec.legal_entity.id for a in accounts if is_free(a) and a.spec.legal_entity.id)
        self._all_kept = self._kept.total()
        self._held = sum(bool(a.spec.claim_link or a.status.claimed) for a in accounts)
        self._unready = sum(a.status.state in PROGRESSING_STATES | {""} for a in accounts)
        self._failed = sum(a.failed for a in accounts)
        self._paused = sum(a.on_hold for a in accounts)
        self._uncleaned = sum(_uncleaned(a) for a in accounts)

    def of(self, claim: AccountClaim) -> str:
        if self._empty:
            return "the pool has no accounts"
        parts = {
            "held by other claims": self._held,
            "reserved for other legal entities": self._all_kept - self._kept[claim.spec.legal_entity.id],
            "not ready yet": self._unready,
            "failed": self._failed,
            "paused": self._paused,
            "released without a clean-up": self._uncleaned,
        }
        return ", ".join(f"{number} {what}" for what, number in parts.items() if number) or "no account fits"


def is_free(account: Account) -> bool:
    spec, status = account.spec, account.status
    held = status.claimed or spec.claim_link or account.on_hold or account.metadata.deleting or spec.byoc
    held = held or _uncleaned(account)
    return not held and status.state == AccountState.READY and bool(spec.aws_account_id) and bool(spec.iam_user_secret)


def _uncleaned(account: Account) -> bool:
    return UNCLEANED in account.metadata.annotations
