"""`perdure demo resilience`: processes are killed in the middle of their work, and all lifecycles recover."""

from __future__ import annotations

import asyncio
import time

from domain.accounts import ACCOUNT, ACCOUNT_POOL
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, SERVICE
from engine.kube.json import JsonObject, at, text
from localcloud.demo import accounts, claims, loadbalancer
from localcloud.demo.cloud_audit import Comparison, audit
from localcloud.demo.crashes import kill, narrated, until_back
from localcloud.demo.stage import FIELD_MANAGER, Scenario, Stage, UnsettledError, Waiting, state_of
from localcloud.machines.control import MachineHost
from localcloud.openstack.control import OpenStackControl
from localcloud.services import LOAD_BALANCER_NAMESPACE, TEMPORAL, WATCH, WORKER
from localcloud.state import Cloud

CLAIM = "exam"
# Longer than the kill takes. The emulator answers as soon as the fault is lifted, Nova only after the whole delay.
AWS_HOLDS_SECONDS = 60
NOVA_HOLDS_SECONDS = 3
# How long discrepancies may last, since clouds delete late.
AUDIT_SECONDS = 20.0
_NAMESPACES = (
    *(OPERATOR_NAMESPACE, claims.OPERATOR, claims.TEAM),
    *(loadbalancer.NAMESPACE, LOAD_BALANCER_NAMESPACE),
)
_CLAIM_KINDS = (RESOURCE_POOL, RESOURCE_CLAIM, RESOURCE_HANDLE)


async def play(stage: Stage) -> None:
    began = time.monotonic()
    with MachineHost.of(stage.deployment) as machines, OpenStackControl.of(stage.deployment) as openstack:
        await loadbalancer.forget_the_last_run(stage)
        await claims.forget_the_last_run(stage, (CLAIM,))
        await _kill_during_an_account(stage)
        await stage.breathe()
        await _kill_during_a_claim(stage)
        await stage.breathe()
        await _kill_during_a_machine(stage, machines, openstack)
    stage.say(
        f"All three objects are Ready {time.monotonic() - began:.0f} s after the first step. What do the clouds hold?"
    )
    await compare_with_clouds(stage)


async def _kill_during_an_account(stage: Stage) -> None:
    stage.say("1. AN ACCOUNT: the worker dies while AWS creates it")
    known = _account_names(stage)
    cloud = stage.emulator
    fault = cloud.fault(
        "organizations", "CreateAccount", kind="delay", delay_seconds=AWS_HOLDS_SECONDS, late_answer=True, count=1
    )
    try:
        await _enlarge_the_pool(stage)

        async def called() -> bool:
            return any(each.id == fault.id and each.hits for each in cloud.faults())

        await stage.looking("CreateAccount has been called", called)
        name = (await asyncio.to_thread(cloud.world)).creations[-1].name
        stage.say(f"AWS has accepted CreateAccount for {name}; its answer has not arrived")
        killed = await kill(stage, WORKER)
    finally:
        cloud.clear(fault.id)
    stage.say("Only AWS knows that it is creating this account: Perdure has recorded nothing")
    async with narrated(stage, ACCOUNT):
        await until_back(stage, killed)
        stage.say("Temporal gives the dead worker's step to the new worker after 20 s without a heartbeat")
        await stage.until(f"Account {name} is Ready", lambda: _is_ready(stage, name))
        await stage.until("the pool is full", lambda: accounts.available(stage) >= accounts.pool_size(stage))
    requests = [each for each in (await asyncio.to_thread(cloud.world)).creations if each.name == name]
    stage.say(f"Account {name} is Ready; AWS holds {len(requests)} account of that name")
    if made := _account_names(stage) - known - {name}:
        stage.say(f"The pool has created {', '.join(sorted(made))}, too")


async def _kill_during_a_claim(stage: Stage) -> None:
    stage.say("2. A CLAIM: its resource becomes ready while the watcher is dead")
    await stage.apply("namespaces.yaml", of="claims")
    await stage.apply("providers.yaml", of="claims")
    await stage.apply("claim-exam.yaml", of="claims")
    await stage.until(f"the claim {CLAIM} waits for its approval", lambda: claims.pending(stage, CLAIM))
    await claims.approve(stage, CLAIM)
    await stage.until("the exam is created", lambda: bool(claims.resource_of(stage, CLAIM)))
    exam = claims.resource_of(stage, CLAIM)
    await stage.looking(f"{exam} exists", lambda: claims.exists(stage, exam))
    stage.say(f"The claim {CLAIM} is bound, its resource {exam} exists and is not yet ready")
    killed = await kill(stage, WATCH)
    await claims.write_into(stage, exam, "running")
    stage.say(f"{exam} becomes ready, but no watcher runs to notice it")
    async with narrated(stage, RESOURCE_CLAIM, RESOURCE_HANDLE):
        await until_back(stage, killed)
        await stage.until(f"the claim {CLAIM} is ready", lambda: claims.ready(stage, CLAIM))
    stage.say(f"The claim {CLAIM} is ready: the new watcher has compared all objects with what lifecycles had seen")


