"""Simulates keepalived's election among machines that share a virtual address, and keepalived's statistics.

The master stays until a machine has a higher priority. A new master has the highest priority and, among equals, the
highest IP address (RFC 9568, section 6.4.3). A dead master is noticed at once; the real keepalived needs twelve
seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import NamedTuple

ADVERTISEMENT_SECONDS = 4.0
STATISTICS_SECONDS = 20.0
# keepalived polls the agent at this interval; it is ready after one success, and unready after this many failures.
CHECK_SECONDS = 2.0
FALL = 3

_STATISTICS = """VRRP Instance: ENVOY
  Advertisements:
    Received: {received}
    Sent: {sent}
  Became master: {became}
  Released master: {released}
  Packet Errors:
    Length: 0
    TTL: 0
    Invalid Type: 0
    Advertisement Interval: 0
    Address List: 0
  Authentication Errors:
    Invalid Type: 0
    Type Mismatch: 0
    Failure: 0
  Priority Zero:
    Received: 0
    Sent: 0
"""


class Candidate(NamedTuple):
    name: str
    address: str
    priority: int


def elect(master: str | None, candidates: Sequence[Candidate]) -> str | None:
    if not candidates:
        return None
    highest = max(each.priority for each in candidates)
    best = [each for each in candidates if each.priority == highest]
    if any(each.name == master for each in best):
        return master
    return max(best, key=lambda each: ip_address(each.address)).name


class Statistics:
    def __init__(self) -> None:
        self.master = False
        self._became = self._released = 0
        self._at: float | None = None
        self._sent = self._received = 0.0

    def turn(self, *, master: bool, now: float) -> bool:
        """Record whether the machine is master; returns whether that changed. `now` comes from any monotonic clock."""
        if self._at is not None:
            passed = (now - self._at) / ADVERTISEMENT_SECONDS
            self._sent += passed if self.master else 0
            self._received += 0 if self.master else passed
        self._at = now
        if master == self.master:
            return False
        self.master = master
        self._became += master
        self._released += not master
        return True

    def text(self) -> str:
        return _STATISTICS.format(
            received=int(self._received), sent=int(self._sent), became=self._became, released=self._released
        )
