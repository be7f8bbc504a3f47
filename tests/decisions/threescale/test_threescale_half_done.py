"""Passes over objects in memory and a tenant in memory: what a change leaves that got only half way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

import httpx
import pytest
from memory_kube import MemoryKube
from temporalio.testing import ActivityEnvironment
from test_threescale_developer_lifecycle import ready_account
from test_threescale_shared_entries import named
from threescale_objects import NOW, URL, message, states

from activities.threescale.cache import ThreescaleCache
from activities.threescale.client import Connections
from activities.threescale.document_download import Downloads
from activities.threescale.pass_context import PassContext
from activities.threescale.passes import PassActivities
from activities.threescale.tenant_concurrency import Tenants
from domain.identity import Key, Kind
from domain.threescale import BACKEND, DEVELOPER_USER
from domain.threescale.passes import PassObject, ThreescaleWorld
from engine.errors import Conflict, Invalid
from engine.kube import SECRET, KubeApi
from engine.kube.informer_cache import Store
from engine.settings import Settings

Json = dict[str, Any]
ACCOUNT = {"adminURL": URL, "token": "x"}
HITS = {"friendlyName": "Hits", "unit": "hit", "description": "Number of API hits"}


class Tenant:
    """Backends and their parts, by the paths of their lists."""

    def __init__(self) -> None:
        self.lists: dict[str, list[Json]] = {}
        self.calls: list[str] = []
        self.refusals: dict[str, httpx.Response] = {}  # by method
        self.meanwhile: Callable[[], Awaitable[object]] | None = None  # once, after the next change

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/admin/api/").removesuffix(".json")
        self.calls.append(f"{request.method} {path}")
        if answer := self.refusals.get(request.method):
            return answer
        where, _, id_ = path.rpartition("/")
        sent = json.loads(request.content or "{}")
        if request.method == "POST":
            answer = self._made(path, sent)
            await self._happens()
            return answer
        if not id_.isdecimal():
            return httpx.Response(
                200, json={path.rpartition("/")[2]: [{_wrapper(path): each} for each in self.of(path)]}
            )
        found = next((each for each in self.of(where) if each["id"] == int(id_)), None)
        if found is None:
            return httpx.Response(404, json={"status": "Not found"})
        if request.method == "DELETE":
            self.of(where).remove(found)
            return httpx.Response(200)
        found |= sent
        if request.method == "PUT":
            await self._happens()
        return httpx.Response(200, json={_wrapper(where): found})

    async def _happens(self) -> None:
        if self.meanwhile is not None:
            self.meanwhile, once = None, self.meanwhile
            await once()

    def of(self, path: str) -> list[Json]:
        """What a list has."""
        return self.lists.setdefault(path, [])

    def _made(self, path: str, sent: Json) -> httpx.Response:
        if any(each["system_name"] == sent["system_name"] for each in self.of(path)):
            return httpx.Response(422, json={"errors": {"system_name": ["has already been taken"]}})
        made = {"id": sum(map(len, self.lists.values())) + 1, **sent}
        self.of(path).append(made)
        if path == "backend_apis":
            self._made(f"{path}/{made['id']}/metrics", {"system_name": "hits", "friendly_name": "Hits", "unit": "hit"})
        return httpx.Response(201, json={_wrapper(path): made})


def _wrapper(path: str) -> str:
    return path.rpartition("/")[2].removesuffix("s")


class Worker:
    """One worker's passes over one Backend."""

    def __init__(self, tenant: Tenant, connections: Connections) -> None:
        self.tenant = tenant
        self.kube = MemoryKube()
        self.before: ThreescaleWorld | None = None
        self._connections = connections
        self.restart()

    def restart(self) -> None:
        """Another one, which knows nothing."""

        api = cast("KubeApi", self.kube)
        connections = self._connections
        tenants = Tenants(connections, connections, 2)
        cache = ThreescaleCache(api, cast("Store", self.kube))
        self._passes = PassActivities(PassContext(api, cache, tenants, Downloads(connections.http), Settings()))

    async def apply(self, **spec: Any) -> None:
        """Change the Backend's spec."""
        await self.kube.patch(BACKEND, "shop", "stock", {"spec": spec})

    async def look(self, name: str = "stock", attempt: int = 1, kind: Kind = BACKEND) -> ThreescaleWorld:
        """One pass."""
        found = await self.kube.get(kind, "shop", name)
        key = Key(kind=kind.name, namespace="shop", name=name, uid=found["metadata"]["uid"])
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, attempt=attempt)
        self.tenant.calls.clear()
        before = self.before or ThreescaleWorld(key=key)
        requested = PassObject(key=key, memory=before.known, refusals=before.refusals)
        self.before = world = await environment.run(self._passes.pass_object, requested)
        return world

    @property
    def name_there(self) -> str:
        """The backend's name in 3scale."""
        (there,) = self.tenant.of("backend_apis")
        return str(there["name"])


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    tenant = Tenant()
    async with Connections(5) as connections:
        connections.http = httpx.AsyncClient(transport=httpx.MockTransport(tenant))
        made = Worker(tenant, connections)
        await made.kube.create(
            SECRET, {"metadata": {"name": "threescale-provider-account"}, "stringData": ACCOUNT}, "shop"
        )
        spec = {"name": "first", "systemName": "stock", "privateBaseURL": "https://stock.example.com"}
        await made.kube.create(BACKEND, {"metadata": {"name": "stock"}, "spec": spec}, "shop")
        assert (await made.look()).decision.phase == "Synced"
        assert (await made.look()).decision.phase == "Synced"
        assert not tenant.calls
        yield made


