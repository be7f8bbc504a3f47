"""What one tenant of 3scale may take of this process (`activities/guard.py`).

Tenants share a process and nothing else: one that hangs has its few calls under way until they time out, and then
nothing is sent to it for a while; the others never wait for it. Whoever is refused comes back with a whole pass: while
one call is out to see whether the tenant answers again, which takes as long as a call may, the rest stays away for the
time of a pause. Hundreds of objects that came every few seconds would take the processor from the other tenants'.
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
