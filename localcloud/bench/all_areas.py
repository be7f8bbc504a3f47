"""Objects of all areas in one deployment, with expected states: for `bench outages`, `day` and `idle`."""

from __future__ import annotations

import asyncio
import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.resources import AccountState, ClaimState
from domain.built_in_kinds import CONFIG_MAP, NAMESPACE
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.instances import MACHINE
from domain.instances.constants import STATE_LABEL
from domain.loadbalancers import LOAD_BALANCER
from domain.threescale import CUSTOM_KINDS, PRODUCT
from engine.errors import Absent, ApiError, Conflict, Invalid
from engine.kube.api import KubeApi, Request
from engine.kube.json import JsonObject, at, sequence, text
from localcloud import environment
from localcloud.bench import accounts, claims_things, instances_things, loadbalancers_things, threescale_things
from localcloud.bench.claims_race import agreed
from localcloud.bench.claims_telling import step
from localcloud.bench.laboratory import Laboratory, laboratory_with, memory_mib
from localcloud.bench.loadbalancers_crowds import WITHOUT_MACHINES, reported
from localcloud.bench.loadbalancers_reports import ready_machines
from localcloud.services import EVENTS, WATCH, WORKER
from localcloud.state import Cloud
from localcloud.threescale.control import ThreescaleControl

TENANT = "shop"
AGAIN_SECONDS = 0.5
_LOOK_SECONDS = 1.0
_SETTLING_SECONDS = 900.0
_PRODUCT_PROCESSES = (WORKER, WATCH, EVENTS)
# The Machine of a terminated instance is deleted, so that a lost or repeated reaction to an instance's end shows.
_REACTIONS = {"PERDURE_INSTANCES_REACTIONS": "terminated=delete-machine"}


class PatientKubeApi(KubeApi):
    """Repeats a request until the API server answers, so that changes keep their order. If an earlier attempt has
    succeeded without an answer, its result counts.
    """

    async def _send(self, request: Request) -> JsonObject:
        repeated = False
        while True:
            try:
                return await super()._send(request)
            except Conflict as error:
                if request.method == "POST" and repeated and error.code == "AlreadyExists":
                    name = text(request.body, "metadata", "name")
                    return await super()._send(Request("GET", request.attempt, f"{request.path}/{name}"))
                raise
            except Absent as error:
                if request.method == "DELETE" and repeated:
                    return {}
                if error.code == "NotFound":
                    raise
            except Invalid:
                raise
            except ApiError:  # a starting API server refuses in several ways
                repeated = True
            await asyncio.sleep(AGAIN_SECONDS)


class Area(ABC):
    audit: str

    def __init__(self, lab: Laboratory) -> None:
        self.lab = lab
        self.changes: dict[str, int] = {}
        """The number of changes of each object that should exist, by the object's name."""
        self.ended: set[str] = set()

    async def create(self, name: str) -> None:
        await self._create(name)
        self.changes[name] = 0

    async def change(self, name: str) -> None:
        await self._change(name, self.changes[name] + 1)
        self.changes[name] += 1

    async def end(self, name: str) -> None:
        await self._end(name)
        del self.changes[name]
        self.ended.add(name)

    @abstractmethod
    async def _create(self, name: str) -> None: ...

    @abstractmethod
    async def _change(self, name: str, number: int) -> None: ...

    @abstractmethod
    async def _end(self, name: str) -> None: ...

    @abstractmethod
    async def disagreements(self) -> list[str]:
        pass

    async def leftovers(self) -> list[str]:
        return []


