"""The ledger of calls, by tenant, method and route (the declared path, without identifiers)."""

from __future__ import annotations

from localcloud.ledger import LedgerBook
from localcloud.threescale.contract import Call, Ledger

COUNTED_BY = ("tenant", "method", "route", "mutating")


def ledger_book(recent: int) -> LedgerBook[Ledger]:
    return LedgerBook(Ledger, COUNTED_BY, _failed, recent)


def _failed(call: Call) -> bool:
    return call.status >= 400
