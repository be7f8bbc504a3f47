"""`perdure demo claims`: resource claims with ConfigMaps as resources (examples/claims/README.md has the steps)."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from domain.built_in_kinds import CONFIG_MAP
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL
from domain.resource import parse_timestamp
from engine.errors import Absent
from engine.kube.json import JsonObject, at, flag, sequence, text
from localcloud.demo.stage import FIELD_MANAGER, Scenario, Stage, UnsettledError, Waiting, since
from localcloud.objects import Objects
from localcloud.state import Cloud

OPERATOR = "poolboy"
POOL = "labs"
TEAM = "team-blue"
CLAIMS = ("monday", "large", "notebooks", "exam", "trial")
LARGER = 8


async def play(stage: Stage) -> None:
    things = Objects(stage.kube)
    async with things.followed(CONFIG_MAP):
        await stage.apply("namespaces.yaml")
        await forget_the_last_run(stage)
        await _fill_the_pool(stage)
        await _take_from_the_pool(stage)
        await _ask_for_more(stage, things)
        await _write_resources_out(stage)
        await _sit_an_exam(stage, things)
        await _try(stage, things)
        await _give_back(stage, things)


async def forget_the_last_run(stage: Stage, claims: tuple[str, ...] = CLAIMS) -> None:
    left = [name for name in claims if stage.objects.one(RESOURCE_CLAIM, TEAM, name) is not None]
    if not left:
        return
    stage.say(f"{', '.join(left)} are left from an earlier run: deleted first")
    for name in left:
        await stage.delete(RESOURCE_CLAIM, TEAM, name)
    await stage.until(
        "the earlier claims and their handles are gone",
        lambda: (
            not any(
                name in left
                for name in (*map(_name, stage.objects.of(RESOURCE_CLAIM, TEAM)), *map(_holder, _handles(stage)))
            )
        ),
    )


async def _fill_the_pool(stage: Stage) -> None:
    await stage.apply("providers.yaml")
    stage.say("Applied providers.yaml: a lab with its network, an exam, a trial, notebooks")
    began = time.monotonic()
    await stage.apply("pool.yaml")
    stage.say("Applied pool.yaml: three labs, ready before the first claim")
    await _until_full(stage)
    stage.say(f"The pool is full after {since(began)}: {', '.join(_free_and_ready(stage))}")
    await stage.breathe()


async def _take_from_the_pool(stage: Stage) -> None:
    free = _free_and_ready(stage)
    began = time.monotonic()
    await stage.apply("claim-lab.yaml")
    await stage.until("the claim monday is ready", lambda: ready(stage, "monday"))
    took, held = since(began), _handle_of(stage, "monday")
    if held not in free:
        raise UnsettledError(f"the claim monday holds {held}, which was not free in the pool")
    stage.say(f"Applied claim-lab.yaml: the claim monday got {held} from the pool, and is ready after {took}")
    await _until_full(stage)
    stage.say("The pool has created another lab")
    await stage.breathe()


async def _ask_for_more(stage: Stage, things: Objects) -> None:
    free = _free_and_ready(stage)
    began = time.monotonic()
    await stage.apply("claim-large-lab.yaml")
    await stage.until("the claim large is ready", lambda: ready(stage, "large"))
    if _handle_of(stage, "large") in free:
        raise UnsettledError("the claim large got a lab of the pool, which is smaller than the claim asked for")
    url = text(_claim(stage, "large"), "status", "summary", "url")
    stage.say(
        f"Applied claim-large-lab.yaml: a lab was created for this claim and is ready after {since(began)}, at {url}"
    )
    await stage.breathe()
    began = time.monotonic()
    values: JsonObject = {"spec": {"provider": {"parameterValues": {"size": LARGER}}}}
    await stage.kube.patch(RESOURCE_CLAIM, TEAM, "large", values, field_manager=FIELD_MANAGER)
    lab = resource_of(stage, "large", -1)
    await things.until(lambda: _field(things, lab, "size") == str(LARGER))
    stage.say(f"Changed the lab's size to {LARGER}: the live lab has this size after {since(began)}")
    await stage.breathe()


async def _write_resources_out(stage: Stage) -> None:
    began = time.monotonic()
    await stage.apply("claim-notebooks.yaml")
    await stage.until("the claim notebooks is ready", lambda: ready(stage, "notebooks"))
    named = ", ".join(text(entry, "reference", "name") for entry in _resources(stage, "notebooks"))
    stage.say(f"Applied claim-notebooks.yaml: its templates created two resources, {named}, after {since(began)}")
    await stage.breathe()


async def _sit_an_exam(stage: Stage, things: Objects) -> None:
    await stage.apply("claim-exam.yaml")
    await stage.until("the claim exam waits for its approval", lambda: pending(stage, "exam"))
    stage.say("Applied claim-exam.yaml: nothing is created before the claim is approved")
    await stage.breathe()
    began = time.monotonic()
    await approve(stage, "exam")
    await stage.until("the exam exists", lambda: bool(resource_of(stage, "exam")))
    exam = resource_of(stage, "exam")
    await things.until(lambda: _thing(things, exam) is not None)
    stage.say(
        f"Approved: {exam} exists after {since(began)}, and is not ready until the person who runs the exam says so"
    )
    await stage.breathe()
    began = time.monotonic()
    await write_into(stage, exam, "running")
    await stage.until("the claim exam is ready", lambda: ready(stage, "exam"))
    stage.say(f"The exam's phase is running: the claim is ready {since(began)} later")
    await stage.breathe()
    began = time.monotonic()
    await write_into(stage, exam, "finished")
    await stage.until("the claim exam is gone", lambda: stage.objects.one(RESOURCE_CLAIM, TEAM, "exam") is None)
    await things.until(lambda: _thing(things, exam) is None)
    stage.say(f"The exam's phase is finished: the claim has deleted itself together with {exam}, {since(began)} later")


async def _try(stage: Stage, things: Objects) -> None:
    await stage.apply("claim-trial.yaml")
    await stage.until("the claim trial is ready", lambda: ready(stage, "trial"))
    trial, claim = resource_of(stage, "trial"), _claim(stage, "trial")
    end = parse_timestamp(text(claim, "status", "lifespan", "end"))
    if end is None:
        raise UnsettledError("the claim trial shows no end")
    stage.say(f"Applied claim-trial.yaml: the claim trial ends at {end.astimezone():%H:%M:%S}")
    await stage.until("the claim trial is gone", lambda: stage.objects.one(RESOURCE_CLAIM, TEAM, "trial") is None)
    await things.until(lambda: _thing(things, trial) is None)
    late = datetime.now(UTC) - end
    if late < timedelta(0):
        raise UnsettledError(f"the claim trial was deleted {-late.total_seconds():.1f} s before its end")
    stage.say(f"Claim, handle and {trial} were gone {late.total_seconds():.2f} s after the claim's end")
    await stage.breathe()


async def _give_back(stage: Stage, things: Objects) -> None:
    held = _handle_of(stage, "monday")
    made = [text(entry, "reference", "name") for entry in _resources(stage, "monday")]
    began = time.monotonic()
    await stage.delete(RESOURCE_CLAIM, TEAM, "monday")
    await stage.until(
        "the handle of monday is gone", lambda: stage.objects.one(RESOURCE_HANDLE, OPERATOR, held) is None
    )
    await things.until(lambda: not any(_thing(things, name) for name in made))
    stage.say(f"Deleted monday: {held}, {' and '.join(made)} are gone after {since(began)}")
    await _until_full(stage)


# Reading the objects.


def failure(obj: JsonObject) -> str:
    name = f"{text(obj, 'kind')} {text(obj, 'metadata', 'name')}"
    errors = [str(error) for error in sequence(obj, "status", "provider", "validationErrors")]
    errors += [text(entry, "validationError") for entry in sequence(obj, "status", "resources")]
    stalled = (each for each in sequence(obj, "status", "conditions") if text(each, "type") == "Stalled")
    errors += [f"{text(each, 'reason')}: {text(each, 'message')}" for each in stalled if text(each, "status") == "True"]
    return next((f"{name}: {error}" for error in errors if error), "")


def look(obj: JsonObject) -> Waiting:
    if text(obj, "metadata", "deletionTimestamp"):
        return Waiting()
    if text(obj, "kind") == RESOURCE_POOL.name:
        return _pool_shown(obj)
    end = parse_timestamp(text(obj, "status", "lifespan", "end") or text(obj, "spec", "lifespan", "end"))
    if _approval(obj) == "pending":
        return Waiting("ApprovalPending", ("approval",))
    if flag(obj, "status", "ready"):
        return Waiting("Ready", ("its expiry",) if end else (), end)
    waits = tuple(text(entry, "waitingFor") for entry in sequence(obj, "status", "resources"))
    held = text(obj, "status", "resourceHandle", "name") or text(obj, "kind") == RESOURCE_HANDLE.name
    phase = "Unready" if held else "Approved" if _approval(obj) == "approved" else ""
    return Waiting(phase, tuple(filter(None, waits)))


def _pool_shown(pool: JsonObject) -> Waiting:
    wanted, ready = at(pool, "spec", "minAvailable"), _count(pool, "ready")
    return Waiting("Full") if _full(pool) else Waiting(f"{ready} of {wanted} ready")


def _full(pool: JsonObject | None) -> bool:
    wanted = at(pool, "spec", "minAvailable")
    return isinstance(wanted, int) and _count(pool, "ready") >= wanted


def _count(pool: JsonObject | None, of: str) -> int:
    count = at(pool, "status", "resourceHandleCount", of)
    return count if isinstance(count, int) else 0


async def _until_full(stage: Stage) -> None:
    """Wait until the pool is full. Handles are counted too, since the pool's status may be older than the last bind."""

    def full() -> bool:
        pool = stage.objects.one(RESOURCE_POOL, OPERATOR, POOL)
        return _full(pool) and len(_free_and_ready(stage)) >= _count(pool, "ready")

    await stage.until("the pool is full", full)