class Claims(Area):
    audit = "claims"

    async def prepare(self) -> None:
        await claims_things.create_providers(self.lab)

    async def _create(self, name: str) -> None:
        await self.lab.kube.create(RESOURCE_CLAIM, claims_things.claim(name), claims_things.USERS)

    async def _change(self, name: str, number: int) -> None:
        spec = {"provider": {"parameterValues": {"text": _version(name, number)}}}
        await self.lab.patch(RESOURCE_CLAIM, claims_things.USERS, name, {"spec": spec})

    async def _end(self, name: str) -> None:
        await self.lab.kube.delete(RESOURCE_CLAIM, claims_things.USERS, name)

    async def disagreements(self) -> list[str]:
        claims = (await self.lab.kube.list(RESOURCE_CLAIM, claims_things.USERS)).items
        handles = (await self.lab.kube.list(RESOURCE_HANDLE)).items
        things = (await self.lab.kube.list(CONFIG_MAP, claims_things.THINGS)).items
        texts = {_name(each): text(each, "data", "text") for each in things if text(each, "data", "guid")}
        named, pairs = {_name(each): each for each in claims}, agreed(claims, handles)
        found = [f"claim {name} is still there" for name in named.keys() & self.ended]
        for name, number in self.changes.items():
            resources = sequence(named.get(name), "status", "resources")
            shown = texts.get(text(resources[0], "reference", "name")) if resources else None
            if name not in pairs or at(named.get(name), "status", "ready") is not True:
                found.append(f"claim {name} has no ready handle of its own")
            elif shown != (_version(name, number) if number else f"of {name}"):
                found.append(f"claim {name} shows {shown!r} after change {number}")
        if (len(handles), len(texts)) != (len(self.changes), len(self.changes)):
            found.append(f"{len(self.changes)} claims have {len(handles)} handles, {len(texts)} resources")
        return found


class Accounts(Area):
    """AccountClaims on a pool that is large enough. A change replaces a claim by another of the same legal entity."""

    audit = "accounts"
    free = 2

    async def prepare(self) -> None:
        await self.lab.create_pool(ACCOUNT_POOL, self.free)

    async def _create(self, name: str) -> None:
        await self.lab.kube.create(NAMESPACE, {"metadata": {"name": name}})
        await self._claim(name, 0)

    async def _claim(self, name: str, number: int) -> None:
        claim = accounts.claim(name)
        claim = {**claim, "metadata": {"name": _version(name, number)}}
        await self.lab.kube.create(ACCOUNT_CLAIM, claim, name)

    async def _change(self, name: str, number: int) -> None:
        await self.lab.kube.delete(ACCOUNT_CLAIM, name, _version(name, number - 1))
        await self._claim(name, number)

    async def _end(self, name: str) -> None:
        await self.lab.kube.delete(ACCOUNT_CLAIM, name, _version(name, self.changes[name]))

    async def disagreements(self) -> list[str]:
        claims = {(_namespace(each), _name(each)): each for each in self.lab.objects.of(ACCOUNT_CLAIM)}
        links = {_name(each): text(each, "spec", "claimLink") for each in self.lab.objects.of(ACCOUNT)}
        wanted = {(name, _version(name, number)) for name, number in self.changes.items()}
        found = [f"account claim {'/'.join(path)} is still there" for path in claims.keys() - wanted]
        for path in sorted(wanted):
            account = text(claims.get(path), "spec", "accountLink")
            if text(claims.get(path), "status", "state") != ClaimState.READY or links.get(account) != path[1]:
                found.append(f"account claim {'/'.join(path)} is not Ready with an account of its own")
        taken = Counter(text(each, "spec", "accountLink") for each in claims.values())
        return found + [f"account {name} has {number} claims" for name, number in taken.items() if name and number > 1]

    async def leftovers(self) -> list[str]:
        free = [
            each
            for each in self.lab.objects.of(ACCOUNT)
            if text(each, "status", "state") == AccountState.READY and not text(each, "spec", "claimLink")
        ]
        unready = [
            f"account {_name(each)} is {text(each, 'status', 'state') or 'new'}"
            for each in self.lab.objects.of(ACCOUNT)
            if text(each, "status", "state") != AccountState.READY
        ]
        few = [] if len(free) >= self.free else [f"{len(free)} accounts of {self.free} are free"]
        discrepancies = accounts.discrepancies(self.lab)
        return [*few, *unready, *([] if discrepancies == "one to one" else [discrepancies])]


