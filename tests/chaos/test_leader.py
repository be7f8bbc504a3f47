"""One of two watchers leads, and goes while twenty things a second change: another leads then, and nothing is lost.

What changes before the end, between the end and the next leader, and after that are different claims: otherwise a lost
change would be made up for by the next one of the same claim.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from chaos_claims_lab import ClaimsLab
from chaos_claims_oracle import POOLBOY, at
from chaos_cluster import until
from chaos_installation import Process, Record
from chaos_load import CHANGES_A_SECOND, Load, new_group

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(600)]

LEASE = "perdure-watch"
WARM_SECONDS = 5.0
PATIENCE_SECONDS = 120.0
# What the worker has not done yet when the last thing has changed, beside other work on two cores.
SETTLE_SECONDS = 240.0


class Watchers:
    """Two that elect one of them."""

    def __init__(self, lab: ClaimsLab) -> None:
        self._lab = lab
        self.processes = {name: self._process(name) for name in ("first", "second")}

    def _process(self, name: str) -> Process:
        lease = {"PERDURE_WATCH_LEASE_NAMESPACE": POOLBOY}
        return Process(self._lab.deployment, ("watch",), self._lab.settings | lease, label=f"watch-{name}")

    def leader(self) -> str:
        """The name of the leader, empty if there is none."""
        holder = str(at(self._lab.cluster.get("leases", POOLBOY, LEASE), "spec", "holderIdentity") or "")
        return next((name for name, each in self.processes.items() if holder.endswith(f"_{each.port}")), "")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Both, in the place of the lab's own."""
        self._lab.watch.kill()
        try:
            for each in self.processes.values():
                each.start()
                each.await_ready()
            until(self.leader, "one leads", PATIENCE_SECONDS)
            yield
        finally:
            for each in self.processes.values():
                each.stop()
            self._lab.watch.start()
            self._lab.watch.await_ready()


ENDS = {
    "killed": signal.SIGKILL,
    "killed-once-more": signal.SIGKILL,
    "killed-a-third-time": signal.SIGKILL,
    "frozen": signal.SIGSTOP,
    "terminated": signal.SIGTERM,
}


@pytest.mark.parametrize("end", ENDS)
def test_another_watcher_leads_and_nothing_that_changed_is_lost(
    claims_lab: ClaimsLab, record: Record, record_property: Callable[[str, object], None], end: str
) -> None:
    record([("watch", f"the leader of two under {CHANGES_A_SECOND} changes a second")], end)
    lab = claims_lab
    lab.clear()
    lab.oracle.forget()
    watchers = Watchers(lab)
    with watchers.running():
        meanwhile, afterwards = (new_group(lab) for _ in range(2))
        load = Load(lab, seed=len(end))
        lab.settle()
        began = time.monotonic()
        load.start()
        try:
            time.sleep(WARM_SECONDS)
            leader = watchers.leader()
            load.turn_to(meanwhile)
            watchers.processes[leader].send(ENDS[end])
            gone = time.monotonic()
            until(lambda: watchers.leader() not in ("", leader), "the other leads", PATIENCE_SECONDS)
            record_property("takeover", round(time.monotonic() - gone, 1))
            load.turn_to(afterwards)
            time.sleep(WARM_SECONDS)
        finally:
            load.end()
        record_property("changes", load.made)
        record_property("changes_a_second", round(load.made / (time.monotonic() - began), 1))
        record_property("seconds", round(lab.settle(SETTLE_SECONDS), 1))
        if end == "frozen":
            watchers.processes[leader].send(signal.SIGCONT)
            until(watchers.processes[leader].stands_by, "the former leader waits in standby", PATIENCE_SECONDS)
        if end == "terminated":
            until(watchers.processes[leader].ended, "the former leader has ended", PATIENCE_SECONDS)
        if end in ("frozen", "terminated"):
            lab.settle()
        lab.audit()
