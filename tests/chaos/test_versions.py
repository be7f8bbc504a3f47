"""A roll-out of workers whose workflows have changed, as docs/temporal.md says it, under load and with real processes.

`CHAOS_LIFECYCLES` claims exist, most of them ready, some in each other phase in which a claim waits; more are made,
changed and deleted twenty times a second. The second version's loop begins with a timer: no history of the first could
be gone on with by it. When all have moved and the first version's worker has ended, each phase is what it was, and what
was waited for comes: a wake, or the moment of a timer, that was lost on the way would leave its claim behind.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from chaos_claims_lab import ClaimsLab, provider
from chaos_claims_oracle import POOLBOY, USERS, ClaimsOracle, at
from chaos_cluster import until
from chaos_installation import ROOT, Process, Record
from chaos_load import CHANGES_A_SECOND, Load
from chaos_worker_log import WorkerLog
from claim_domain import NAMES
from temporalio.api.enums.v1 import EventType

from tests.running.temporal_client import temporal_of

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(1200)]

STANDING = int(os.environ.get("CHAOS_LIFECYCLES", "100"))
IN_EACH_PHASE = 5
# A computer that has other work, too, makes ten claims ready a second at the least.
FIRST_PATIENCE_SECONDS = 120.0 + STANDING / 2
SETTLE_SECONDS = 240.0
MOVE_SECONDS = 400
DRAIN_SECONDS = 60.0
# Longer than a roll-out takes at twenty lifecycles a second.
END_AFTER = timedelta(seconds=60 + STANDING / 10)
LOOP = "    async def live(self) -> None:\n"


@dataclass(frozen=True)
class Phase:
    """A phase in which claims or pools wait; `go_on` lets them continue."""

    name: str
    make: Callable[[ClaimsLab], str]
    go_on: Callable[[ClaimsLab, str], None]
    kind: str = f"ResourceClaim/{USERS}"


def _patch_boxes(lab: ClaimsLab, handle: str, **values: str) -> None:
    """Another client, who works on the resource of a handle, writes into it."""
    for name, thing in lab.oracle.look().things.items():
        if at(thing, "metadata", "annotations", NAMES.resource_handle_name_annotation) == handle:
            lab.cluster.patch("configmaps", USERS, name, {"data": values})


def _finish_claim(lab: ClaimsLab, name: str) -> None:
    _patch_boxes(lab, lab.handle_of(name), done="yes")


def _slow_pool(lab: ClaimsLab) -> str:
    name = lab.new_name("pool")
    lab.make_pool(name, 1, "slow")
    return name


def _finish_pool(lab: ClaimsLab, name: str) -> None:
    for handle in lab.cluster.list("resourcehandles", POOLBOY):
        if at(handle, "spec", "resourcePool", "name") == name:
            _patch_boxes(lab, handle["metadata"]["name"], done="yes")


def _judge(state: str) -> Callable[[ClaimsLab, str], None]:
    def judge(lab: ClaimsLab, name: str) -> None:
        lab.cluster.patch("resourceclaims", USERS, name, {"status": {"approval": {"state": state}}}, "status")

    return judge


def _rejected(lab: ClaimsLab) -> str:
    name = lab.claim("asked")
    _judge("rejected")(lab, name)
    return name


def _detached(lab: ClaimsLab) -> str:
    name = lab.claim("chest", autoDetach={"when": "true"})
    lab.expected.claims[name] = ""
    return name


def _make_absent(lab: ClaimsLab, _: str) -> None:
    lab.cluster.create("resourceproviders", POOLBOY, provider("absent"))


def _edit(**spec: Any) -> Callable[[ClaimsLab, str], None]:
    return lambda lab, name: lab.edit_claim(name, {"spec": spec})


PHASES = (
    Phase("Waiting", lambda lab: lab.claim("chest", lifespan={"start": "2099-01-01T00:00:00Z"}), _edit(lifespan=None)),
    Phase("ApprovalPending", lambda lab: lab.claim("asked"), _judge("approved")),
    Phase("Rejected", _rejected, _judge("approved")),
    Phase("Invalid", lambda lab: lab.claim("sized"), lambda lab, name: lab.resize(name, "2")),
    Phase("WaitingForHandle", lambda lab: lab.claim("chest", disableCreation=True), _edit(disableCreation=False)),
    Phase("Stalled", lambda lab: lab.claim("absent"), _make_absent),
    Phase("Bound", lambda lab: lab.claim("slow"), _finish_claim),
    Phase("Unhealthy", lambda lab: lab.claim("ill"), _finish_claim),
    Phase("Detached", _detached, lambda lab, name: lab.delete_claim(name)),
    Phase("Filling", _slow_pool, _finish_pool, f"ResourcePool/{POOLBOY}"),
)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[ClaimsLab]:
    """One of its own: where a version is current, workers without one get nothing any more."""
    lab = ClaimsLab(tmp_path / "state")
    lab.worker.stop()
    lab.worker = _worker(lab, "v1", ROOT)
    lab.oracle = ClaimsOracle(lab.cluster, lab.workflows, lab.worker.log)
    for name, part in (
        ("asked", {"approval": {"required": True}}),
        ("sized", {"parameters": [{"name": "size", "allowUpdate": True, "required": True}]}),
        ("slow", {"readinessCheck": "data.done is defined"}),
        ("ill", {"healthCheck": "data.done is defined"}),
    ):
        made = provider(name)
        lab.cluster.create("resourceproviders", POOLBOY, {**made, "spec": {**made["spec"], **part}})
    yield lab
    lab.close()


def _worker(lab: ClaimsLab, version: str, code: Path) -> Process:
    environ = lab.settings | lab.through_proxy | {"PERDURE_WORKER_BUILD_ID": version}
    return Process(lab.deployment, ("worker", "--only", "claims"), environ, label=f"worker-{version}", code=code)


def _changed(to: Path) -> Path:
    """The workflows of another version."""
    shutil.copytree(ROOT / "workflows", to / "workflows", ignore=shutil.ignore_patterns("__pycache__"))
    loop = to / "workflows" / "durable_driver.py"
    text = loop.read_text()
    assert text.count(LOOP) == 1
    loop.write_text(text.replace(LOOP, LOOP + '        await workflow.sleep(0.01, summary="new in this version")\n'))
    return to


def _temporal(lab: ClaimsLab, *command: str) -> str:
    done = lab.command("temporal", *command, seconds=MOVE_SECONDS + 60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


async def _first_steps(lab: ClaimsLab) -> set[int]:
    """The types of the first commands of all open runs: the changed loop's is a timer."""
    client = await temporal_of(lab.deployment)
    found = set()
    async for each in client.list_workflows("ExecutionStatus='Running' AND WorkflowType='ResourceClaim'"):
        history = await client.get_workflow_handle(each.id, run_id=each.run_id).fetch_history()
        done = next(
            i for i, e in enumerate(history.events) if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
        )
        found.add(history.events[done + 1].event_type)
    return found


