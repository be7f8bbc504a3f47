"""The watcher on a real API server, behind a proxy that breaks its streams, and as a process on a real Temporal.

The property that everything rests on: whatever happens to streams and wakes, for every object a wake is taken *after*
its last change. The recorder replaces a workflow: when it is woken it looks at the object, past the proxy.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from kube_fault_proxy import FaultProxy
from product import free_port, get_health, process
from temporalio.client import Client
from waiting import PATIENT, eventually

from domain import built_in_kinds
from domain.accounts import ACCOUNT, ACCOUNT_POOL
from domain.built_in_kinds import CUSTOM_RESOURCE_DEFINITION
from domain.identity import Key, Kind
from domain.relations import Relation, Scope, WhileNamed
from engine.errors import Absent, ApiError
from engine.kube import LEASE, KubeApi
from engine.kube.json import JsonObject, at, mapping, text
from engine.kube.reflector import Followed, Timing
from engine.settings import Settings
from engine.temporal import connect, wake
from localcloud.deployment import Deployment
from starters.watch import watched_kinds
from starters.watch.checkpoint import CHECKPOINT
from starters.watch.missing_workflows import unmatched
from starters.watch.projection import View
from starters.watch.watched_kinds import Watched
from starters.watch.watcher import Watcher

pytestmark = pytest.mark.integration

# As if they had lifecycles.
CONFIG_MAP = built_in_kinds.CONFIG_MAP.model_copy(update={"lifecycle": True})

# For broken streams: a silent one is given up after a second instead of 70.
TIMING = Timing(duration=timedelta(seconds=10), silence=timedelta(seconds=1))


@pytest.fixture
async def through(proxy: FaultProxy, tmp_path: Path) -> AsyncIterator[KubeApi]:
    """The client that sees the faults."""
    async with await KubeApi.open(Settings(), "tests", kubeconfig=proxy.write_kubeconfig(tmp_path / "proxied")) as api:
        yield api


class Recorder:
    """Replaces the workflows: remembers which version of its object each wake has seen."""

    def __init__(self, kube: KubeApi, kind: Kind = CONFIG_MAP, *, refusing: float = 0.0, seed: int = 0) -> None:
        self._kube = kube
        self._kind = kind
        self._refusing = refusing
        self._random = random.Random(seed)
        self.seen: dict[Key, str] = {}
        self.wakes: Counter[str] = Counter()

    async def wake(self, key: Key) -> None:
        if self._random.random() < self._refusing:
            raise ConnectionError("Temporal is away")
        self.wakes[key.name] += 1
        self.seen[key] = await version_of(self._kube, self._kind, key)


async def version_of(kube: KubeApi, kind: Kind, key: Key) -> str:
    """The version of the object that a key means, `gone` if there is none."""
    try:
        obj = await kube.get(kind, key.namespace, key.name)
    except Absent:
        return "gone"
    metadata = mapping(obj, "metadata")
    return text(metadata, "resourceVersion") if text(metadata, "uid") == key.uid else "gone"


def config_maps(namespace: str, *, settled: bool = False) -> Watched:
    """ConfigMaps; every write of their data is of interest."""
    return Watched(
        Followed(CONFIG_MAP, namespace, label_selector="test=watcher"),
        read=lambda obj: View(tuple(sorted(mapping(obj, "data").items())), settled=settled),
    )


def config_map(name: str, **data: str) -> JsonObject:
    return {"metadata": {"name": name, "labels": {"test": "watcher"}}, "data": data}


def version(obj: JsonObject) -> int:
    return int(text(obj, "metadata", "resourceVersion"))


def newest(watcher: Watcher) -> int:
    """What the caches of those that it has woken must have reached."""
    return int(watcher.mirrors.newest(CONFIG_MAP.area)[CONFIG_MAP.name])


@asynccontextmanager
async def running(watcher: Watcher) -> AsyncIterator[None]:
    """The watcher, ended with the block; an error of its own surfaces."""
    task = asyncio.create_task(watcher.run())
    try:
        yield
    finally:
        failed = task.done()
        task.cancel()
        results = await asyncio.gather(task, return_exceptions=True)
        assert not failed, results


async def test_every_change_is_followed_by_a_wake(kube: KubeApi, namespace: str) -> None:
    recorder = Recorder(kube)
    watcher = Watcher(kube, recorder.wake, [config_maps(namespace)])
    async with running(watcher):
        await eventually(lambda: not watcher.unready())
        made = await kube.create(CONFIG_MAP, config_map("a", x="1"), namespace)
        await eventually(lambda: recorder.wakes["a"] == 1)
        assert newest(watcher) == version(made)
        changed = await kube.patch(CONFIG_MAP, namespace, "a", {"data": {"x": "2"}}, field_manager="somebody")
        await eventually(lambda: recorder.wakes["a"] == 2)
        assert newest(watcher) == version(changed)
        await kube.delete(CONFIG_MAP, namespace, "a")
        await eventually(lambda: "gone" in recorder.seen.values())
        assert newest(watcher) > version(changed), "a cache that still has what is gone is behind"


async def test_our_own_write_and_an_irrelevant_one_wake_no_lifecycle(kube: KubeApi, namespace: str) -> None:
    recorder = Recorder(kube)
    await kube.create(CONFIG_MAP, config_map("a", x="1"), namespace)
    async with running(Watcher(kube, recorder.wake, [config_maps(namespace)])):
        await eventually(lambda: recorder.wakes["a"] == 1)
        await kube.patch(CONFIG_MAP, namespace, "a", {"data": {"x": "2"}})
        await kube.patch(
            CONFIG_MAP, namespace, "a", {"metadata": {"labels": {"of-no": "interest"}}}, field_manager="somebody"
        )
        # Events come in order: once a later one has woken, the earlier ones have been dealt with.
        await kube.create(CONFIG_MAP, config_map("later"), namespace)
        await eventually(lambda: recorder.wakes["later"] == 1)
    assert recorder.wakes["a"] == 1


@pytest.mark.parametrize("fault", ["cut", "mid_line", "frozen", "expired status", "expired event"])
async def test_a_broken_stream_loses_nothing(
    kube: KubeApi, through: KubeApi, proxy: FaultProxy, namespace: str, fault: str
) -> None:
    for name in ("changed", "deleted"):
        await kube.create(CONFIG_MAP, config_map(name, x="1"), namespace)
    recorder = Recorder(kube)
    watcher = Watcher(through, recorder.wake, [config_maps(namespace)], timing=TIMING)
    async with running(watcher):
        await eventually(lambda: not watcher.unready() and proxy.streams == 1)
        before = recorder.wakes.copy()
        if fault == "frozen":
            proxy.freeze()
        elif fault == "mid_line":
            proxy.mid_line = True
        else:
            proxy.down = True
            proxy.expire += ["status"] if fault == "expired status" else ["event"] if fault == "expired event" else []
            proxy.cut()
        await kube.patch(CONFIG_MAP, namespace, "changed", {"data": {"x": "2"}}, field_manager="somebody")
        await kube.delete(CONFIG_MAP, namespace, "deleted")
        await kube.create(CONFIG_MAP, config_map("created"), namespace)
        proxy.down = proxy.mid_line = False
        await eventually(lambda: all(recorder.wakes[n] > before[n] for n in ("changed", "deleted", "created")))
        assert not proxy.expire


async def test_repeated_events_wake_no_lifecycle_and_put_nothing_back(
    kube: KubeApi, through: KubeApi, proxy: FaultProxy, namespace: str
) -> None:
    proxy.doubled = True
    recorder = Recorder(kube)
    watcher = Watcher(through, recorder.wake, [config_maps(namespace)])
    async with running(watcher):
        await eventually(lambda: not watcher.unready())
        for number in range(4):
            await kube.create(CONFIG_MAP, config_map(f"c{number}"), namespace)
            await kube.delete(CONFIG_MAP, namespace, f"c{number}")
        await kube.create(CONFIG_MAP, config_map("last"), namespace)
        await eventually(lambda: recorder.wakes["last"] == 1)
        assert [name for _, name in watcher.index.of("ConfigMap")] == ["last"]
    assert max(recorder.wakes.values()) <= 2


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_for_any_faults_the_last_version_of_each_object_is_followed_by_a_wake(
    kube: KubeApi, through: KubeApi, proxy: FaultProxy, namespace: str, seed: int
) -> None:
    dice = random.Random(seed)
    recorder = Recorder(kube, refusing=0.3, seed=seed)
    watcher = Watcher(through, recorder.wake, [config_maps(namespace)], timing=TIMING, wakers=3)
    ever: set[Key] = set()
    faults: list[Callable[[], object]] = [
        proxy.cut,
        proxy.freeze,
        proxy.heal,
        proxy.heal,
        lambda: setattr(proxy, "down", True),
        lambda: setattr(proxy, "doubled", True),
        lambda: setattr(proxy, "mid_line", True),
        lambda: setattr(proxy, "delay", 0.05),
        lambda: proxy.expire.append("event"),
        lambda: proxy.expire.append("status"),
    ]
    async with running(watcher):
        for step in range(150):
            name = f"c{dice.randrange(8)}"
            await some_change(kube, namespace, name, step, dice, ever)
            if dice.random() < 0.2:
                dice.choice(faults)()
            await asyncio.sleep(dice.uniform(0, 0.08))
        proxy.heal()
        last = {key: await version_of(kube, CONFIG_MAP, key) for key in ever}
        # An object that came and went while the watch was broken was never seen: there is nothing to wake.
        await eventually(lambda: all(recorder.seen.get(key, "gone") == version for key, version in last.items()))
        alive = {key for key, version in last.items() if version != "gone"}
        await eventually(lambda: {known.key for known in watcher.index.all("ConfigMap")} == alive)


async def some_change(kube: KubeApi, namespace: str, name: str, step: int, dice: random.Random, ever: set[Key]) -> None:
    """Create, change or delete one object, as another client than Perdure."""
    try:
        if dice.random() < 0.25:
            await kube.delete(CONFIG_MAP, namespace, name)
            return
        obj = await kube.patch(CONFIG_MAP, namespace, name, {"data": {"step": str(step)}}, field_manager="somebody")
    except Absent:
        obj = await kube.create(CONFIG_MAP, config_map(name, step=str(step)), namespace)
    ever.add(Key(kind="ConfigMap", namespace=namespace, name=name, uid=text(obj, "metadata", "uid")))


async def test_an_api_server_that_dies_loses_nothing(deployment: Deployment, kube: KubeApi, namespace: str) -> None:
    recorder = Recorder(kube)
    watcher = Watcher(kube, recorder.wake, [config_maps(namespace)], timing=TIMING)
    async with running(watcher):
        await kube.create(CONFIG_MAP, config_map("before"), namespace)
        await eventually(lambda: recorder.wakes["before"] >= 1)
        pid = deployment.kill("kube-apiserver")
        await asyncio.to_thread(deployment.wait_service, "kube-apiserver", other_than_pid=pid)
        await answers(kube, namespace)
        await kube.patch(CONFIG_MAP, namespace, "before", {"data": {"x": "2"}}, field_manager="somebody")
        await kube.create(CONFIG_MAP, config_map("after"), namespace)
        await eventually(lambda: recorder.wakes["before"] >= 2 and recorder.wakes["after"] >= 1)


async def answers(kube: KubeApi, namespace: str) -> None:
    async with asyncio.timeout(PATIENT):
        while True:
            try:
                await kube.list(CONFIG_MAP, namespace)
                return
            except ApiError:
                await asyncio.sleep(0.1)


# After a start.


async def test_a_restart_wakes_the_unsettled_and_what_changed_since_the_checkpoint(
    kube: KubeApi, namespace: str
) -> None:
    for name in ("calm", "changed"):
        await kube.create(CONFIG_MAP, config_map(name), namespace)
    first = Watcher(kube, Recorder(kube).wake, [config_maps(namespace, settled=True)])
    async with running(first):
        await eventually(lambda: first.checkpoint() != "{}")
        checkpoint = first.checkpoint()
    await kube.patch(CONFIG_MAP, namespace, "changed", {"data": {"x": "2"}}, field_manager="somebody")
    recorder = Recorder(kube)
    second = Watcher(kube, recorder.wake, [config_maps(namespace, settled=True)], checkpoint=checkpoint)
    async with running(second):
        await eventually(lambda: not second.unready())
    assert dict(recorder.wakes) == {"changed": 1}


async def test_without_a_checkpoint_settled_objects_are_woken_slowly_and_once(kube: KubeApi, namespace: str) -> None:
    for number in range(5):
        obj = await kube.create(CONFIG_MAP, config_map(f"c{number}"), namespace)
        await kube.replace(CONFIG_MAP, namespace, f"c{number}", obj)
        await kube.patch(CONFIG_MAP, namespace, f"c{number}", {"data": {"y": "1"}}, field_manager="old-operator")
    requests: list[set[str]] = []
    loop = asyncio.get_running_loop()
    asked_at: list[float] = []

    async def nothing_open(kind: str, keys: list[Key]) -> list[Key]:
        requests.append({key.name for key in keys})
        asked_at.append(loop.time())
        return keys

    recorder = Recorder(kube)
    watcher = Watcher(
        kube,
        recorder.wake,
        [config_maps(namespace, settled=True)],
        unmatched=nothing_open,
        adoption_rate=10,
    )
    async with running(watcher):
        await eventually(lambda: sum(recorder.wakes.values()) == 5)
        assert loop.time() - asked_at[0] >= 0.35
        await eventually(lambda: watcher.checkpoint() != "{}")
    assert set(recorder.wakes.values()) == {1}
    assert requests == [{f"c{number}" for number in range(5)}]


async def test_readiness_waits_for_the_first_wakes(kube: KubeApi, namespace: str) -> None:
    await kube.create(CONFIG_MAP, config_map("a"), namespace)
    taken = asyncio.Event()

    async def slow(_: Key) -> None:
        await taken.wait()

    watcher = Watcher(kube, slow, [config_maps(namespace)])
    async with running(watcher):
        await eventually(lambda: watcher.unready() == ["1 first wakes are not acknowledged"])
        taken.set()
        await eventually(lambda: not watcher.unready())


async def test_a_watcher_that_may_not_list_a_kind_is_not_ready(kube: KubeApi, tmp_path: Path) -> None:
    refused = Watched(Followed(CONFIG_MAP, field_selector="no.such.field=x", called="bad"), read=lambda _: View(()))
    watcher = Watcher(kube, Recorder(kube).wake, [refused])
    async with running(watcher):
        await eventually(lambda: any("bad is not listed: list ConfigMap: 4" in line for line in watcher.unready()))


# Kinds that come and go.


async def test_a_kind_that_is_not_installed_blocks_no_other_and_is_found_when_it_comes(
    kube: KubeApi, namespace: str
) -> None:
    gadget = gadget_kind()
    gadgets = of_namespace(gadget, namespace)
    recorder = Recorder(kube)
    alone = Watcher(kube, recorder.wake, [gadgets])
    async with running(alone):
        await eventually(lambda: not alone.unready())
    watcher = Watcher(kube, recorder.wake, [gadgets, config_maps(namespace)])
    async with running(watcher):
        await eventually(lambda: not watcher.unready())
        assert watcher.notes() == ["Gadget is not installed in the cluster"]
        await kube.create(CONFIG_MAP, config_map("a"), namespace)
        await eventually(lambda: recorder.wakes["a"] == 1)
        async with installed(kube, gadget):
            await create_gadget(kube, gadget, namespace, "g")
            await eventually(lambda: recorder.wakes["g"] >= 1)
            await eventually(lambda: not watcher.notes())


async def test_kinds_that_objects_declare_are_watched_while_they_do(
    kube: KubeApi, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_kinds, "LINGERS", 0.0)
    gadget = gadget_kind()
    recorder = Recorder(kube)
    watcher = Watcher(kube, recorder.wake, [declaring(gadget, namespace)])
    async with installed(kube, gadget), running(watcher):
        await eventually(lambda: not watcher.unready())
        await create_gadget(kube, gadget, namespace, "early")
        await kube.create(CONFIG_MAP, config_map("provider"), namespace)
        await eventually(lambda: recorder.wakes["early"] >= 1)
        await create_gadget(kube, gadget, namespace, "late")
        await eventually(lambda: recorder.wakes["late"] >= 1)
        late = await kube.get(gadget, namespace, "late")
        assert int(watcher.mirrors.newest("")[gadget.name]) >= version(late), (
            "it is watched as a whole, so its versions compare"
        )
        before = recorder.wakes["provider"]
        await kube.delete(CONFIG_MAP, namespace, "provider")
        await eventually(lambda: recorder.wakes["provider"] > before)
        await eventually(lambda: gadget.name not in watcher.mirrors.names())
        await create_gadget(kube, gadget, namespace, "unseen")
        await kube.create(CONFIG_MAP, config_map("provider"), namespace)
        await eventually(lambda: recorder.wakes["unseen"] >= 1)


async def test_a_declared_kind_that_is_not_there_is_warned_of_once_and_found_when_it_comes(
    kube: KubeApi, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    gadget = gadget_kind()
    recorder = Recorder(kube)
    watcher = Watcher(kube, recorder.wake, [declaring(gadget, namespace)])
    async with running(watcher):
        await kube.create(CONFIG_MAP, config_map("provider"), namespace)
        await eventually(lambda: any("does not serve it" in note for note in watcher.notes()))
        await asyncio.sleep(2.5)  # it is looked for four times in this time
        warned = [record.getMessage() for record in caplog.records if gadget.name in record.getMessage()]
        assert len(warned) == len(set(warned)) == 2
        async with installed(kube, gadget):
            await create_gadget(kube, gadget, namespace, "g")
            await eventually(lambda: recorder.wakes["g"] >= 1)
            await eventually(lambda: not watcher.notes())


def of_namespace(kind: Kind, namespace: str) -> Watched:
    """The kind's objects, of which nothing but their being there is of interest."""
    return Watched(Followed(kind, namespace), read=lambda _: View(()))


