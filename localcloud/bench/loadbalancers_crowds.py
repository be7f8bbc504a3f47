"""Many load balancers (rows i, e and c): taken over from yawol, created at once, and settled."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from domain.loadbalancers import LOAD_BALANCER
from domain.loadbalancers.cloud.drift_sweep import SWEEP_INTERVAL
from domain.model import Model
from engine.kube import EVENT
from engine.kube.json import JsonObject, text
from engine.temporal import OP_PHASE
from localcloud import environment, services
from localcloud.bench import loadbalancers_bare
from localcloud.bench.claims_telling import step
from localcloud.bench.figures import Figure, Found
from localcloud.bench.laboratory import PATIENCE_SECONDS, writes
from localcloud.bench.loadbalancers_left import Made, MadeMachine, leave_balancer, leave_machine, machine_name
from localcloud.bench.loadbalancers_reports import Reporter, ready_machines
from localcloud.bench.loadbalancers_things import NAMESPACE_NAME, Scene, all_ready, balancer, delete, lift_quotas, scene
from localcloud.openstack import control_plane
from localcloud.openstack.project import listed

T = TypeVar("T")
MACHINES_EACH = 2
WITHOUT_MACHINES = tuple(name for name in services.ALL if name != services.MACHINES)
_WRITES_AT_ONCE = 8
# Seconds per object: two cores that also run OpenStack settle two or three objects a second.
_PATIENCE_FOR_EACH = 0.8
# A watcher is ready when Temporal has the first wake of every object that is not known to be settled.
_READY_SECONDS = 600


class Sizes(Model):
    at_once: int = 20
    balancers: int = 200
    idle_seconds: float = 300.0


class Bare(Model):
    seconds: float = 0
    made: tuple[Made, ...] = ()
    machines: tuple[MadeMachine, ...] = ()


async def at_once(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with _reported() as on:
        await _warm(on)
        names = [f"bare-{number}" for number in range(sizes.at_once)]
        step(f"a bare script makes the cloud objects of {len(names)} load balancers")
        bare = await _bare(on, "whole", names=names)
        step(f"that took {bare.seconds:.1f} s")
        figures: tuple[Figure, ...] = ()
        breakdown: dict[str, dict[str, int]] = {}
        for row, measure in (("i", _taken_over), ("e", _crowd)):
            if row in rows:
                found = await measure(on, bare)
                figures += found.figures
                breakdown |= found.breakdown
    return Found(figures=figures, breakdown=breakdown)


async def _crowd(on: Scene, bare: Bare) -> Found:
    count = len(bare.made)
    names = [f"crowd-{number}" for number in range(count)]
    on.cloud.reset_ledger()
    mark, before, began = on.lab.audit_mark(), on.lab.cpu(), time.monotonic()
    await asyncio.gather(*(_create(on, name) for name in names))
    await _ready(on, names)
    seconds = time.monotonic() - began
    after, ledger, requests = on.lab.cpu(), on.cloud.ledger(), on.lab.requests_since(mark)
    step(f"{count} load balancers at once took {seconds:.1f} s")
    await delete(on, *names)
    left = sum(await on.things_of("crowd"))
    figures = (
        Figure(
            row="e",
            what=f"{count} load balancers at once: time until all are ready, as a multiple of the bare script's time",
            measured=round(seconds / bare.seconds, 2),
            goal="≤ 1.5",
            note=f"{seconds:.1f} s; bare script {bare.seconds:.1f} s, with {loadbalancers_bare.AT_ONCE} at a time",
        ),
        Figure(row="e", what="OpenStack calls per load balancer", measured=round(ledger.calls() / count, 1)),
        Figure(row="e", what="Kubernetes requests per balancer", measured=round(sum(requests.values()) / count, 1)),
        Figure(row="e", what="objects left in the cloud after their deletion", measured=left, goal="0"),
    )
    breakdown = {
        "e: OpenStack calls": ledger.by_route(),
        "e: Kubernetes requests": dict(requests.most_common()),
        "e: milliseconds of CPU": _used(before, after),
    }
    return Found(figures=figures, breakdown=breakdown)


async def _taken_over(on: Scene, bare: Bare) -> Found:
    step(f"{len(bare.made)} load balancers that yawol left are taken over")
    async with on.lab.nobody_at_work(ready_seconds=_READY_SECONDS):
        await _together(_left_renamed(on, made) for made in bare.made)
        await on.lab.objects.until(lambda: len(on.of_machines()) == len(bare.made))
        uids, servers = _uids(on), await _servers(on)
        on.cloud.reset_ledger()
        mark = on.lab.audit_mark()
    await _await_settled(on, 3 * len(bare.made))
    ledger, requests = on.cloud.ledger(), on.lab.requests_since(mark)
    lost = len(uids - _uids(on)) + len(servers - await _servers(on))
    figures = (
        Figure(
            row="i",
            what=f"take-over of {len(uids)} load balancers: machines replaced",
            measured=lost + len(_uids(on) - uids),
            goal="0",
        ),
        Figure(
            row="i",
            what="OpenStack calls that change something",
            measured=ledger.mutating(),
            goal="0",
            note=f"{ledger.calls()} calls in all, {writes(requests)} writes to Kubernetes",
        ),
    )
    breakdown = {
        "i: OpenStack calls": ledger.by_route(),
        "i: Kubernetes requests": dict(requests.most_common()),
        "i: Events": await _event_counts(on),
    }
    return Found(figures=figures, breakdown=breakdown)


async def settled(sizes: Sizes, rows: frozenset[str]) -> Found:
    with environment.restored():
        interval = min(sizes.idle_seconds, SWEEP_INTERVAL.total_seconds())
        os.environ["PERDURE_SWEEP"] = f"{interval:g}"
        return await _settled(sizes, f"in {sizes.idle_seconds:g} s, with a sweep every {interval:g} s")


async def _settled(sizes: Sizes, span: str) -> Found:
    async with _reported() as on:
        await _fill(on, sizes.balancers)
        on.cloud.reset_ledger()
        mark, before = on.lab.audit_mark(), on.lab.cpu()
        step(f"{sizes.balancers} load balancers are left alone for {sizes.idle_seconds:g} s")
        await asyncio.sleep(sizes.idle_seconds)
        ledger, requests, after = on.cloud.ledger(), on.lab.requests_since(mark), on.lab.cpu()
        ready = sum(ready_machines(each) == MACHINES_EACH for each in on.lab.objects.of(LOAD_BALANCER))
    figures = (
        Figure(
            row="c",
            what=f"OpenStack calls of {ready} settled load balancers with {MACHINES_EACH} machines each {span}",
            measured=ledger.calls(),
            goal="≤ 10, and not growing",
            note="upstream 2400 for 200 load balancers, calculated from its calls per object",
        ),
        Figure(row="c", what=f"tokens {span}", measured=ledger.tokens(), goal="≤ 1", note="upstream 1200"),
        Figure(row="c", what=f"Kubernetes requests of worker and watcher {span}", measured=sum(requests.values())),
    )
    breakdown = {
        "c: OpenStack calls": ledger.by_route(),
        "c: Kubernetes requests": dict(requests.most_common()),
        "c: milliseconds of CPU": _used(before, after),
    }
    return Found(figures=figures, breakdown=breakdown)


async def _fill(on: Scene, count: int) -> None:
    began = time.monotonic()
    async with on.lab.nobody_at_work(ready_seconds=_READY_SECONDS):
        made = (await _bare(on, "networks", names=[f"settled-{number}" for number in range(count)])).made
        step(f"{len(made)} are in Neutron after {time.monotonic() - began:.0f} s")
        sets = await _together(_left_balancer(on, each, MACHINES_EACH) for each in made)
        wanted = [
            {"name": machine_name(machine_set, number), "group": each.group, "address": each.address}
            for machine_set, each in zip(sets, made, strict=True)
            for number in range(MACHINES_EACH)
        ]
        machines = (await _bare(on, "servers", machines=wanted)).machines
        # Nova's driver writes such a file for each running server; only its name is read here.
        directory = control_plane.ground(on.lab.deployment.state) / "servers"
        for each in machines:
            (directory / f"{each.server}.json").touch()
        numbered = ((sets[index // MACHINES_EACH], index % MACHINES_EACH, each) for index, each in enumerate(machines))
        await _together(leave_machine(on.lab.kube, *each) for each in numbered)
        step(f"with {len(machines)} machines, as yawol would have left them, after {time.monotonic() - began:.0f} s")
    await _await_settled(on, (2 + MACHINES_EACH) * count)
    step(f"taken over after {time.monotonic() - began:.0f} s")


async def _left_balancer(on: Scene, made: Made, replicas: int) -> JsonObject:
    body = balancer(on, made.name)
    body["spec"]["replicas"] = replicas
    return await leave_balancer(on.lab.kube, body, made, NAMESPACE_NAME)


async def _left_renamed(on: Scene, made: Made) -> None:
    machine_set = await _left_balancer(on, made, 1)
    (machine,), name = made.machines, machine_name(machine_set, 0)

    def rename() -> None:
        for service, route, body in (
            ("compute", f"/servers/{machine.server}", {"server": {"name": name}}),
            ("network", f"/v2.0/ports/{machine.own}", {"port": {"name": f"{NAMESPACE_NAME}/{name}"}}),
        ):
            on.project.put(route, json=body, endpoint_filter={"service_type": service, "interface": "public"})

    await asyncio.to_thread(rename)
    await leave_machine(on.lab.kube, machine_set, 0, machine)


async def _together(work: Iterable[Awaitable[T]]) -> list[T]:
    permits = asyncio.Semaphore(_WRITES_AT_ONCE)

    async def one(each: Awaitable[T]) -> T:
        async with permits:
            return await each

    return list(await asyncio.gather(*map(one, work)))


async def _await_settled(on: Scene, wanted: int) -> None:
    well = "ExecutionStatus = 'Running' AND OpPhase IN ('Ready', 'Sweeping')"
    patience = PATIENCE_SECONDS + _PATIENCE_FOR_EACH * wanted
    deadline = time.monotonic() + patience
    while (found := (await on.lab.temporal.count_workflows(well)).count) < wanted + 1:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{found} of {wanted + 1} are settled after {patience:g} s: {await _phases(on)}")
        await asyncio.sleep(0.5)
    calls = -1
    while (now := on.cloud.ledger().calls()) != calls and time.monotonic() < deadline:
        calls = now
        await asyncio.sleep(5)


async def _phases(on: Scene) -> dict[str, int]:
    running = on.lab.temporal.list_workflows("ExecutionStatus = 'Running'")
    found = [(each.id.partition("/")[0], each.typed_search_attributes.get(OP_PHASE)) async for each in running]
    return {f"{kind} {phase}": count for (kind, phase), count in Counter(found).items()}


async def _warm(on: Scene) -> None:
    await _create(on, "warm")
    await all_ready(on, "warm", 1)
    await delete(on, "warm")


async def _create(on: Scene, name: str) -> None:
    await on.lab.kube.create(LOAD_BALANCER, balancer(on, name), NAMESPACE_NAME)


async def _ready(on: Scene, names: Sequence[str]) -> None:
    def all_are() -> bool:
        found = {text(each, "metadata", "name"): ready_machines(each) for each in on.lab.objects.of(LOAD_BALANCER)}
        return all(found.get(name) == 1 for name in names)

    async with asyncio.timeout(PATIENCE_SECONDS):
        await on.lab.objects.until(all_are)


async def _bare(on: Scene, what: str, **more: object) -> Bare:
    state, at = on.lab.deployment.state, balancer(on, "x")["spec"]["infrastructure"]
    programs = state.plan().openstack
    assert programs is not None
    request = {
        "what": what,
        "namespace": NAMESPACE_NAME,
        "flavor": at["flavor"]["flavorName"],
        "image": at["image"]["imageName"],
        "floating_network": at["defaultNetwork"]["floatingNetID"],
        "network": at["defaultNetwork"]["networkID"],
        **more,
    }
    ended = await asyncio.create_subprocess_exec(
        str(programs.python),
        loadbalancers_bare.__file__,
        env={**os.environ, **control_plane.environment(state, state.ports()), **on.lab.deployment.env()},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=sys.stderr.fileno(),
    )
    out, _ = await ended.communicate(json.dumps(request).encode())
    if ended.returncode:
        raise TimeoutError(f"the bare script ended with {ended.returncode}")
    return Bare.model_validate_json(out)


async def _event_counts(on: Scene) -> dict[str, int]:
    events = (await on.lab.kube.list(EVENT, NAMESPACE_NAME)).items
    return dict(Counter(f"{text(each, 'reason')}: {text(each, 'message')}" for each in events).most_common())


def _uids(on: Scene) -> set[str]:
    return {text(each, "metadata", "uid") for each in on.of_machines()}


async def _servers(on: Scene) -> set[str]:
    servers = await asyncio.to_thread(listed, on.project, "compute", "/servers", "servers")
    return {text(each, "id") for each in servers}


def _used(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, int]:
    return {service: round(1000 * (after[service] - before[service])) for service in after}


@asynccontextmanager
async def _reported() -> AsyncIterator[Scene]:
    async with scene(only=WITHOUT_MACHINES) as on, reported(on):
        yield on


@asynccontextmanager
async def reported(on: Scene) -> AsyncIterator[None]:
    await asyncio.to_thread(lift_quotas, on)
    async with Reporter(on.lab.kube, on.lab.objects, control_plane.ground(on.lab.deployment.state)).at_work():
        yield
