"""Claims at the moments that hurt: bursts, two workers, deletions in the middle of binding, servers and events away."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from chaos_claims_lab import POOL, ClaimsLab
from chaos_claims_oracle import POOLBOY, USERS, at
from chaos_claims_turns import nth
from chaos_cluster import until
from chaos_installation import Armed, Process, Record
from chaos_proxy import Break, Interception

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(400)]

AWAY_SECONDS = 20.0
WITHOUT_EVENTS_SECONDS = 30.0
AFTER_RESTART_SECONDS = 60.0
BURST = 60
CROWD = 60


@pytest.fixture
def lab(claims_lab: ClaimsLab) -> ClaimsLab:
    """The installation with nothing on it but its pool."""
    claims_lab.clear()
    claims_lab.oracle.forget()
    return claims_lab


def _claims(lab: ClaimsLab, number: int, provider: str = "chest") -> list[str]:
    return [lab.claim(provider) for _ in range(number)]


def _ready(lab: ClaimsLab) -> int:
    return sum(at(claim, "status", "ready") is True for claim in lab.oracle.look().claims.values())


# --- bursts ---


def test_a_burst_is_served_once_although_the_worker_dies_in_the_middle(
    lab: ClaimsLab, record: Record, record_property: Callable[[str, object], None]
) -> None:
    record([("create", f"a burst of {BURST}")], "worker killed in the middle")
    names = _claims(lab, BURST)
    until(lambda: _ready(lab) >= BURST // 6, "some are ready", 60)
    lab.worker.kill()
    before = _ready(lab)
    assert before < BURST, "the burst was over before the worker died: nothing was tried"
    lab.worker.start()
    lab.await_worker()
    began = time.monotonic()
    lab.until_ready(names, AFTER_RESTART_SECONDS)
    record_property("seconds", round(time.monotonic() - began, 1))
    lab.settle()
    lab.audit()


def test_two_workers_give_every_handle_once(lab: ClaimsLab, record: Record) -> None:
    record([("bind", "30 claims, 20 handles, one worker killed on the way")], "two workers")
    lab.scale(POOL, 19)
    lab.settle(60)
    second = Process(
        lab.deployment, ("worker", "--only", "claims"), lab.settings | lab.through_proxy, label="second-worker"
    )
    second.start()
    second.await_ready()
    try:
        names = _claims(lab, 30, "box")
        lab.expected.pools[POOL] = 1
        until(lambda: _ready(lab) >= 5, "some are ready", 60)
        lab.worker.kill()
        lab.until_ready(names, 60)
        lab.worker.start()
        lab.await_worker()
        names += _claims(lab, 10)
        lab.settle(60)
        lab.audit()
    finally:
        second.stop()


# --- deletions in the middle ---

SERVING = (
    "PUT resourceclaims 1",
    "POST resourcehandles 1",
    "PUT resourceclaims/status 1",
    "POST configmaps 1",
    "POST configmaps 2",
    "PUT resourcehandles/status 1",
)


@pytest.fixture
def delayed(lab: ClaimsLab) -> Iterator[Callable[[str], Interception]]:
    """Delays a write's answer long enough for a person to do something else."""

    def delay(write: str) -> Interception:
        made = lab.intercept(nth(write), Break.DELAYED)
        made.seconds = 1.5
        return made

    yield delay
    lab.lift()


@pytest.mark.parametrize("write", SERVING)
def test_a_claim_that_is_deleted_while_it_is_served_leaves_nothing(
    lab: ClaimsLab, record: Record, delayed: Callable[[str], Interception], write: str
) -> None:
    record([("create", write)], "claim deleted at that moment")
    made = delayed(write)
    name = lab.claim("chest")
    lab.await_struck([Armed(write, made.struck.is_set)])
    lab.delete_claim(name)
    lab.settle()
    lab.audit()


@pytest.mark.parametrize(
    "write", ["PUT resourcehandles 1", "PUT resourceclaims/status 1", "PUT resourcehandles/status 1"]
)
def test_a_handle_that_is_deleted_while_it_is_bound_takes_its_claim_along(
    lab: ClaimsLab, record: Record, delayed: Callable[[str], Interception], write: str
) -> None:
    record([("bind", write)], "handle deleted by hand at that moment")
    (handle,) = lab.cluster.list("resourcehandles", POOLBOY)
    made = delayed(write)
    name = lab.claim("box")
    lab.await_struck([Armed(write, made.struck.is_set)])
    lab.cluster.delete("resourcehandles", POOLBOY, handle["metadata"]["name"])
    del lab.expected.claims[name]
    lab.settle()


@pytest.mark.parametrize("kind", [Break.DELAYED, Break.LATE])
def test_a_pool_deleted_while_its_handle_is_bound_keeps_the_claim_served(
    lab: ClaimsLab, record: Record, kind: Break
) -> None:
    record([("bind", "PUT resourcehandles 1")], f"pool deleted at that moment, the binding {kind}")
    made = lab.intercept(nth("PUT resourcehandles 1"), kind)
    made.seconds = 1.5
    lab.claim("box")
    lab.await_struck([Armed("bind", made.struck.is_set)])
    lab.delete_pool(POOL)
    try:
        lab.settle()
        lab.audit()
    finally:
        lab.lift()
        lab.make_pool(POOL, 1)
        lab.settle()


# --- servers and events away ---


def _everything_at_once(lab: ClaimsLab, settled: list[str]) -> None:
    """What people do to claims that are settled, and a few new ones."""
    edited, expired, deleted, unbound, detached = settled[:5]
    _claims(lab, 3)
    _claims(lab, 2, "box")
    lab.resize(edited, "7")
    lab.expire(expired)
    lab.delete_claim(deleted)
    lab.delete_handle(unbound)
    lab.expected.claims[detached] = ""
    lab.label(detached, leave="yes")
    lab.make_pool(lab.new_name("pool"), 2)


