"""Many load balancers: made at once, left by yawol and taken over, settled and left alone.

    i    what a bare script has made, as yawol leaves it, taken over by a worker and a watcher that start
    e    as many at once, against the time that the script needed for the same cloud objects in the same deployment
    c    so many with two machines each, settled: what they ask of the cloud in five minutes

No machine is booted: their agents' reports are played (`loadbalancers_reports.py`), and the machine host does not run.
Two hundred take longer to be made than one sitting lasts: with `--keep DIR` the deployment stays, each run goes on
where the last one ended, and measures once all are there.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from domain.loadbalancers import LOAD_BALANCER
from domain.model import Model
from engine.kube.json import JsonObject, text
from localcloud import services
from localcloud.bench import loadbalancers_bare
from localcloud.bench.claims_telling import step
from localcloud.bench.figures import Figure, Found
from localcloud.bench.laboratory import PATIENCE_SECONDS, writes
from localcloud.bench.loadbalancers_left import leave
from localcloud.bench.loadbalancers_reports import Reporter, ready_machines
from localcloud.bench.loadbalancers_things import NAMESPACE_NAME, Scene, all_ready, balancer, delete, lift_quotas, scene
from localcloud.openstack import control_plane
from localcloud.services import WATCH, WORKER

MACHINES_EACH = 2
WITHOUT_MACHINES = tuple(name for name in services.ALL if name != services.MACHINES)
# How long a run makes further ones before it leaves the rest to the next one.
BUILDING_SECONDS = 240.0
# So many are on their way at any time while they are built up.
UNDER_WAY = 10
# Nobody has asked the cloud for so long: what was under way is over. Looks at servers are at most 20 s apart.
_SETTLED_SECONDS = 25.0


class Sizes(Model):
    """How much is measured."""

    balancers: int = 20
    idle_seconds: float = 300.0
    keep: Path | None = None


class Bare(Model):
    """What the bare script has made, and how long that took."""

    seconds: float
    made: tuple[dict[str, str], ...]


async def at_once(rows: frozenset[str], sizes: Sizes) -> Found:
    """Rows e and i."""
    async with _reported(None) as on:
        await _warm(on)
        step(f"a bare script makes the cloud objects of {sizes.balancers} load balancers")
        bare = await _bare(on, sizes.balancers)
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
    await asyncio.gather(*(_create(on, name, 1) for name in names))
    await _ready(on, names)
    seconds = time.monotonic() - began
    after, ledger = on.lab.cpu(), on.cloud.ledger()
    step(f"{count} load balancers were ready after {seconds:.1f} s")
    requests = on.lab.requests_since(mark)
    figures = (
        Figure(
            row="e",
            what=f"{count} load balancers at once, all ready; of the bare script's time",
            measured=round(seconds / bare.seconds, 2),
            goal="≤ 1.5",
            note=f"{seconds:.1f} s and {bare.seconds:.1f} s, {loadbalancers_bare.AT_ONCE} at a time",
        ),
        Figure(row="e", what="OpenStack calls each", measured=round(ledger.calls() / count, 1)),
        Figure(row="e", what="Kubernetes requests each", measured=round(sum(requests.values()) / count, 1)),
    )
    cpu = {service: round(1000 * (after[service] - before[service])) for service in after}
    breakdown = {
        "e: OpenStack calls": ledger.by_route(),
        "e: Kubernetes requests": dict(requests.most_common()),
        "e: milliseconds of CPU": cpu,
    }
    return Found(figures=figures, breakdown=breakdown)


async def _taken_over(on: Scene, bare: Bare) -> Found:
    """Neither worker nor watcher sees anything before all of it is there."""
    step(f"what yawol leaves of {len(bare.made)} load balancers is taken over")
    frozen = {name: on.lab.deployment.kill(name, signal.SIGSTOP) for name in (WATCH, WORKER)}
    for made in bare.made:
        await leave(on.lab.kube, on.project, balancer(on, made["name"]), made, NAMESPACE_NAME)
    await on.lab.objects.until(lambda: len(on.of_machines()) == len(bare.made))
    uids, servers = _uids(on), await _servers(on)
    on.cloud.reset_ledger()
    mark = on.lab.audit_mark()
    for name, pid in frozen.items():
        on.lab.deployment.kill(name)
        await asyncio.to_thread(on.lab.deployment.wait_service, name, other_than_pid=pid, timeout_seconds=120)
    await _looked_at(on, len(bare.made))
    ledger, requests = on.cloud.ledger(), on.lab.requests_since(mark)
    kept, running = _uids(on) & uids, await _servers(on) & servers
    figures = (
        Figure(
            row="i",
            what=f"take-over of {len(uids)} load balancers: machines replaced",
            measured=len(uids) - len(kept) + len(servers) - len(running) + len(_uids(on) - uids),
            goal="0",
        ),
        Figure(
            row="i",
            what="mutating calls",
            measured=ledger.mutating(),
            goal="0",
            note=f"{ledger.calls()} calls in all, {writes(requests)} writes to Kubernetes",
        ),
    )
    breakdown = {"i: OpenStack calls": ledger.by_route(), "i: Kubernetes requests": dict(requests.most_common())}
    return Found(figures=figures, breakdown=breakdown)


async def settled(_: frozenset[str], sizes: Sizes) -> Found:
    """Row c."""
    async with _reported(sizes.keep) as on:
        await _build_up(on, sizes.balancers)
        await _silence(on)
        await asyncio.to_thread(on.cloud.reset_ledger)
        mark, before = on.lab.audit_mark(), on.lab.cpu()
        step(f"{sizes.balancers} load balancers are left alone for {sizes.idle_seconds:g} s")
        await asyncio.sleep(sizes.idle_seconds)
        ledger, requests, after = on.cloud.ledger(), on.lab.requests_since(mark), on.lab.cpu()
        found = len(on.lab.objects.of(LOAD_BALANCER))
    span = f"in {sizes.idle_seconds / 60:g} minutes"
    figures = (
        Figure(
            row="c",
            what=f"OpenStack calls of {found} settled load balancers with {MACHINES_EACH} machines each {span}",
            measured=ledger.calls(),
            goal="≤ 10, and not growing",
            note="upstream 2400 for 200; measured with 20: 200",
        ),
        Figure(row="c", what=f"tokens {span}", measured=ledger.tokens(), goal="≤ 1", note="upstream 1200"),
        Figure(row="c", what=f"Kubernetes requests of worker and watcher {span}", measured=sum(requests.values())),
    )
    cpu = {service: round(1000 * (after[service] - before[service])) for service in after}
    breakdown = {
        "c: OpenStack calls": ledger.by_route(),
        "c: Kubernetes requests": dict(requests.most_common()),
        "c: milliseconds of CPU": cpu,
    }
    return Found(figures=figures, breakdown=breakdown)


async def _build_up(on: Scene, wanted: int) -> None:
    """Make what is missing, some at a time.

    Raises:
        TimeoutError: there was no time for all; what is there can be kept.
    """
    deadline, told = time.monotonic() + BUILDING_SECONDS, 0

    def ready() -> int:
        found = on.lab.objects.of(LOAD_BALANCER)
        return sum(ready_machines(each) == MACHINES_EACH for each in found)

    names = {text(each, "metadata", "name") for each in on.lab.objects.of(LOAD_BALANCER)}
    missing = [name for name in (f"settled-{number}" for number in range(wanted)) if name not in names]
    step(f"{len(names)} load balancers are there, {len(missing)} are made")
    began, there = time.monotonic(), ready()
    while (there_now := ready()) < wanted:
        if there_now - told >= UNDER_WAY:
            told = there_now
            step(f"{there_now} are ready")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{there_now} of {wanted} are ready: go on with --keep")
        under_way = len(on.lab.objects.of(LOAD_BALANCER)) - there_now
        for name in missing[: max(0, UNDER_WAY - under_way)]:
            await _create(on, name, MACHINES_EACH)
            missing.remove(name)
        await asyncio.sleep(0.5)
    if there < wanted:
        step(f"{(time.monotonic() - began) / (wanted - there):.1f} s for each")


async def _silence(on: Scene) -> None:
    """Wait until nobody asks the cloud any more, but for the sweep."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            before = on.cloud.ledger().calls()
            await asyncio.sleep(_SETTLED_SECONDS)
            if on.cloud.ledger().calls() == before:
                return


