"""What must never be passed, whatever loops: the organization's limit, shared by several pools; the create budget."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos_cluster import OPERATOR, until
from chaos_effects import TAKING
from chaos_lab import Lab, Record
from chaos_proxy import Break

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(400)]

BUDGET = 5


@pytest.fixture
def poor(tmp_path: Path) -> Iterator[Lab]:
    """An installation of its own, that may create few accounts in an hour."""
    lab = Lab(tmp_path / "state", worker={"PERDURE_ACCOUNTS_CREATE_BUDGET": str(BUDGET)})
    yield lab
    lab.close()


def _limit(lab: Lab, most: int) -> None:
    """At most so many accounts, the payer included."""
    patch = {"data": {"account-limit": str(most)}}
    lab.cluster.patch("configmaps", OPERATOR, "aws-account-operator-configmap", patch)


def _stalled(lab: Lab, pool: str) -> str:
    found = lab.cluster.get("accountpools", OPERATOR, pool) or {}
    conditions = (found.get("status") or {}).get("conditions") or []
    return next((c["reason"] for c in conditions if c["type"] == "Stalled" and c["status"] == "True"), "")


def _ready(lab: Lab) -> int:
    return sum((a.get("status") or {}).get("state") == "Ready" for a in lab.cluster.list("accounts"))


def test_several_pools_at_once_never_pass_the_limit_and_use_all_of_it(poor: Lab, record: Record) -> None:
    record([("pool", "three pools of three, room for four")], "account-limit reached, worker killed on the way")
    room = 4
    _limit(poor, room + 1)
    config = "default:\n  default: true\nsecond: {}\nthird: {}\n"
    poor.cluster.patch("configmaps", OPERATOR, "aws-account-operator-configmap", {"data": {"accountpool": config}})
    create = next(e for row in TAKING for e in row if e.activity == "aws.create_account")
    armed = poor.arm(create, Break.AFTER)
    for pool in ("default", "second", "third"):
        poor.make_pool(pool, 3)
    poor.await_struck([armed])
    poor.worker.kill()
    poor.lift()
    poor.worker.start()
    most = 0

    def filled() -> bool:
        nonlocal most
        most = max(most, len(poor.emulator.world().members()))
        assert most <= room
        return _ready(poor) == room

    until(filled, f"{room} accounts Ready", 150)
    pools = ("default", "second", "third")
    until(lambda: any(_stalled(poor, pool) == "AccountLimit" for pool in pools), "a pool says AccountLimit", 60)
    _stays(poor, room)


def test_a_loop_that_deletes_accounts_is_stopped_by_the_create_budget(poor: Lab, record: Record) -> None:
    record([("pool", "every Account is deleted again and again")], "create budget reached")
    _limit(poor, 1000)
    poor.make_pool("default", 1)
    created, deleted = 0, set()

    def spent() -> bool:
        nonlocal created
        for account in poor.cluster.list("accounts"):
            name = account["metadata"]["name"]
            if (account.get("status") or {}).get("state") == "Ready" and name not in deleted:
                deleted.add(name)
                poor.cluster.delete("accounts", OPERATOR, name)
        created = len(poor.emulator.world().creations)
        assert created <= BUDGET
        return created == BUDGET and _stalled(poor, "default") == "CreateBudget"

    until(spent, f"Stalled for its budget; {created} accounts were created", 200)
    _stays(poor, BUDGET)
    done = poor.command("retry", "AccountPool", f"{OPERATOR}/default")
    assert done.returncode == 0, done.stderr.decode()
    until(lambda: len(poor.emulator.world().creations) > BUDGET, "creation goes on after a retry", 60)
    until(lambda: _ready(poor) == 1 and not _stalled(poor, "default"), "the pool is full", 60)


def _stays(lab: Lab, created: int) -> None:
    """For some seconds nothing more is created."""
    quiet_until = time.monotonic() + 8
    while time.monotonic() < quiet_until:
        assert len(lab.emulator.world().creations) == created
        time.sleep(0.3)
