"""The store of mirrored objects on a real API server: own writes at once, others' soon, kinds that come and go."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest
from kube_fault_proxy import FaultProxy
from prometheus_client import REGISTRY
from waiting import PATIENT, eventually

from domain.built_in_kinds import CUSTOM_RESOURCE_DEFINITION
from domain.identity import Kind
from engine.kube import CONFIG_MAP, KubeApi, reflector
from engine.kube.informer_cache import Store
from engine.kube.json import JsonObject, text
from engine.kube.reflector import Followed
from engine.settings import Settings
from localcloud.deployment import Deployment

pytestmark = pytest.mark.integration


def config_map(name: str, **data: str) -> JsonObject:
    return {"metadata": {"name": name}, "data": data}


def gadget() -> Kind:
    """A kind of this test alone."""
    word = f"gadget{uuid4().hex[:8]}"
    return Kind(name=word.capitalize(), group=f"{word}.example.com", version="v1", plural=f"{word}s", area="")


def definition(kind: Kind) -> JsonObject:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower()}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    return {
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {"group": kind.group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def lists_of(namespace: str) -> float:
    """How often the ConfigMaps of a namespace were listed."""
    return REGISTRY.get_sample_value("perdure_watch_relists_total", {"kind": f"ConfigMap in {namespace}"}) or 0.0


async def test_writes_of_others_are_there_soon(kube: KubeApi, namespace: str) -> None:
    async with Store(kube) as store:
        mirror = store.follow(Followed(CONFIG_MAP, namespace))
        await mirror.settled()
        await kube.create(CONFIG_MAP, config_map("one", a="1"), namespace)
        await eventually(lambda: text(mirror.get(namespace, "one"), "data", "a") == "1")
        await kube.delete(CONFIG_MAP, namespace, "one")
        await eventually(lambda: mirror.get(namespace, "one") is None)


async def test_an_own_write_is_there_at_once_and_is_never_undone_by_an_older_event(
    kube: KubeApi, namespace: str
) -> None:
    async with Store(kube) as store:
        mirror = store.follow(Followed(CONFIG_MAP, namespace))
        await mirror.settled()
        seen: list[str] = []
        mirror.listen(lambda before, after: seen.append(text(after, "data", "n")))
        await kube.create(CONFIG_MAP, config_map("mine", n="0"), namespace)
        for n in range(1, 30):
            answer = await kube.patch(CONFIG_MAP, namespace, "mine", {"data": {"n": str(n)}})
            mirror.learn(answer)
            assert text(mirror.get(namespace, "mine"), "data", "n") == str(n)
        await kube.create(CONFIG_MAP, config_map("last"), namespace)
        await eventually(lambda: mirror.get(namespace, "last") is not None)
        numbers = [int(n) for n in seen if n]
        assert numbers == sorted(set(numbers)), "a change was reported twice, or an older one after a newer one"
        assert numbers[-1] == 29


async def test_a_throttled_watch_is_repeated_without_trouble_or_another_list(
    kube: KubeApi, deployment: Deployment, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "THROTTLED_WITHOUT_TROUBLE", PATIENT)
    await kube.create(CONFIG_MAP, config_map("one"), namespace)
    async with FaultProxy.running(deployment.env()["KUBECONFIG"]) as proxy:
        proxy.throttled_watches = 4
        kubeconfig = proxy.write_kubeconfig(tmp_path / "proxied")
        async with await KubeApi.open(Settings(), "tests", kubeconfig=kubeconfig) as through, Store(through) as store:
            mirror = store.follow(Followed(CONFIG_MAP, namespace))
            await mirror.settled()
            troubles = set()
            lists = lists_of(namespace)
            async with asyncio.timeout(PATIENT):
                while not proxy.streams:
                    troubles.add(mirror.trouble)
                    await asyncio.sleep(0.02)
            assert proxy.throttled_watches == 0
            assert troubles == {""}
            assert lists_of(namespace) == lists
            await kube.create(CONFIG_MAP, config_map("two"), namespace)
            await eventually(lambda: mirror.get(namespace, "two") is not None)


async def test_an_older_version_is_not_learnt(kube: KubeApi, namespace: str) -> None:
    async with Store(kube) as store:
        mirror = store.follow(Followed(CONFIG_MAP, namespace))
        await mirror.settled()
        older = await kube.create(CONFIG_MAP, config_map("one", n="old"), namespace)
        mirror.learn(await kube.patch(CONFIG_MAP, namespace, "one", {"data": {"n": "new"}}))
        mirror.learn(older)
        assert text(mirror.get(namespace, "one"), "data", "n") == "new"


async def test_following_a_kind_twice_shares_one_reflector(kube: KubeApi, namespace: str) -> None:
    async with Store(kube) as store:
        assert store.follow(Followed(CONFIG_MAP, namespace)) is store.follow(Followed(CONFIG_MAP, namespace))


async def test_a_kind_may_be_installed_later_and_removed_again(kube: KubeApi, namespace: str) -> None:
    kind = gadget()
    async with Store(kube) as store:
        mirror = store.follow(Followed(kind, namespace))
        await mirror.settled()
        assert not mirror.listed
        assert kind.name in mirror.trouble

        await kube.create(CUSTOM_RESOURCE_DEFINITION, definition(kind))
        await eventually(lambda: mirror.listed)
        await kube.create(kind, {"apiVersion": kind.api_version, "kind": kind.name, **config_map("g")}, namespace)
        await eventually(lambda: mirror.get(namespace, "g") is not None)

        await kube.delete(CUSTOM_RESOURCE_DEFINITION, "", f"{kind.plural}.{kind.group}")
        await eventually(lambda: len(mirror) == 0)


async def test_a_mirror_that_is_left_ends(kube: KubeApi, namespace: str) -> None:
    async with Store(kube) as store:
        followed = Followed(CONFIG_MAP, namespace)
        mirror = store.follow(followed)
        await mirror.settled()
        store.leave(followed)
        await kube.create(CONFIG_MAP, config_map("late"), namespace)
        again = store.follow(followed)
        await again.settled()
        assert again.get(namespace, "late") is not None
        assert mirror.get(namespace, "late") is None