class Instances(Area):
    audit = "instances"

    def __init__(self, lab: Laboratory, on: instances_things.Scene) -> None:
        super().__init__(lab)
        self.on = on
        self._ids: dict[str, str] = {}
        self._asked = asyncio.Semaphore(4)

    async def _create(self, name: str) -> None:
        async with self._asked:
            (self._ids[name],) = await self.on.make(1)

    async def _change(self, name: str, number: int) -> None:
        call = self.on.ec2.stop_instances if number % 2 else self.on.ec2.start_instances
        async with self._asked:
            await asyncio.to_thread(call, InstanceIds=[self._ids[name]])

    async def _end(self, name: str) -> None:
        async with self._asked:
            await asyncio.to_thread(self.on.ec2.terminate_instances, InstanceIds=[self._ids[name]])

    async def disagreements(self) -> list[str]:
        machines = (await self.lab.kube.list(MACHINE)).items
        deleted = {_name(each) for each in machines if text(each, "metadata", "deletionTimestamp")}
        wanted = {name: ("running", "stopped")[number % 2] for name, number in self.changes.items()}
        wanted |= dict.fromkeys(self.ended, "terminated")
        found = []
        for name, state in wanted.items():
            instance = self._ids[name]
            labelled = self.on.labels.value(instance, STATE_LABEL)
            if labelled != state:
                found.append(f"instance {name} is {state}, and its label says {labelled or 'nothing'}")
            if (instance in deleted) != (state == "terminated"):
                found.append(
                    f"the Machine of instance {name} ({state}) is {'' if instance in deleted else 'not '}deleted"
                )
        return found


class Products(Area):
    audit = "threescale"

    def __init__(self, lab: Laboratory, control: ThreescaleControl) -> None:
        super().__init__(lab)
        self.on = threescale_things.Scene(lab, control)

    async def prepare(self) -> None:
        await self.on.tenant(TENANT)

    async def _create(self, name: str) -> None:
        kind, body = threescale_things.product(name, metrics={"hits": threescale_things.HITS})
        await self.lab.kube.create(kind, body, TENANT)

    async def _change(self, name: str, number: int) -> None:
        metrics = {"hits": {"friendlyName": _version(name, number)}}
        await self.lab.patch(PRODUCT, TENANT, name, {"spec": {"metrics": metrics}})

    async def _end(self, name: str) -> None:
        await self.lab.kube.delete(PRODUCT, TENANT, name)

    async def disagreements(self) -> list[str]:
        objects = {_name(each): each for each in self.lab.objects.of(PRODUCT, TENANT)}
        found = [f"product {name} is still there" for name in objects.keys() & self.ended]
        for name, number in self.changes.items():
            shown = text(objects.get(name), "spec", "metrics", "hits", "friendlyName")
            newest = shown == (_version(name, number) if number else "Hits")
            if not newest or not threescale_things.done(objects.get(name) or {}):
                found.append(f"product {name} is not in sync")
        return found

    async def leftovers(self) -> list[str]:
        world = await asyncio.to_thread(self.on.threescale.world, TENANT)
        there = Counter(text(each, "system_name") for each in world.tables.get("services", ()))
        names = self.changes.keys() | self.ended
        return [
            f"3scale has product {name} {there[name]} times"
            for name in sorted(names)
            if there[name] != (name in self.changes)
        ]


class Balancers(Area):
    audit = "loadbalancers"

    def __init__(self, lab: Laboratory, on: loadbalancers_things.Scene) -> None:
        super().__init__(lab)
        self.on = on

    async def _create(self, name: str) -> None:
        body = loadbalancers_things.balancer(self.on, name)
        await self.lab.kube.create(LOAD_BALANCER, body, loadbalancers_things.NAMESPACE_NAME)

    async def _change(self, name: str, number: int) -> None:
        spec = {"ports": loadbalancers_things.balancer(self.on, name, 1 + number)["spec"]["ports"]}
        await self.lab.patch(LOAD_BALANCER, loadbalancers_things.NAMESPACE_NAME, name, {"spec": spec})

    async def _end(self, name: str) -> None:
        await self.lab.kube.delete(LOAD_BALANCER, loadbalancers_things.NAMESPACE_NAME, name)

    async def disagreements(self) -> list[str]:
        objects = {_name(each): each for each in self.lab.objects.of(LOAD_BALANCER)}
        found = [f"load balancer {name} is still there" for name in objects.keys() & self.ended]
        unready = (name for name in self.changes if ready_machines(objects.get(name)) != 1)
        return found + [f"load balancer {name} is not ready" for name in unready]

    async def leftovers(self) -> list[str]:
        found = []
        for name in sorted(self.changes.keys() | self.ended):
            # A floating IP, a security group, the address's port and the machine's port, a server.
            things, wanted = await self.on.things_of(name), (1, 1, 2, 1) if name in self.changes else (0, 0, 0, 0)
            if things != wanted:
                found.append(f"load balancer {name} has {things} floating IPs, groups, ports, servers; not {wanted}")
        return found