ORDERS = {"orders": {"friendlyName": "Orders", "unit": "order"}}


async def test_a_change_that_got_half_way_and_is_taken_back_is_taken_back_in_3scale(worker: Worker) -> None:
    worker.tenant.refusals["POST"] = httpx.Response(422, json={"errors": {"unit": ["is odd"]}})
    await worker.apply(name="second", metrics={"hits": HITS, **ORDERS})
    assert (await worker.look()).decision.phase == "Invalid"
    assert worker.name_there == "second"
    await worker.apply(name="first", metrics={"orders": None})
    assert (await worker.look()).decision.phase == "Synced"
    assert worker.name_there == "first"
    await worker.look()
    assert not worker.tenant.calls


async def test_a_change_that_is_taken_back_while_it_is_made_is_taken_back_in_3scale(worker: Worker) -> None:
    worker.tenant.meanwhile = lambda: worker.apply(name="first")
    await worker.apply(name="second")
    assert (await worker.look()).decision.phase == "Synced"
    assert worker.name_there == "first"
    await worker.look()
    assert not worker.tenant.calls


async def test_a_change_whose_worker_died_is_taken_back_by_the_next_one(worker: Worker) -> None:
    async def dies() -> None:
        raise RuntimeError

    worker.tenant.meanwhile = dies
    await worker.apply(name="second")
    with pytest.raises(RuntimeError):
        await worker.look()
    worker.restart()
    await worker.apply(name="first")
    assert (await worker.look(attempt=2)).decision.phase == "Synced"
    assert worker.name_there == "first"


async def test_a_list_of_before_a_pass_that_died_does_not_have_the_next_one_create_again(worker: Worker) -> None:
    async def dies() -> None:
        raise RuntimeError

    spec = {"name": "new", "systemName": "new", "privateBaseURL": "https://new.example.com"}
    await worker.kube.create(BACKEND, {"metadata": {"name": "new"}, "spec": spec}, "shop")
    worker.tenant.meanwhile = dies
    with pytest.raises(RuntimeError):
        await worker.look("new")
    assert (await worker.look("new")).decision.phase == "Synced"

    assert worker.tenant.calls.count("GET backend_apis") == 1
    assert "POST backend_apis" not in worker.tenant.calls


