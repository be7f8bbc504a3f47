"""The limits on calls to one member account.

A call that waits for the account's session counts too, because it occupies a thread. The payer's calls have no limit,
but its AssumeRole counts as a call to the member account.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from activities.call_limits import CallGuard


class Guard(CallGuard):
    one: ClassVar[str] = "account"
    cloud: ClassVar[str] = "AWS"
    busy: ClassVar[str] = "AccountBusy"
    silent: ClassVar[str] = "AccountSilent"
    full_delay: ClassVar[timedelta] = timedelta(seconds=2)
