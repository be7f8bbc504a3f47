"""The limits of one tenant of 3scale.

While one call tests whether a hanging tenant answers again, all other calls are refused and retried after a pause.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from activities.call_limits import CallGuard
from activities.circuit_breaker import PAUSE


class Guard(CallGuard):
    one: ClassVar[str] = "tenant"
    cloud: ClassVar[str] = "3scale"
    busy: ClassVar[str] = "TenantBusy"
    silent: ClassVar[str] = "TenantSilent"
    full_delay: ClassVar[timedelta] = timedelta(seconds=1)
    tried_delay: ClassVar[timedelta] = PAUSE