def _claim(stage: Stage, name: str) -> JsonObject:
    found = stage.objects.one(RESOURCE_CLAIM, TEAM, name)
    if found is None:
        raise UnsettledError(f"ResourceClaim {TEAM}/{name} vanished")
    return found


def ready(stage: Stage, name: str) -> bool:
    return flag(stage.objects.one(RESOURCE_CLAIM, TEAM, name), "status", "ready")


def pending(stage: Stage, name: str) -> bool:
    return _approval(stage.objects.one(RESOURCE_CLAIM, TEAM, name) or {}) == "pending"


async def approve(stage: Stage, name: str) -> None:
    approved: JsonObject = {"status": {"approval": {"state": "approved"}}}
    await stage.kube.patch(RESOURCE_CLAIM, TEAM, name, approved, subresource="status", field_manager=FIELD_MANAGER)


def _approval(obj: JsonObject) -> str:
    return text(obj, "status", "approval", "state")


def _resources(stage: Stage, name: str) -> list[JsonObject]:
    return [dict(entry) for entry in sequence(_claim(stage, name), "status", "resources") if isinstance(entry, dict)]


def resource_of(stage: Stage, name: str, index: int = 0) -> str:
    entries = _resources(stage, name)
    return text(entries[index], "reference", "name") if entries else ""


