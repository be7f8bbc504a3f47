"""The kinds that handles manage: found, watched once, denied, removed and installed again, on a real API server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from claim_domain import NAMES
from service_accounts import kubeconfig_of
from waiting import PATIENT, eventually

from domain.built_in_kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CUSTOM_RESOURCE_DEFINITION
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_WATCH
from domain.claims.constants import RESOURCE_FIELD_MANAGER
from domain.identity import Key, Kind
from domain.relations import Scope
from engine.errors import Absent
from engine.kube import CONFIG_MAP, KubeApi
from engine.kube.discovery import LOOK_AGAIN, Discovery
from engine.kube.json import JsonObject, at
from engine.kube.reflector import Timing
from engine.settings import Settings
from localcloud.deployment import Deployment
from starters.watch import resource_watches
from starters.watch.claims import watched_for
from starters.watch.projection import Projection, Shown, Side
from starters.watch.projection_index import Index
from starters.watch.resource_watches import watch_name
from starters.watch.watcher import Watcher

pytestmark = pytest.mark.integration

SERVICE_ACCOUNT = Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area="")
SETTINGS = Settings()
OPERATOR_NAMESPACE = SETTINGS.claims_namespace
WATCHED_HERE = [each for each in watched_for(SETTINGS) if each.kind in (RESOURCE_CLAIM, RESOURCE_HANDLE)]
(MANAGED,) = (each for each in WATCHED_HERE[1].relations if each.watched and each.watched.scope is Scope.KIND)


class Woken:
    """A watcher at work, and how often it has woken each lifecycle."""

    def __init__(self, api: KubeApi) -> None:
        self.wakes: Counter[str] = Counter()
        timing = Timing(duration=timedelta(seconds=60), silence=timedelta(seconds=20))
        self.watcher = Watcher(api, self._wake, WATCHED_HERE, timing=timing)

    async def _wake(self, key: Key) -> None:
        self.wakes[key.name] += 1

    @property
    def managed(self) -> list[str]:
        """The managed kinds that have a reflector."""
        return [name for name in self.watcher.mirrors.reflectors if name.endswith(", managed")]

    async def ready(self) -> None:
        await eventually(lambda: not self.watcher.unready(), lambda: f"ready, without {self.watcher.unready()}")

    async def woken_again(self, name: str, since: int) -> None:
        await eventually(lambda: self.wakes[name] > since, f"{name} is woken again")

    async def noted(self, words: str) -> None:
        await eventually(
            lambda: any(words in note for note in self.watcher.notes()), lambda: f"{words!r} in {self.watcher.notes()}"
        )

    async def nothing_noted(self) -> None:
        await eventually(lambda: not self.watcher.notes(), lambda: f"nothing noted, but {self.watcher.notes()}")

    async def quiet(self) -> None:
        """Until nothing is being woken, and has not been for a moment."""
        before = -1
        while before != self.wakes.total():
            before = self.wakes.total()
            await asyncio.sleep(0.5)


@asynccontextmanager
async def watching(api: KubeApi) -> AsyncIterator[Woken]:
    woken = Woken(api)
    task = asyncio.create_task(woken.watcher.run())
    try:
        await woken.ready()
        yield woken
    finally:
        failed = task.done()
        task.cancel()
        results = await asyncio.gather(task, return_exceptions=True)
        assert not failed, results


@pytest.fixture
async def gadget() -> Kind:
    """A kind of this test alone."""
    group = f"g{uuid4().hex[:8]}.example.com"
    return Kind(name="Gadget", group=group, version="v1", plural="gadgetries", area="", lifecycle=False)


@pytest.fixture
async def made(kube: KubeApi) -> AsyncIterator[AsyncExitStack]:
    """Whatever is pushed here is deleted after the test."""
    async with AsyncExitStack() as stack:
        yield stack


async def install(kube: KubeApi, kind: Kind) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": kind.plural, "kind": kind.name}
    spec: JsonObject = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]}
    await kube.create(CUSTOM_RESOURCE_DEFINITION, {"metadata": {"name": f"{kind.plural}.{kind.group}"}, "spec": spec})


async def remove(kube: KubeApi, kind: Kind) -> None:
    try:
        await kube.delete(CUSTOM_RESOURCE_DEFINITION, "", f"{kind.plural}.{kind.group}")
    except Absent:
        return


async def make_handle(kube: KubeApi, made: AsyncExitStack, kind: Kind) -> str:
    """A free handle with a resource of the kind, as an administrator may make it."""
    name = f"guid-{uuid4().hex[:8]}"
    provider = {
        "apiVersion": NAMES.api_version,
        "kind": "ResourceProvider",
        "namespace": OPERATOR_NAMESPACE,
        "name": "none",
    }
    template = {"apiVersion": kind.api_version, "kind": kind.name}
    spec = {"resources": [{"provider": provider, "template": template}]}
    await kube.create(RESOURCE_HANDLE, {"metadata": {"name": name}, "spec": spec}, OPERATOR_NAMESPACE)
    made.push_async_callback(kube.delete, RESOURCE_HANDLE, OPERATOR_NAMESPACE, name)
    return name


async def make_object(kube: KubeApi, kind: Kind, namespace: str, name: str, handle: str) -> None:
    """An object that a handle has made, as soon as the API server serves its kind."""
    marks = {
        NAMES.resource_handle_name_annotation: handle,
        NAMES.resource_handle_namespace_annotation: OPERATOR_NAMESPACE,
    }
    async with asyncio.timeout(PATIENT):
        while True:
            try:
                body = {"metadata": {"name": name, "annotations": marks}}
                await kube.create(kind, body, namespace, field_manager=RESOURCE_FIELD_MANAGER)
                return
            except Absent:
                await asyncio.sleep(0.1)


async def test_discovery_returns_plural_and_scope(kube: KubeApi) -> None:
    discovery = Discovery(kube)
    found = await discovery.served("v1", "ConfigMap")
    assert (found.kind, found.namespaced) == (CONFIG_MAP, True)
    found = await discovery.served("rbac.authorization.k8s.io/v1", "ClusterRole")
    assert (found.kind.plural, found.namespaced) == ("clusterroles", False)


@pytest.mark.parametrize(("api_version", "kind"), [("v1", "Gadget"), ("no.such.example.com/v1", "Gadget")])
async def test_discovery_calls_an_unknown_kind_absent(kube: KubeApi, api_version: str, kind: str) -> None:
    with pytest.raises(Absent, match=f"no kind {kind} of {api_version}"):
        await Discovery(kube).served(api_version, kind)


async def test_discovery_finds_a_kind_that_is_installed_later(
    kube: KubeApi, gadget: Kind, made: AsyncExitStack
) -> None:
    discovery = Discovery(kube)
    with pytest.raises(Absent):
        await discovery.served(gadget.api_version, gadget.name)
    made.push_async_callback(remove, kube, gadget)
    await install(kube, gadget)
    async with asyncio.timeout(PATIENT + LOOK_AGAIN):
        while True:
            try:
                assert (await discovery.served(gadget.api_version, gadget.name)).kind == gadget
                return
            except Absent:
                await asyncio.sleep(0.2)


async def test_a_managed_kind_is_watched_once_and_only_what_others_write_is_news(
    kube: KubeApi, namespace: str, gadget: Kind, made: AsyncExitStack
) -> None:
    made.push_async_callback(remove, kube, gadget)
    await install(kube, gadget)
    first, second = [await make_handle(kube, made, gadget) for _ in range(2)]
    async with watching(kube) as woken:
        managed = f"Gadget of {gadget.api_version}, managed"
        await eventually(lambda: managed in woken.watcher.mirrors.positions(), f"{managed} is listed")
        assert [each for each in woken.managed if each.startswith("Gadget of ")] == [managed]
        await woken.quiet()
        before = woken.wakes.copy()
        await make_object(kube, gadget, namespace, "a", first)
        await make_object(kube, gadget, namespace, "b", second)
        await asyncio.sleep(1.1)  # managedFields has whole seconds: wait until the newest change is clear
        assert [woken.wakes[name] for name in (first, second)] == [before[name] for name in (first, second)]
        await kube.patch(gadget, namespace, "a", {"status": {"x": 1}}, field_manager="controller")
        await woken.woken_again(first, before[first])
        assert woken.wakes[second] == before[second]
        await kube.delete(gadget, namespace, "b")
        await woken.woken_again(second, before[second])


async def test_a_kind_that_is_installed_later_wakes_the_handles_that_name_it(
    kube: KubeApi, namespace: str, gadget: Kind, made: AsyncExitStack
) -> None:
    handle = await make_handle(kube, made, gadget)
    async with watching(kube) as woken:
        await woken.noted("is named by 1 objects and not watched")
        await woken.quiet()
        before = woken.wakes[handle]
        made.push_async_callback(remove, kube, gadget)
        await install(kube, gadget)
        await woken.woken_again(handle, before)
        await woken.nothing_noted()
        await make_object(kube, gadget, namespace, "a", handle)
        await asyncio.sleep(1.1)
        await woken.quiet()
        before = woken.wakes[handle]
        await remove(kube, gadget)
        await woken.woken_again(handle, before)
        await woken.noted("not watched")
        await woken.quiet()
        before = woken.wakes[handle]
        await install(kube, gadget)
        await woken.woken_again(handle, before)
        await woken.nothing_noted()


async def test_a_kind_that_may_not_be_watched_is_reported_and_blocks_no_other(
    kube: KubeApi, deployment: Deployment, namespace: str, made: AsyncExitStack, tmp_path: Path
) -> None:
    await kube.create(SERVICE_ACCOUNT, {"metadata": {"name": "watcher"}}, namespace)
    role = f"watcher-{namespace}"
    rules = [{"apiGroups": [NAMES.domain], "resources": ["*"], "verbs": ["list", "watch"]}]
    subject = {"kind": "ServiceAccount", "name": "watcher", "namespace": namespace}
    reference = {"apiGroup": CLUSTER_ROLE.group, "kind": "ClusterRole", "name": role}
    await kube.create(CLUSTER_ROLE, {"metadata": {"name": role}, "rules": rules})
    made.push_async_callback(kube.delete, CLUSTER_ROLE, "", role)
    binding = {"metadata": {"name": role}, "roleRef": reference, "subjects": [subject]}
    await kube.create(CLUSTER_ROLE_BINDING, binding)
    made.push_async_callback(kube.delete, CLUSTER_ROLE_BINDING, "", role)
    admin = Path(deployment.env()["KUBECONFIG"])
    config = await kubeconfig_of(kube, admin, namespace, "watcher", tmp_path / "watcher")
    handle = await make_handle(kube, made, CONFIG_MAP)
    async with await KubeApi.open(Settings(), "tests", str(config)) as limited, watching(limited) as woken:
        await woken.noted("ConfigMap of v1, managed: list ConfigMap: 403")
        assert woken.watcher.unready() == []
        await kube.patch(RESOURCE_HANDLE, OPERATOR_NAMESPACE, handle, {"spec": {"vars": {"x": 1}}}, field_manager="me")
        await woken.woken_again(handle, 0)


async def test_views_of_what_is_watched_are_made_and_others_are_left_alone(
    kube: KubeApi, made: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource_watches, "ROUND", 0.1)
    tag = uuid4().hex[:8]
    first, second = f"one-{tag}", f"two-{tag}"
    named = [("v1", "ConfigMap", each, "a") for each in (first, second)]
    index = Index()
    index.of(RESOURCE_HANDLE.name)["poolboy", "guid-x"] = Projection(
        key=Key(kind=RESOURCE_HANDLE.name, namespace="poolboy", name="guid-x", uid="x"),
        resource_version="1",
        fingerprint=0,
        handed=0,
        settled=True,
        ours=True,
        deleting=False,
        shown={(MANAGED, Side.REFERRER): Shown((*named, ("v1", "ConfigMap", "", "")), ())},
    )
    taken, missing = (watch_name("v1", "ConfigMap", name) for name in (first, second))
    for name in (taken, missing):
        made.push_async_callback(kube.delete, RESOURCE_WATCH, OPERATOR_NAMESPACE, name)
    theirs = {"metadata": {"name": taken}, "spec": {"apiVersion": "v1", "kind": "Pod"}}
    before = await kube.create(RESOURCE_WATCH, theirs, OPERATOR_NAMESPACE)
    keeping = asyncio.create_task(resource_watches.keep_views(OPERATOR_NAMESPACE, kube, index))
    try:
        spec = await existing(kube, missing)
    finally:
        keeping.cancel()
    assert spec == {"apiVersion": "v1", "kind": "ConfigMap", "namespace": second}
    assert await kube.get(RESOURCE_WATCH, OPERATOR_NAMESPACE, taken) == before


async def existing(kube: KubeApi, name: str) -> object:
    """The spec of a view, once it is there."""
    async with asyncio.timeout(60):
        while True:
            try:
                return at(await kube.get(RESOURCE_WATCH, OPERATOR_NAMESPACE, name), "spec")
            except Absent:
                await asyncio.sleep(0.1)