class Everything:
    def __init__(self, lab: Laboratory, areas: Mapping[str, Area]) -> None:
        self.lab = lab
        self.areas = areas

    async def settle(self) -> float:
        """Wait until all objects are in their expected state; returns the seconds.

        Raises:
            TimeoutError: after a quarter of an hour some objects differ; the message names up to five.
        """
        seconds, found = await self.settled()
        if found:
            raise TimeoutError(f"the objects did not settle: {'; '.join(found[:5])}")
        return seconds

    async def settled(self, seconds: float = _SETTLING_SECONDS, *, entirely: bool = True) -> tuple[float, list[str]]:
        """Wait like `settle`, without raising; returns the seconds and the remaining differences."""
        began, logged_at = time.monotonic(), time.monotonic()
        while True:
            found = await self._disagreements(entirely=entirely)
            now = time.monotonic()
            if not found or now > began + seconds:
                return now - began, found
            if now > logged_at + 15:
                logged_at = now
                step(f"{len(found)} differences remain: {'; '.join(found[:3])}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _disagreements(self, *, entirely: bool) -> list[str]:
        found = [each for area in self.areas.values() for each in await area.disagreements()]
        if entirely and not found:
            found = [each for area in self.areas.values() for each in await area.leftovers()]
        return found

    async def verdict(self) -> list[str]:
        found = []
        for name in dict.fromkeys(area.audit for area in self.areas.values()):
            found += [f"audit of {name}: {line}" for line in await self.lab.audit(name)]
        for query in ("ExecutionStatus = 'Failed'", "OpPhase = 'Bug' AND ExecutionStatus = 'Running'"):
            if count := (await self.lab.temporal.count_workflows(query)).count:
                found.append(f"{count} workflows with {query}")
        return found

    def memory_mib(self) -> dict[str, float]:
        return {name: memory_mib(self.lab, name) for name in _PRODUCT_PROCESSES}


@asynccontextmanager
async def everything(
    names: Iterable[str], *, directory: Path | None = None, variables: Mapping[str, str] | None = None
) -> AsyncIterator[Everything]:
    wanted = tuple(names)
    clouds = tuple(dict.fromkeys(_CLOUDS[name] for name in wanted))
    step(f"a deployment with {', '.join(wanted)} is brought up")
    kinds = (*accounts.KINDS, *CUSTOM_KINDS, *loadbalancers_things.KINDS)
    with environment.restored():
        os.environ.update({**instances_things.served(**_REACTIONS), **_MANY_ACCOUNTS, **(variables or {})})
        only = WITHOUT_MACHINES if Cloud.OPENSTACK in clouds else None
        deployed = laboratory_with(only, clouds, *kinds, api=PatientKubeApi, directory=directory)
        async with deployed as lab, AsyncExitStack() as opened:
            yield Everything(lab, {name: await _area(name, lab, opened) for name in wanted})


async def _area(name: str, lab: Laboratory, opened: AsyncExitStack) -> Area:
    if name == "instances":
        return Instances(lab, await opened.enter_async_context(instances_things.scene_in(lab)))
    if name == "balancers":
        scene = await opened.enter_async_context(loadbalancers_things.scene_in(lab))
        await opened.enter_async_context(reported(scene))
        return Balancers(lab, scene)
    if name == "products":
        products = Products(lab, opened.enter_context(ThreescaleControl.of(lab.deployment)))
        await products.prepare()
        return products
    area: Claims | Accounts = Claims(lab) if name == "claims" else Accounts(lab)
    await area.prepare()
    return area


# Each legal entity may need two accounts: while the first is cleaned, a new claim gets another.
_MANY_ACCOUNTS = {"PERDURE_ACCOUNTS_CREATE_BUDGET": "200"}

_CLOUDS = {
    "claims": Cloud.AWS,
    "accounts": Cloud.AWS,
    "instances": Cloud.AWS,
    "products": Cloud.THREESCALE,
    "balancers": Cloud.OPENSTACK,
}


def _version(name: str, number: int) -> str:
    return f"{name}-{number}"


def _name(obj: JsonObject) -> str:
    return text(obj, "metadata", "name")


def _namespace(obj: JsonObject) -> str:
    return text(obj, "metadata", "namespace")