def declaring(kind: Kind, namespace: str) -> Watched:
    """ConfigMaps each of which refers to the kind."""
    watched = WhileNamed(Scope.CLUSTER, all=kind.name)
    refers = Relation(of=CONFIG_MAP, to=kind, by=lambda _: [("", "")], watched=watched)
    return replace(config_maps(namespace), read=lambda _: View(()), relations=(refers,))


def gadget_kind() -> Kind:
    """A kind of this test alone."""
    unique = uuid4().hex[:8]
    return Kind(name="Gadget", group=f"g{unique}.example.com", version="v1", plural="gadgets", area="")


@asynccontextmanager
async def installed(kube: KubeApi, kind: Kind) -> AsyncIterator[None]:
    """The CRD of a kind, for the duration of the block."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": kind.plural, "kind": kind.name}
    spec: JsonObject = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]}
    name = f"{kind.plural}.{kind.group}"
    await kube.create(CUSTOM_RESOURCE_DEFINITION, {"metadata": {"name": name}, "spec": spec})
    try:
        yield
    finally:
        await kube.delete(CUSTOM_RESOURCE_DEFINITION, "", name)


async def create_gadget(kube: KubeApi, kind: Kind, namespace: str, name: str) -> None:
    """Create one, as soon as the API server serves the kind."""
    async with asyncio.timeout(PATIENT):
        while True:
            try:
                await kube.create(kind, {"metadata": {"name": name}}, namespace)
                return
            except Absent:
                await asyncio.sleep(0.1)


# The process.


@pytest.fixture
async def temporal(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setenv("TEMPORAL_ADDRESS", deployment.env()["TEMPORAL_ADDRESS"])
    return await connect(Settings(), "tests")


@pytest.fixture
async def cluster(temporal: Client) -> AsyncIterator[str]:
    """A cluster name of the test's own, so that its workflows can be distinguished; they are ended afterwards."""
    name = f"watch-{uuid4().hex[:8]}"
    yield name
    await asyncio.sleep(0)
    async for execution in temporal.list_workflows("ExecutionStatus = 'Running'"):
        if execution.id.startswith(f"{name}/"):
            await temporal.get_workflow_handle(execution.id).terminate("the test is over")


