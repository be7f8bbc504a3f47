"""Whether yawol's controllers still lead: which lease is whose, how often it is asked for, when it counts no more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from activities import replaced_operator
from activities.loadbalancers.replaced_operator import LEASES, Predecessor
from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, SERVICE
from engine.errors import Absent, Unavailable
from engine.kube import KubeApi
from engine.kube.json import JsonObject

KINDS = (SERVICE, LOAD_BALANCER, LOAD_BALANCER_SET, LOAD_BALANCER_MACHINE)


class Leases:
    """The API server, as far as leases go."""

    def __init__(self) -> None:
        self.held: dict[str, JsonObject] = {}
        self.asked: list[str] = []
        self.down = False

    def hold(self, kind: Kind, renewed: datetime | None = None) -> None:
        moment = renewed or datetime.now(UTC)
        self.held[LEASES[kind.name]] = {
            "spec": {"holderIdentity": "yawol-1", "leaseDurationSeconds": 60, "renewTime": moment.isoformat()}
        }

    async def get(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        self.asked.append(f"{namespace}/{name}")
        if self.down:
            raise Unavailable("no answer")
        if name not in self.held:
            raise Absent(f"no {name}")
        return self.held[name]


@pytest.fixture
def leases() -> Leases:
    return Leases()


@pytest.fixture
def yawol(leases: Leases) -> Predecessor:
    return Predecessor(cast(KubeApi, leases), "kube-system")


@pytest.mark.parametrize("kind", KINDS, ids=str)
async def test_a_kind_is_left_alone_while_its_own_controller_leads(
    leases: Leases, yawol: Predecessor, kind: Kind
) -> None:
    leases.hold(kind)
    leader = await yawol.leads(kind)
    assert "yawol still leads (yawol-1)" in leader
    assert f"kube-system/{LEASES[kind.name]}" in leader
    others = [await yawol.leads(other) for other in KINDS if other is not kind]
    assert others == ["", "", ""]


async def test_a_lease_that_is_not_renewed_counts_no_more(leases: Leases, yawol: Predecessor) -> None:
    leases.hold(LOAD_BALANCER, datetime.now(UTC) - timedelta(hours=1))
    assert await yawol.leads(LOAD_BALANCER) == ""


async def test_many_passes_ask_once(leases: Leases, yawol: Predecessor) -> None:
    for _ in range(20):
        assert await yawol.leads(LOAD_BALANCER_MACHINE) == ""
    assert leases.asked == [f"kube-system/{LEASES[LOAD_BALANCER_MACHINE.name]}"]


async def test_a_controller_that_comes_back_is_seen_at_the_next_question(
    leases: Leases, yawol: Predecessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await yawol.leads(LOAD_BALANCER_SET) == ""
    monkeypatch.setattr(replaced_operator, "ASKED_EVERY_SECONDS", 0.0)
    leases.hold(LOAD_BALANCER_SET)
    assert await yawol.leads(LOAD_BALANCER_SET)
    leases.held.clear()
    assert await yawol.leads(LOAD_BALANCER_SET) == ""


async def test_not_to_know_who_leads_is_no_permission(leases: Leases, yawol: Predecessor) -> None:
    leases.hold(LOAD_BALANCER)
    leases.down = True
    with pytest.raises(Unavailable):
        await yawol.leads(LOAD_BALANCER)
    leases.down = False
    assert await yawol.leads(LOAD_BALANCER), "and it is asked again"
