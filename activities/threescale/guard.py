"""What one tenant of 3scale may take of this process (`activities/guard.py`).

Tenants share a process and nothing else. A tenant that hangs holds its few calls until they time out; then nothing is
sent to it for a while, and the others never wait for it. A refused caller comes back with a whole pass. While one call
tests whether the tenant answers again, which may take as long as a call, the rest stays away for the time of a pause:
hundreds of objects that came back every few seconds would take the processor from the other tenants.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from activities.guard import PAUSE, CallGuard


class Guard(CallGuard):
    """One tenant's."""

    one: ClassVar[str] = "tenant"
    cloud: ClassVar[str] = "3scale"
    busy: ClassVar[str] = "TenantBusy"
    silent: ClassVar[str] = "TenantSilent"
    full_delay: ClassVar[timedelta] = timedelta(seconds=1)
    tried_delay: ClassVar[timedelta] = PAUSE