async def test_objects_and_workflows_that_lack_each_other_are_found(temporal: Client, cluster: str) -> None:
    both, object_only, workflow_only = (
        Key(kind="Account", namespace="n", name=name, uid=name, cluster=cluster) for name in ("b", "o", "w")
    )
    await wake(temporal, both)
    await wake(temporal, workflow_only)
    found: list[Key] = []
    async with asyncio.timeout(PATIENT):
        while {key.name for key in found} != {"o", "w"}:
            found = await unmatched(temporal, cluster, "Account", [both, object_only])
    assert set(found) == {object_only, workflow_only}


async def test_the_process_gets_ready_wakes_real_workflows_and_ends_on_sigterm(
    deployment: Deployment, kube: KubeApi, namespace: str, temporal: Client, cluster: str
) -> None:
    async with watch_process(deployment, cluster, namespace) as (watch, port):
        pool = await kube.create(ACCOUNT_POOL, pool_manifest(), "aws-account-operator")
        metadata: JsonObject = {"name": f"w-{uuid4().hex[:8]}"}
        spec = {"awsAccountID": "", "iamUserSecret": "", "claimLink": "", "legalEntity": {"id": "", "name": ""}}
        account = await kube.create(ACCOUNT, {"metadata": metadata, "spec": spec}, "aws-account-operator")
        try:
            await until_open(temporal, cluster, "AccountPool", pool)
            await until_open(temporal, cluster, "Account", account)
            description = await temporal.get_workflow_handle(
                f"{cluster}/Organization/aws-account-operator/aws/0"
            ).describe()
            assert description.workflow_type == "Organization"
            await eventually_checkpointed(kube, namespace)
            assert 'perdure_watch_wakes_total{kind="AccountPool"}' in (await get_health(port, "/metrics")).text
        finally:
            for kind, obj in ((ACCOUNT_POOL, pool), (ACCOUNT, account)):
                await kube.delete(kind, "aws-account-operator", text(obj, "metadata", "name"))
        watch.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(watch.wait(), PATIENT) == 0
    lease = await kube.get(LEASE, namespace, "perdure-watch")
    assert text(lease, "spec", "holderIdentity") == ""