def _handle_of(stage: Stage, name: str) -> str:
    return text(_claim(stage, name), "status", "resourceHandle", "name")


def _handles(stage: Stage) -> list[JsonObject]:
    return stage.objects.of(RESOURCE_HANDLE, OPERATOR)


def _name(obj: JsonObject) -> str:
    return text(obj, "metadata", "name")


def _holder(handle: JsonObject) -> str:
    return text(handle, "spec", "resourceClaim", "name")


def _free_and_ready(stage: Stage) -> list[str]:
    free = (each for each in _handles(stage) if not _holder(each) and flag(each, "status", "ready"))
    return [text(each, "metadata", "name") for each in free]


def _thing(things: Objects, name: str) -> JsonObject | None:
    return things.one(CONFIG_MAP, "labs", name)


async def exists(stage: Stage, name: str) -> bool:
    try:
        await stage.kube.get(CONFIG_MAP, "labs", name)
    except Absent:
        return False
    return True


def _field(things: Objects, name: str, field: str) -> str:
    return text(_thing(things, name), "data", field)


async def write_into(stage: Stage, name: str, phase: str) -> None:
    data: JsonObject = {"data": {"phase": phase}}
    await stage.kube.patch(CONFIG_MAP, "labs", name, data, field_manager=FIELD_MANAGER)


SCENARIO = Scenario(
    title="Resource claims: a pool, a claim bound from it, a claim of another size, an approval, and an expiry",
    clouds=(Cloud.AWS,),
    kinds=(RESOURCE_POOL, RESOURCE_HANDLE, RESOURCE_CLAIM),
    play=play,
    failure=failure,
    areas=("claims",),
    hints=(
        "kubectl get resourceclaims.poolboy.gpte.redhat.com,resourcehandles,resourcepools,resourceproviders -A",
        f"kubectl -n {TEAM} get resourceclaim large -o yaml",
        f"perdure why resourceclaim {TEAM}/large",
        f'kubectl -n {OPERATOR} patch resourcepool {POOL} --type merge -p \'{{"spec": {{"minAvailable": 10}}}}\'',
        f"kubectl -n {TEAM} delete resourceclaim --all",
    ),
    look=look,
)
