"""The process's shared settings, clock, faults and ledger; one process is one cloud.

`MOTO` is held while moto handles a request or state is saved, since its backends are not thread-safe; waits (latency,
delays) happen without it.
"""

from __future__ import annotations

from threading import RLock

from localcloud.aws.clock import Clock
from localcloud.aws.contract import (
    DEFAULT_ACCESS_KEY_ID,
    DEFAULT_SECRET_ACCESS_KEY,
    PAYER_ACCOUNT_ID,
    Config,
)
from localcloud.aws.events_contract import EventFault
from localcloud.aws.faults import FaultBoard
from localcloud.aws.ledger import ledger_book
from localcloud.faults import Board

MOTO = RLock()
clock = Clock()
faults = FaultBoard()
event_faults: Board[EventFault] = Board()
ledger = ledger_book(Config().recent_calls)
payer_account = PAYER_ACCOUNT_ID
payer_access_key_id = DEFAULT_ACCESS_KEY_ID
payer_secret_access_key = DEFAULT_SECRET_ACCESS_KEY

_config = Config()


def config() -> Config:
    return _config


def set_config(changed: Config) -> None:
    global _config
    _config = changed
    ledger.keep(changed.recent_calls)


def set_payer_key(access_key_id: str, secret_access_key: str) -> None:
    """Set the payer's key; call it before the first request."""
    global payer_access_key_id, payer_secret_access_key
    payer_access_key_id, payer_secret_access_key = access_key_id, secret_access_key
