from __future__ import annotations

from localcloud.aws.contract import Call, Ledger
from localcloud.ledger import LedgerBook

COUNTED_BY = ("service", "action", "account", "region", "mutating")


def ledger_book(recent: int) -> LedgerBook[Ledger]:
    return LedgerBook(Ledger, COUNTED_BY, _failed, recent)


def _failed(call: Call) -> bool:
    return call.error is not None
