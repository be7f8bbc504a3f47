"""Secrets of many namespaces: one watch of the whole cluster where rights allow it, else one for each namespace.

The watcher runs in the test's process on a real API server, through a proxy that counts its streams and has the rights
of a service account.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from kube_fault_proxy import FaultProxy
from service_accounts import kubeconfig_of
from waiting import eventually

from domain.built_in_kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from domain.identity import Key, Kind
from domain.threescale import BACKEND
from engine.health import Health
from engine.kube import NAMESPACE, SECRET, KubeApi
from engine.kube.json import JsonObject
from engine.kube.reflector import Timing
from engine.reachability import api_server_reached
from engine.settings import Settings
from localcloud.deployment import Deployment
from starters.watch.reflectors import FEW
from starters.watch.watched_kinds import Watched, watched_under
from starters.watch.watcher import Watcher

pytestmark = pytest.mark.integration

# Fast enough for tests: rights are asked for every second instead of five minutes. Quiet streams are left open.
TIMING = Timing(
    unserved=timedelta(seconds=1),
    rights=timedelta(seconds=1),
)
MANY = FEW + 3
OF_CLUSTER = "sharing.example.com/cluster"
RBAC = "rbac.authorization.k8s.io"
ROLE_BINDING = Kind(name="RoleBinding", group=RBAC, version="v1", plural="rolebindings", area="")
SERVICE_ACCOUNT = Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area="")
ACCOUNT = "watcher"


class Cluster:
    """Namespaces with a Backend and its Secret each, and a service account with rights that change."""

    def __init__(self, kube: KubeApi, name: str, count: int) -> None:
        self._kube = kube
        self.name = name
        self.namespaces = [f"{name}-{n}" for n in range(count)]

    async def make(self) -> None:
        for namespace in self.namespaces:
            await self._kube.create(NAMESPACE, {"metadata": {"name": namespace}})
        await self._kube.create(SERVICE_ACCOUNT, {"metadata": {"name": ACCOUNT}}, self.namespaces[0])
        for role, group, resource in ((self._role("backends"), BACKEND.group, "backends"), (self.name, "", "secrets")):
            rule = {"apiGroups": [group], "resources": [resource], "verbs": ["list", "watch"]}
            await self._kube.create(CLUSTER_ROLE, {"metadata": {"name": role}, "rules": [rule]})
        await self._bind(CLUSTER_ROLE_BINDING, self._role("backends"))
        for namespace in self.namespaces:
            await self._bind(ROLE_BINDING, self.name, namespace)
            token = {"stringData": {"adminURL": "https://shop.example.com", "token": "one"}}
            await self._kube.create(SECRET, {"metadata": {"name": "tenant"}, **token}, namespace)
            spec = {"name": "b", "privateBaseURL": "https://b", "providerAccountRef": {"name": "tenant"}}
            metadata = {"name": "b", "labels": {OF_CLUSTER: self.name}}
            await self._kube.create(BACKEND, {"metadata": metadata, "spec": spec}, namespace)

    def watched(self) -> list[Watched]:
        """Only its own Backends: those of other tests would add watches."""
        own = f"{OF_CLUSTER}={self.name}"
        backends = [entry for entry in watched_under(Settings()) if entry.kind == BACKEND]
        return [replace(entry, followed=replace(entry.followed, label_selector=own)) for entry in backends]

    async def allow_all_secrets(self) -> None:
        await self._bind(CLUSTER_ROLE_BINDING, self.name)

    async def forbid_all_secrets(self) -> None:
        await self._kube.delete(CLUSTER_ROLE_BINDING, "", self.name)

    async def change_secret(self, namespace: str) -> None:
        await self._kube.patch(SECRET, namespace, "tenant", {"stringData": {"token": uuid4().hex}})

    async def remove(self) -> None:
        for namespace in self.namespaces:
            await self._kube.delete(BACKEND, namespace, "b")
            await self._kube.delete(NAMESPACE, "", namespace)
        await self._kube.delete(CLUSTER_ROLE_BINDING, "", self._role("backends"))
        for role in (self._role("backends"), self.name):
            await self._kube.delete(CLUSTER_ROLE, "", role)

    async def _bind(self, kind: Kind, role: str, namespace: str = "") -> None:
        binding: JsonObject = {
            "metadata": {"name": role},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespaces[0]}],
        }
        await self._kube.create(kind, binding, namespace)

    def _role(self, what: str) -> str:
        return f"{self.name}-{what}"


class Wakes:
    """Replaces the workflows: counts the wakes of each namespace's Backend."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    async def take(self, key: Key) -> None:
        self.of[key.namespace] += 1

    async def follows_change(self, cluster: Cluster, namespace: str) -> None:
        """A change of the namespace's Secret wakes its Backend."""
        before = self.of[namespace]
        await cluster.change_secret(namespace)
        await eventually(lambda: self.of[namespace] > before, f"the Backend of {namespace} is woken")


@pytest.fixture
async def cluster(kube: KubeApi) -> AsyncIterator[Cluster]:
    made = Cluster(kube, f"sharing-{uuid4().hex[:8]}", MANY)
    await made.make()
    yield made
    await made.remove()