async def short_lease(kube: KubeApi, namespace: str) -> JsonObject:
    """The Lease of a holder that knows of another watcher: it is renewed for 11 seconds, not for a minute."""

    async def short() -> JsonObject | None:
        lease = await kube.get(LEASE, namespace, "perdure-watch")
        return lease if at(lease, "spec", "leaseDurationSeconds") == 11 else None

    return await eventually(short, "the holder renews a short Lease")


async def test_another_watcher_leads_once_the_lease_of_a_killed_one_is_over(
    deployment: Deployment, kube: KubeApi, namespace: str, cluster: str
) -> None:
    async def leads_next() -> JsonObject | None:
        lease = await kube.get(LEASE, namespace, "perdure-watch")
        return lease if text(lease, "spec", "holderIdentity") != holder else None

    async with (
        watch_process(deployment, cluster, namespace) as (first, _),
        watch_process(deployment, cluster, namespace) as (_, second_port),
    ):
        assert await is_standing_by(second_port)
        holder = text(await short_lease(kube, namespace), "spec", "holderIdentity")
        first.kill()
        await eventually(leads_next, "another watcher holds the Lease")


async def test_a_watcher_that_lost_the_lease_waits_and_takes_over_later(
    deployment: Deployment, kube: KubeApi, namespace: str, cluster: str
) -> None:
    async with (
        watch_process(deployment, cluster, namespace) as (first, first_port),
        watch_process(deployment, cluster, namespace) as (second, second_port),
    ):
        assert await is_standing_by(second_port)
        await short_lease(kube, namespace)
        first.send_signal(signal.SIGTSTP)  # SIGSTOP for the watcher
        await until_leading(second_port)
        first.send_signal(signal.SIGCONT)
        await eventually(partial(is_standing_by, first_port), "the first has noticed")
        second.send_signal(signal.SIGTERM)
        await asyncio.wait_for(second.wait(), PATIENT)
        await until_leading(first_port)
        assert first.returncode is None
        assert 'perdure_watch_objects{kind="AccountPool"}' in (await get_health(first_port, "/metrics")).text