def _settled_claims(lab: ClaimsLab) -> list[str]:
    names = [*_claims(lab, 4), lab.claim("chest", autoDetach={"when": "metadata.labels.leave == 'yes'"})]
    lab.settle()
    return names


@pytest.mark.parametrize("server", ["temporal", "kube-apiserver"])
def test_everything_is_done_when_a_server_was_away_for_twenty_seconds(
    lab: ClaimsLab, record: Record, record_property: Callable[[str, object], None], server: str
) -> None:
    record([("all", "all of it")], f"{server} away for {AWAY_SECONDS:.0f} s")
    settled = _settled_claims(lab)
    if server == "temporal":
        lab.deployment.kill(server, signal.SIGSTOP)
        _everything_at_once(lab, settled)
    else:
        _everything_at_once(lab, settled)
        lab.deployment.kill(server, signal.SIGSTOP)
    try:
        time.sleep(AWAY_SECONDS)
    finally:
        lab.deployment.kill(server, signal.SIGCONT)
    record_property("seconds", round(lab.settle(), 1))
    lab.audit()


def test_everything_is_done_when_the_watcher_was_away_for_thirty_seconds(
    lab: ClaimsLab, record: Record, record_property: Callable[[str, object], None]
) -> None:
    record([("all", "all of it")], f"no watcher for {WITHOUT_EVENTS_SECONDS:.0f} s")
    settled = _settled_claims(lab)
    lab.watch.kill()
    _everything_at_once(lab, settled)
    time.sleep(WITHOUT_EVENTS_SECONDS)
    lab.watch.start()
    record_property("seconds", round(lab.settle(), 1))
    lab.audit()


def test_an_expiry_during_downtime_is_handled_right_after_the_start(lab: ClaimsLab, record: Record) -> None:
    record([("expire", "all of it")], "worker and watcher down at that moment")
    name = lab.claim("chest")
    lab.settle()
    end = datetime.now(UTC) + timedelta(seconds=15)
    lab.edit_claim(name, {"spec": {"lifespan": {"end": f"{end:%Y-%m-%dT%H:%M:%SZ}"}}})
    until(
        lambda: (
            at(lab.cluster.get("resourceclaims", USERS, name), "status", "lifespan", "end")
            == f"{end:%Y-%m-%dT%H:%M:%SZ}"
        ),
        "the end is known",
        60,
    )
    lab.worker.kill()
    lab.watch.kill()
    until(lambda: datetime.now(UTC) > end + timedelta(seconds=1), "the end", 60)
    lab.worker.start()
    lab.await_worker()
    until(lambda: lab.cluster.get("resourceclaims", USERS, name) is None, "the claim gone", 60)
    del lab.expected.claims[name]
    lab.watch.start()
    lab.settle()


@pytest.mark.parametrize("of_them", [1, CROWD // 2])
def test_claims_that_end_together_all_end_although_the_worker_dies_in_the_middle(
    lab: ClaimsLab, record: Record, record_property: Callable[[str, object], None], of_them: int
) -> None:
    record([("expire", f"{CROWD} in one second")], f"worker killed when {of_them} are on their way out")
    end = datetime.now(UTC) + timedelta(seconds=30)
    names = [lab.claim("chest", lifespan={"end": f"{end:%Y-%m-%dT%H:%M:%SZ}"}) for _ in range(CROWD)]
    lab.until_ready(names, 25)

    def stand() -> int:
        claims = lab.oracle.look().claims.values()
        return sum(at(claim, "metadata", "deletionTimestamp") is None for claim in claims)

    until(lambda: stand() <= CROWD - of_them, "some are on their way out", 60)
    lab.worker.kill()
    assert lab.oracle.look().claims, "all were gone before the worker died: nothing was tried"
    lab.worker.start()
    lab.await_worker()
    began = time.monotonic()
    until(lambda: not lab.oracle.look().claims, "all are gone", AFTER_RESTART_SECONDS)
    record_property("seconds", round(time.monotonic() - began, 1))
    for name in names:
        del lab.expected.claims[name]
    lab.settle()
    lab.audit()


def test_templates_that_depend_on_the_clock_go_on_after_a_restart(lab: ClaimsLab, record: Record) -> None:
    record([("clock", "resource")], "worker killed")
    name = lab.claim("clock")

    def shown() -> str:
        claim = lab.cluster.get("resourceclaims", USERS, name)
        resources = at(claim, "status", "resources") or [{}]
        return str(at(resources[-1], "state", "data", "moment") or "")

    for process in (None, lab.worker):
        if process is not None:
            process.kill()
            process.start()
            lab.await_worker()
        for _ in range(2):
            before = shown()
            until(lambda: shown() not in ("", before), "another moment is shown", 60)  # noqa: B023 - asked at once
    lab.delete_claim(name)
    lab.settle()


def test_everything_is_rebuilt_when_every_workflow_was_terminated(lab: ClaimsLab, record: Record) -> None:
    record([("all", "at rest, and in mid-flight")], "every workflow terminated, all woken")
    _settled_claims(lab)
    before = lab.proxy.changes
    assert lab.terminate_all() > 0
    lab.wake_all()
    lab.settle()
    assert lab.proxy.changes == before, "at rest there was nothing to write"
    _claims(lab, 10)
    until(lambda: _ready(lab) > 0, "the burst has begun", 60)
    lab.terminate_all()
    lab.wake_all()
    lab.settle()
    lab.audit()