def test_lifecycles_in_every_phase_move_to_a_changed_worker_under_load(
    installation: ClaimsLab, tmp_path: Path, record: Record, record_property: Callable[[str, object], None]
) -> None:
    record([("worker", f"{STANDING} lifecycles under {CHANGES_A_SECOND} changes a second")], "another version")
    lab = installation
    lab.worker.start()
    lab.await_worker()
    _temporal(lab, "promote", "--build-id", "v1", "--areas", "claims")
    lab.fill()
    for _ in range(STANDING - IN_EACH_PHASE * len(PHASES)):
        lab.claim("chest")
    lab.settle(FIRST_PATIENCE_SECONDS)
    standing = [(phase, phase.make(lab)) for phase in PHASES for _ in range(IN_EACH_PHASE)]
    _await_phases(lab, standing)

    began = time.monotonic()
    with (
        _stopped_in_the_end(_worker(lab, "v2", _changed(tmp_path / "v2"))) as second,
        _under(load := Load(lab, seed=1)),
    ):
        for _ in range(IN_EACH_PHASE):
            end = datetime.now(UTC) + END_AFTER
            del lab.expected.claims[lab.claim("chest", lifespan={"end": f"{end:%Y-%m-%dT%H:%M:%SZ}"})]
        second.start()
        second.await_ready()
        _temporal(lab, "promote", "--build-id", "v2", "--areas", "claims")
        promoted = time.monotonic()
        _temporal(lab, "move", "--wait", str(MOVE_SECONDS))
        record_property("moved", round(time.monotonic() - promoted, 1))
        lab.worker.send(signal.SIGTERM)
        until(lab.worker.ended, "the first version's worker has ended", DRAIN_SECONDS)
        _await_phases(lab, standing)
        for phase, name in standing:
            phase.go_on(lab, name)
        load.end()
        record_property("changes", load.made)
        record_property("changes_a_second", round(load.made / (time.monotonic() - began), 1))

        lab.oracle = ClaimsOracle(lab.cluster, lab.workflows, second.log)
        record_property("seconds", round(lab.settle(END_AFTER.total_seconds() + SETTLE_SECONDS), 1))
        lab.audit()
        assert [*WorkerLog(lab.worker.log).complaints()] == []
        open_on = {each["build_id"]: each["open"] for each in json.loads(_temporal(lab, "versions", "-o", "json"))}
        record_property("open", open_on["v2"])
        assert open_on["v1"] == 0
        assert open_on["v2"] >= len(lab.expected.claims)
        assert asyncio.run(_first_steps(lab)) == {EventType.EVENT_TYPE_TIMER_STARTED}


@contextmanager
def _stopped_in_the_end(process: Process) -> Iterator[Process]:
    try:
        yield process
    finally:
        process.stop()


@contextmanager
def _under(load: Load) -> Iterator[None]:
    load.start()
    try:
        yield
    finally:
        load.end()


def _await_phases(lab: ClaimsLab, standing: list[tuple[Phase, str]]) -> None:
    """Wait until each is in its phase."""

    def others() -> list[str]:
        running = {id_.rpartition("/")[0]: phase for id_, phase in lab.workflows.running().items()}
        settled_at = ((phase, f"{phase.kind}/{name}") for phase, name in standing)
        return [
            f"{id_}: {running.get(id_)}, not {phase.name}"
            for phase, id_ in settled_at
            if running.get(id_) != phase.name
        ]

    try:
        until(lambda: not others(), "all in their phases", SETTLE_SECONDS)
    except AssertionError:
        raise AssertionError("\n".join(others())) from None
