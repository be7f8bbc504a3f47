"""Which metrics the sweep of OpenStack projects sets, and for how long."""

from __future__ import annotations

from datetime import timedelta

from guarded_calls import Clock
from prometheus_client import CollectorRegistry

from activities.loadbalancers.metrics import SweepCount, Swept
from domain.loadbalancers.cloud.drift_sweep import Orphan

SWEEP = timedelta(minutes=5)
PORTS = tuple(Orphan(kind="port", id=each, name="lbs/web", owner="gone") for each in ("p", "q"))
NEW = Orphan(kind="port", id="r", name="lbs/new", owner="made meanwhile")
SERVER = Orphan(kind="server", id="s", name="web-1", owner="gone")


def test_a_sweep_is_shown_by_project_and_kind_until_the_next_but_one_is_due() -> None:
    registry, clock = CollectorRegistry(), Clock()
    count = SweepCount(clock)
    registry.register(count)

    def orphans(kind: str) -> float | None:
        return registry.get_sample_value("perdure_openstack_orphans", {"project": "shop", "kind": kind})

    def drift() -> float | None:
        return registry.get_sample_value("perdure_openstack_drift", {"project": "shop"})

    assert (drift(), orphans("port")) == (None, None)
    count.swept({"shop": Swept(orphans=(*PORTS, SERVER))}, SWEEP)
    assert (drift(), orphans("port"), orphans("server")) == (0, None, None), "one sweep is no proof"
    count.swept({"shop": Swept(differing=3, orphans=(*PORTS, SERVER, NEW))}, SWEEP)
    assert (drift(), orphans("port"), orphans("server")) == (3, 2, 1)
    clock.now += 2 * SWEEP.total_seconds() - 1
    assert drift() == 3
    clock.now += 2
    assert (drift(), orphans("port")) == (None, None)


def test_the_next_sweep_takes_the_place_of_the_last() -> None:
    registry = CollectorRegistry()
    count = SweepCount(Clock())
    registry.register(count)
    count.swept({"shop": Swept(differing=1, orphans=PORTS)}, SWEEP)
    count.swept({"other": Swept()}, SWEEP)
    assert registry.get_sample_value("perdure_openstack_drift", {"project": "shop"}) is None
    assert registry.get_sample_value("perdure_openstack_drift", {"project": "other"}) == 0
