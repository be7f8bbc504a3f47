"""How long Auto Scaling waits for a lifecycle hook, and how often a heartbeat extends the wait.

A heartbeat is due after half of the hook's timeout, and at least every five minutes. The wait ends after 48 hours or
100 timeouts, even with heartbeats.
"""

from __future__ import annotations

from datetime import timedelta

from domain.model import Model

LONGEST_HOOK = timedelta(hours=48)
_MOST_TIMEOUTS = 100
_LONGEST_HEARTBEAT = timedelta(minutes=5)


class HookTiming(Model):
    heartbeat_timeout: timedelta = timedelta(hours=1)
    global_timeout: timedelta | None = None

    @property
    def limit(self) -> timedelta:
        return min(self.global_timeout or LONGEST_HOOK, LONGEST_HOOK, self.heartbeat_timeout * _MOST_TIMEOUTS)

    @property
    def heartbeat(self) -> timedelta:
        return min(self.heartbeat_timeout / 2, _LONGEST_HEARTBEAT)


DEFAULT_TIMING = HookTiming()