async def _looked_at(on: Scene, count: int) -> None:
    """Wait until the worker has looked at every load balancer, its set and machine, and at the projects."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        wanted = 3 * count + 1
        query = "ExecutionStatus = 'Running' AND OpPhase IN ('Ready', 'Sweeping')"
        while (await on.lab.temporal.count_workflows(query)).count < wanted:  # noqa: ASYNC110 - sends no event
            await asyncio.sleep(0.5)
    await on.lab.quiet()


async def _warm(on: Scene) -> None:
    """The first of a process costs more, in OpenStack as in the product."""
    await _create(on, "warm", 1)
    await all_ready(on, "warm", 1)
    await delete(on, "warm")


async def _create(on: Scene, name: str, replicas: int) -> None:
    body = balancer(on, name)
    body["spec"]["replicas"] = replicas
    await on.lab.kube.create(LOAD_BALANCER, body, NAMESPACE_NAME)


async def _ready(on: Scene, names: Sequence[str]) -> None:
    """Wait until each of these has its one machine ready."""

    def all_are() -> bool:
        found = {text(each, "metadata", "name"): ready_machines(each) for each in on.lab.objects.of(LOAD_BALANCER)}
        return all(found.get(name) == 1 for name in names)

    async with asyncio.timeout(PATIENCE_SECONDS):
        await on.lab.objects.until(all_are)


async def _bare(on: Scene, count: int) -> Bare:
    """The bare script's run, in OpenStack's own environment.

    Raises:
        TimeoutError: it did not come to its end.
    """
    state, spec = on.lab.deployment.state, balancer(on, "x")["spec"]["infrastructure"]
    programs = state.plan().openstack
    assert programs is not None
    ended = await asyncio.create_subprocess_exec(
        str(programs.python),
        loadbalancers_bare.__file__,
        str(count),
        spec["flavor"]["flavorName"],
        spec["image"]["imageName"],
        spec["defaultNetwork"]["floatingNetID"],
        spec["defaultNetwork"]["networkID"],
        NAMESPACE_NAME,
        env={**os.environ, **control_plane.public_environment(state, state.ports())},
        stdout=asyncio.subprocess.PIPE,
        stderr=sys.stderr.fileno(),
    )
    out, _ = await ended.communicate()
    if ended.returncode:
        raise TimeoutError(f"the bare script ended with {ended.returncode}")
    return Bare.model_validate(json.loads(out))


def _uids(on: Scene) -> set[str]:
    return {text(each, "metadata", "uid") for each in on.of_machines()}


async def _servers(on: Scene) -> set[str]:
    def listed() -> Sequence[JsonObject]:
        answer = on.project.get("/servers", endpoint_filter={"service_type": "compute", "interface": "public"})
        found: Sequence[JsonObject] = answer.json()["servers"]
        return found

    return {text(each, "id") for each in await asyncio.to_thread(listed)}


@asynccontextmanager
async def _reported(keep: Path | None) -> AsyncIterator[Scene]:
    """A scene without machines, whose reports are played."""
    async with scene(only=WITHOUT_MACHINES, keep=keep) as on:
        await asyncio.to_thread(lift_quotas, on)
        ground = control_plane.ground(on.lab.deployment.state)
        async with Reporter(on.lab.kube, on.lab.objects, ground).at_work():
            yield on


# Which rows each covers; one deployment each.
MEASUREMENTS = (
    (frozenset({"e", "i"}), at_once),
    (frozenset({"c"}), settled),
)