async def test_an_item_made_by_hand_is_found_where_it_blocks(worker: Worker) -> None:
    (there,) = worker.tenant.of("backend_apis")
    made = {"id": 77, "system_name": "orders", "friendly_name": "Orders", "unit": "hit"}
    worker.tenant.of(f"backend_apis/{there['id']}/metrics").append(made)
    await worker.apply(metrics={"hits": HITS, **ORDERS})
    assert (await worker.look()).decision.phase == "Synced"
    assert made["unit"] == "order"


async def test_a_refusal_independent_of_memory_is_reported_in_the_same_pass(worker: Worker) -> None:
    worker.tenant.refusals["POST"] = httpx.Response(422, json={"errors": {"unit": ["is odd"]}})
    await worker.apply(metrics={"hits": HITS, **ORDERS})
    assert (await worker.look()).decision.phase == "Invalid"
    assert sum(call.startswith("POST") for call in worker.tenant.calls) == 2


async def test_defaults_that_the_api_server_refuses_are_reported(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = worker.kube.patch

    async def refuses(*args: Any, **more: Any) -> Json:
        if "spec" in args[3]:
            raise Invalid("patch Backend shop/new: 422 Invalid: spec.systemName: SystemName is immutable")
        return await patch(*args, **more)

    monkeypatch.setattr(worker.kube, "patch", refuses)
    await worker.kube.create(BACKEND, {"metadata": {"name": "new"}, "spec": {"name": "new", "systemName": ""}}, "shop")
    decision = (await worker.look("new")).decision
    assert (decision.phase, decision.at_deadline) == ("Invalid", "observe again")
    found = await worker.kube.get(BACKEND, "shop", "new")
    assert states(found["status"]) == "Failed Invalid"
    assert "SystemName is immutable" in message(found["status"], "Invalid")
    assert not worker.tenant.calls
    monkeypatch.setattr(worker.kube, "patch", patch)
    assert (await worker.look("new")).decision.phase == "Synced"


@pytest.fixture
def conflicts(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> list[Conflict]:
    """The refusals of the next patches that are not of a spec."""
    patch, left = worker.kube.patch, list[Conflict]()

    async def conflicting(*args: Any, **more: Any) -> Json:
        if left and "spec" not in args[3]:
            raise left.pop()
        return await patch(*args, **more)

    monkeypatch.setattr(worker.kube, "patch", conflicting)
    worker.before = None
    worker.restart()
    return left


async def test_an_entry_of_another_object_is_not_deleted_after_a_conflict(
    worker: Worker, conflicts: list[Conflict]
) -> None:
    await worker.apply(systemName="renamed")
    meta = {"name": "new", "finalizers": [BACKEND.finalizer], "deletionTimestamp": NOW.isoformat()}
    spec = {"name": "new", "systemName": "stock", "privateBaseURL": "https://new.example.com"}
    await worker.kube.create(BACKEND, {"metadata": meta, "spec": spec}, "shop")
    conflicts.append(Conflict("changed"))
    assert (await worker.look("new")).decision.phase == "Gone"
    assert not conflicts
    assert worker.name_there == "first"


async def test_an_entry_of_another_object_is_not_adopted_after_a_conflict(
    worker: Worker, conflicts: list[Conflict]
) -> None:
    adopter = named("DeveloperUser", "adopter")
    await worker.kube.put(ready_account(), named("DeveloperUser", "renamed", 5), adopter)
    there = {"id": 5, "username": "adopter", "email": adopter.spec.email, "state": "active"}
    worker.tenant.of("accounts/11/users").append(there)
    conflicts.append(Conflict("changed"))
    assert (await worker.look("adopter", kind=DEVELOPER_USER)).decision.phase == "Invalid"
    assert not conflicts
    found = await worker.kube.get(DEVELOPER_USER, "shop", "adopter")
    assert found["status"].get("developerUserID") is None