def pool_manifest() -> JsonObject:
    return {"metadata": {"name": f"w-{uuid4().hex[:8]}"}, "spec": {"poolSize": 0}}


@asynccontextmanager
async def watch_process(
    deployment: Deployment, cluster: str, lease_namespace: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """The watcher as a process of its own, ready, and its health port."""
    port = free_port()
    environ = {"PERDURE_CLUSTER": cluster, "PERDURE_WATCH_LEASE_NAMESPACE": lease_namespace}
    async with process(deployment, "watch", port=port, **environ) as watch:
        yield watch, port


async def is_standing_by(port: int) -> bool:
    return "standing by" in (await get_health(port, "/readyz")).text


async def until_leading(port: int) -> None:
    async def leads() -> bool:
        return "perdure_watch_leader 1.0" in (await get_health(port, "/metrics")).text

    await eventually(leads, "it leads")
    assert not await is_standing_by(port)


async def until_open(temporal: Client, cluster: str, kind: str, obj: JsonObject) -> None:
    metadata = mapping(obj, "metadata")
    key = Key(
        kind=kind,
        namespace=text(metadata, "namespace"),
        name=text(metadata, "name"),
        uid=text(metadata, "uid"),
        cluster=cluster,
    )
    async with asyncio.timeout(PATIENT):
        while True:
            try:
                await temporal.get_workflow_handle(key.workflow_id).describe()
                return
            except Exception:
                await asyncio.sleep(0.05)


async def eventually_checkpointed(kube: KubeApi, namespace: str) -> None:
    """The Lease carries the versions of every kind."""
    async with asyncio.timeout(PATIENT):
        while True:
            lease = await kube.get(LEASE, namespace, "perdure-watch")
            if '"AccountClaim"' in text(lease, "metadata", "annotations", CHECKPOINT):
                return
            await asyncio.sleep(0.1)
