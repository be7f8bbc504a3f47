"""The limits on calls to one member account in this process (`activities/circuit_breaker.py`).

While a call waits for the account's session it counts already, because it occupies a thread. The payer's calls have no
limit. Its AssumeRole counts as a call of the member account.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar

from activities.circuit_breaker import CallGuard

FULL_DELAY = timedelta(seconds=2)


class Guard(CallGuard):
    one: ClassVar[str] = "account"
    cloud: ClassVar[str] = "AWS"
    busy: ClassVar[str] = "AccountBusy"
    silent: ClassVar[str] = "AccountSilent"
    full_delay: ClassVar[timedelta] = FULL_DELAY

    def __init__(self, account: str, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(f"account {account}", most, clock=clock)
