"""Scheduled effects in the cloud: state changes of instances, timeouts of hooks, delayed events.

A thread runs each effect when it is due by the emulator's clock. Effects are stored as a name and plain arguments,
since another process may run them after a restart.
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections.abc import Callable
from threading import Condition
from typing import Any

from moto.core.base_backend import BackendDict, BaseBackend

from localcloud.aws import call as calls
from localcloud.aws import runtime
from localcloud.aws.call import CallInHand

log = logging.getLogger(__name__)

# Changes of the clock wake the thread; this is the fallback.
_LONGEST_SLEEP_SECONDS = 60.0

Deed = Callable[..., None]
"""Called with account, region and the arguments that were given to `later`."""

_deeds: dict[str, Deed] = {}
_changed = Condition(runtime.MOTO)
_at_work = False


class Pump(BaseBackend):
    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.due: list[tuple[float, int, str, tuple[Any, ...]]] = []
        self.serial = 0


pumps: BackendDict[Pump] = BackendDict(Pump, "perdure-pump", use_boto3_regions=False)


def install() -> None:
    getattr(BackendDict, "_instances").append(pumps)  # noqa: B009 - generic class variable


def deed(name: str, doing: Deed) -> None:
    _deeds[name] = doing


def later(account: str, region: str, seconds: float, name: str, *arguments: Any) -> None:
    """Schedule an effect after `seconds` of the emulator's clock; 0 runs it at once. Requires moto's lock."""
    if seconds <= 0:
        _deeds[name](account, region, *arguments)
        return
    pump = _pump(account, region)
    pump.serial += 1
    heapq.heappush(pump.due, (runtime.clock.now() + seconds, pump.serial, name, arguments))
    calls.mark_changed()
    _changed.notify_all()


def catch_up(account: str, region: str) -> None:
    """Run the effects that are due. Requires moto's lock."""
    regional = dict.get(pumps, account)
    pump = dict.get(regional, region) if regional is not None else None
    if pump is not None:
        _work(pump)


def clock_changed() -> None:
    with runtime.MOTO:
        _changed.notify_all()


def start(changed: Callable[[set[calls.Chunk]], None]) -> None:
    """Start the thread. It calls `changed` with the chunks (account and region) that the effects have touched."""
    threading.Thread(target=_run, args=(changed,), name="pump", daemon=True).start()


def _run(changed: Callable[[set[calls.Chunk]], None]) -> None:
    while True:
        with runtime.MOTO:
            for account, regional in list(dict.items(pumps)):
                for region, pump in list(dict.items(regional)):
                    if pump.due and pump.due[0][0] <= runtime.clock.now():
                        changed(_touched(account, region, pump))
            _changed.wait(_sleep())


def _touched(account: str, region: str, pump: Pump) -> set[calls.Chunk]:
    hand = CallInHand("perdure", "pump", region, account=account)
    calls.set_current(hand)
    try:
        _work(pump)
    finally:
        calls.set_current(None)
    return hand.touched | {(account, region)}


def _work(pump: Pump) -> None:
    global _at_work
    if _at_work:
        return
    _at_work = True
    try:
        while pump.due and pump.due[0][0] <= runtime.clock.now():
            _, _, name, arguments = heapq.heappop(pump.due)
            calls.touch(pump.account_id, pump.region_name)
            calls.mark_changed()
            try:
                _deeds[name](pump.account_id, pump.region_name, *arguments)
            except Exception:  # a failing effect must not block the others
                log.exception("%s%r of %s in %s failed", name, arguments, pump.account_id, pump.region_name)
    finally:
        _at_work = False


def _sleep() -> float:
    instants = [pump.due[0][0] for regional in dict.values(pumps) for pump in dict.values(regional) if pump.due]
    if not instants:
        return _LONGEST_SLEEP_SECONDS
    wait = (min(instants) - runtime.clock.now()) / runtime.clock.reading().speed
    return min(max(wait, 0.0), _LONGEST_SLEEP_SECONDS)


def _pump(account: str, region: str) -> Pump:
    regional = pumps[account]
    pump: Pump | None = dict.get(regional, region)
    if pump is None:
        pump = Pump(region, account)
        dict.__setitem__(regional, region, pump)
    calls.touch(account, region)
    return pump
