"""The limits of one tenant of 3scale in this process (`activities/guard.py`).

Tenants share a process and nothing else. A tenant that hangs occupies its few calls until they time out; then nothing
is sent to it for a while, and the others never wait for it. A refused caller comes back with a whole pass. While one
call tests whether the tenant answers again, which may take as long as a call, the other calls are refused for the time
of a pause: if hundreds of objects came back every few seconds, the other tenants would lack CPU.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from activities.guard import PAUSE, CallGuard


class Guard(CallGuard):
    """The guard of one tenant."""

    one: ClassVar[str] = "tenant"
    cloud: ClassVar[str] = "3scale"
    busy: ClassVar[str] = "TenantBusy"
    silent: ClassVar[str] = "TenantSilent"
    full_delay: ClassVar[timedelta] = timedelta(seconds=1)
    tried_delay: ClassVar[timedelta] = PAUSE