async def _kill_during_a_machine(stage: Stage, machines: MachineHost, openstack: OpenStackControl) -> None:
    stage.say("3. A LOAD BALANCER'S MACHINE: Temporal, worker and watcher die while Nova builds its server")
    machines.fare()
    openstack.reset_ledger()
    fault = openstack.fault("nova", "POST", "/servers$", kind="delay", delay_seconds=NOVA_HOLDS_SECONDS, count=1)
    began = time.monotonic()
    try:
        await loadbalancer.apply_service(stage)

        async def called() -> bool:
            return any(each.id == fault.id and each.hits for each in openstack.faults("nova"))

        await stage.looking("Nova is asked for a server", called)
        stage.say("Nova has been asked for a server; its answer has not arrived")
        killed = await kill(stage, TEMPORAL, WORKER, WATCH)
    finally:
        openstack.clear()
    stage.say("Nova builds the server all the same; no running process knows of the request")
    async with narrated(stage, LOAD_BALANCER, LOAD_BALANCER_MACHINE):
        await until_back(stage, killed)
        address = await loadbalancer.until_it_has_an_address(stage)
        await loadbalancer.until_complete(stage, machines, began)
    calls = openstack.ledger().calls("nova", "POST", "/v2.1/servers")
    stage.say(f"Nova got {calls} requests for servers, for {loadbalancer.REPLICAS} machines")
    await loadbalancer.ask(stage, address)


async def compare_with_clouds(stage: Stage) -> None:
    """Compare custom resources with the clouds; raises UnsettledError if they still differ after `AUDIT_SECONDS`."""
    deadline = time.monotonic() + AUDIT_SECONDS
    lines = await audit(stage.kube, stage.deployment, stage.emulator)
    while any(line.problem for line in lines) and time.monotonic() < deadline:
        await asyncio.sleep(1)
        lines = await audit(stage.kube, stage.deployment, stage.emulator)
    stage.present(("THING", "OF", "RECORDED", "IN THE CLOUD", "RESULT"), [_shown(line) for line in lines])
    wrong = [f"{line}: {line.problem}" for line in lines if line.problem]
    if wrong:
        raise UnsettledError("\n  ".join(["clouds and custom resources differ:", *wrong]))
    stage.say(f"{len(lines)} things, one to one: nothing leaked, duplicated or missing")


def _shown(line: Comparison) -> tuple[str, ...]:
    held = "the same" if line.held == (line.recorded,) else ", ".join(line.held) or "-"
    return line.thing, line.owner, line.recorded or "-", held, line.problem or "agreed"


# Reading and changing the objects.


async def _enlarge_the_pool(stage: Stage) -> None:
    pool = stage.objects.one(ACCOUNT_POOL, OPERATOR_NAMESPACE, accounts.POOL)
    if pool is None:
        await stage.apply("pool.yaml")
        stage.say("Applied pool.yaml: an AccountPool of one")
        return
    size = accounts.pool_size(stage) + 1
    larger: JsonObject = {"spec": {"poolSize": size}}
    await stage.kube.patch(ACCOUNT_POOL, OPERATOR_NAMESPACE, accounts.POOL, larger, field_manager=FIELD_MANAGER)
    stage.say(f"Enlarged the AccountPool {accounts.POOL} to {size}")


def _account_names(stage: Stage) -> set[str]:
    return {text(each, "metadata", "name") for each in stage.objects.of(ACCOUNT, OPERATOR_NAMESPACE)}


def _is_ready(stage: Stage, name: str) -> bool:
    return at(stage.objects.one(ACCOUNT, OPERATOR_NAMESPACE, name), "status", "state") == "Ready"


def failure(obj: JsonObject) -> str:
    of_claims = text(obj, "kind") in {kind.name for kind in _CLAIM_KINDS}
    return claims.failure(obj) if of_claims else accounts.failure(obj)


def look(obj: JsonObject) -> Waiting:
    of_claims = text(obj, "kind") in {kind.name for kind in _CLAIM_KINDS}
    return claims.look(obj) if of_claims else state_of(obj)


def ours(obj: JsonObject) -> bool:
    return text(obj, "metadata", "namespace") in _NAMESPACES


SCENARIO = Scenario(
    title="Resilience: worker, watcher and Temporal are killed in the middle of their work, and nothing is lost",
    clouds=(Cloud.AWS, Cloud.OPENSTACK),
    kinds=(
        *(ACCOUNT_POOL, ACCOUNT, *_CLAIM_KINDS),
        *(SERVICE, LOAD_BALANCER, LOAD_BALANCER_SET, LOAD_BALANCER_MACHINE),
    ),
    delays={"create_account_seconds": 2, "case_seconds": 4, "run_instances_seconds": 1, "latency_ms": 5},
    play=play,
    failure=failure,
    areas=("accounts", "claims", "loadbalancers"),
    shows=ours,
    look=look,
    hints=(
        "perdure audit",
        "perdure list",
        f"perdure why service {loadbalancer.NAMESPACE}/{loadbalancer.NAME}",
        "perdure status    # the processes, to kill one yourself",
    ),
)