@pytest.fixture
async def proxy(cluster: Cluster, kube: KubeApi, deployment: Deployment, tmp_path: Path) -> AsyncIterator[FaultProxy]:
    admin = Path(deployment.env()["KUBECONFIG"])
    path = await kubeconfig_of(kube, admin, cluster.namespaces[0], ACCOUNT, tmp_path / "account")
    async with FaultProxy.running(str(path)) as running:
        yield running


def account_of(proxy: FaultProxy, tmp_path: Path) -> Awaitable[KubeApi]:
    return KubeApi.open(Settings(), "tests", kubeconfig=proxy.write_kubeconfig(tmp_path / "proxied"))


@asynccontextmanager
async def watching(cluster: Cluster, proxy: FaultProxy, tmp_path: Path, wakes: Wakes) -> AsyncIterator[Health]:
    """The watcher, and what it says about itself."""
    health = Health()
    async with (
        await account_of(proxy, tmp_path) as api,
        api_server_reached(health, api, "watch"),
        asyncio.TaskGroup() as group,
    ):
        watcher = Watcher(api, wakes.take, cluster.watched(), timing=TIMING)
        watcher.register(health)
        task = group.create_task(watcher.run())
        yield health
        task.cancel()


async def streams(proxy: FaultProxy, count: int) -> None:
    await eventually(lambda: proxy.streams == count, lambda: f"{count} streams, not {proxy.streams}")


async def ready(health: Health) -> None:
    await eventually(lambda: not health.unready(), lambda: f"ready, without {health.unready()}")


async def noted(health: Health, words: str) -> None:
    await eventually(lambda: any(words in note for note in health.notes()), lambda: f"{words!r} among {health.notes()}")


async def test_secrets_of_many_namespaces_share_one_watch_where_rights_allow_it(
    cluster: Cluster, proxy: FaultProxy, tmp_path: Path
) -> None:
    wakes = Wakes()
    await cluster.allow_all_secrets()
    async with await account_of(proxy, tmp_path) as api:
        await eventually(lambda: api.may(("list", "watch"), SECRET), "the API server knows of the right")
    async with watching(cluster, proxy, tmp_path, wakes) as health:
        await ready(health)
        await streams(proxy, 2)
        assert proxy.watches == 2
        for namespace in (cluster.namespaces[0], cluster.namespaces[-1]):
            await wakes.follows_change(cluster, namespace)
    await cluster.forbid_all_secrets()


@pytest.mark.complete
async def test_the_watch_of_all_secrets_comes_and_goes_with_the_right_to_it(
    cluster: Cluster, proxy: FaultProxy, tmp_path: Path
) -> None:
    wakes = Wakes()
    async with watching(cluster, proxy, tmp_path, wakes) as health:
        await ready(health)
        await streams(proxy, 1 + MANY)
        # The last of the namespaces' Roles may be a moment old, and its watch refused until it is known.
        await noted(health, f"{MANY} watches replace a cluster-wide watch")
        await wakes.follows_change(cluster, cluster.namespaces[-1])
        await cluster.allow_all_secrets()
        await streams(proxy, 2)
        await eventually(lambda: not health.notes(), lambda: f"nothing noted any more, but {health.notes()}")
        await wakes.follows_change(cluster, cluster.namespaces[-1])
        await cluster.forbid_all_secrets()
        await streams(proxy, 1 + MANY)
        await wakes.follows_change(cluster, cluster.namespaces[-1])
        assert not health.unready()


async def test_readiness_names_a_watch_that_starves_until_it_is_served_again(
    cluster: Cluster, proxy: FaultProxy, tmp_path: Path
) -> None:
    wakes, hungry = Wakes(), cluster.namespaces[1]

    def starving() -> list[str]:
        return [reason for reason in health.unready() if f"Secrets in {hungry} has had no watch for" in reason]

    async with watching(cluster, proxy, tmp_path, wakes) as health:
        await streams(proxy, 1 + MANY)
        await ready(health)
        proxy.starved.add(f"/{hungry}/secrets")
        proxy.cut()
        await eventually(starving, lambda: f"readiness names the watch of {hungry}: {health.unready()}")
        await eventually(lambda: len(health.unready()) == 1, lambda: f"and no other: {health.unready()}")
        await cluster.change_secret(hungry)
        before = wakes.of[hungry]
        proxy.heal()
        await ready(health)
        await eventually(lambda: wakes.of[hungry] > before, "and what changed meanwhile is noticed")


@pytest.mark.complete
async def test_readiness_names_a_watch_that_was_never_served(
    cluster: Cluster, proxy: FaultProxy, tmp_path: Path
) -> None:
    hungry = cluster.namespaces[1]
    proxy.starved.add(f"/{hungry}/secrets")
    async with watching(cluster, proxy, tmp_path, Wakes()) as health:
        named = f"Secrets in {hungry} has had no watch"
        await eventually(
            lambda: any(named in each for each in health.unready()), lambda: f"{named!r} in {health.unready()}"
        )
        proxy.heal()
        await ready(health)
