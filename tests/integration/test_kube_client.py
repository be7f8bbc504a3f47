"""The Kubernetes client on a real API server: every verb, every refusal, leases and leader locks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from kube_fault_proxy import FaultProxy
from waiting import eventually

from domain.claims import RESOURCE_CLAIM
from domain.identity import Key, Kind
from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, SERVICE
from domain.notices import normal, warning
from domain.resource import parse_timestamp
from domain.threescale import APPLICATION_AUTH
from domain.writes import RecordEvents
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Throttled, Unavailable
from engine.kube import (
    CONFIG_MAP,
    EVENT,
    LEASE,
    NAMESPACE,
    POD,
    SECRET,
    BlockingKube,
    Expired,
    KubeApi,
    LeaderElection,
    LeadershipLost,
    leader_lock_holder,
    lease_is_live,
)
from engine.kube.errors import NAMESPACE_TERMINATING, NO_SUCH_KIND, api_error
from engine.kube.events import record_events
from engine.kube.json import JsonObject, at, sequence, text
from engine.own_thread import own_thread
from engine.settings import Settings
from localcloud.deployment import Deployment
from tests.running.audit_log import audit_events

pytestmark = pytest.mark.integration

SERVICE_ACCOUNT = Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area="")
UNKNOWN = Kind(name="Unknown", group="nobody.example.com", version="v1", plural="unknowns", area="")


def config_map(name: str, **data: str) -> JsonObject:
    return {"metadata": {"name": name}, "data": data}


def version_of(obj: JsonObject) -> str:
    return text(obj, "metadata", "resourceVersion")


async def test_an_object_can_be_created_read_changed_replaced_and_deleted(kube: KubeApi, namespace: str) -> None:
    await kube.create(CONFIG_MAP, config_map("a", x="1"), namespace)
    await kube.patch(CONFIG_MAP, namespace, "a", {"data": {"x": None, "y": "2"}})
    read = await kube.get(CONFIG_MAP, namespace, "a")
    assert read["data"] == {"y": "2"}
    await kube.replace(CONFIG_MAP, namespace, "a", {**read, "data": {"z": "3"}})
    assert (await kube.get(CONFIG_MAP, namespace, "a"))["data"] == {"z": "3"}
    await kube.delete(CONFIG_MAP, namespace, "a")
    with pytest.raises(Absent):
        await kube.get(CONFIG_MAP, namespace, "a")


@pytest.mark.parametrize("each_time", [False, True])
async def test_a_recurrence_is_another_event_only_if_it_is_one_each_time(
    kube: KubeApi, namespace: str, *, each_time: bool
) -> None:
    """Of each kind: the claims' API group depends on a setting, Services may be in another cluster."""
    for kind in (RESOURCE_CLAIM, LOAD_BALANCER_SET, SERVICE, APPLICATION_AUTH):
        key = Key(kind=kind.name, namespace=namespace, name="mine", uid="1")
        machine = Key(kind=LOAD_BALANCER_MACHINE.name, namespace=namespace, name="other", uid="2")
        message = f"{kind.name}: no quota"
        for request in ("req-a", "req-b"):
            own = warning("Failed", f"{message} [request {request}]", each_time=each_time)
            about = normal("Created", message, about=machine, each_time=each_time, action="Create")
            await record_events(RecordEvents(key=key, notices=(own, about), at=datetime.now(UTC)), kube, kube)
        listed = (await kube.list(EVENT, namespace)).items
        found = [each for each in listed if message in text(each, "message")]
        reporter = kind.reporter or kind.name
        assert Counter(_reported(each) for each in found) == {
            ("mine", kind.under(kube.operator_domain).api_version, "Warning", "Failed", reporter): 1 + each_time,
            ("other", LOAD_BALANCER_MACHINE.api_version, "Normal", "Created", reporter): 1 + each_time,
        }


def _reported(event: JsonObject) -> tuple[str, ...]:
    of = (text(event, "involvedObject", "name"), text(event, "involvedObject", "apiVersion"))
    return (*of, text(event, "type"), text(event, "reason"), text(event, "source", "component"))


async def test_our_writes_carry_our_field_manager_or_the_one_asked_for(kube: KubeApi, namespace: str) -> None:
    await kube.create(CONFIG_MAP, config_map("a", x="1"), namespace)
    written = await kube.patch(CONFIG_MAP, namespace, "a", {"data": {"y": "2"}}, field_manager="perdure-cli")
    managers = {text(entry, "manager") for entry in sequence(written, "metadata", "managedFields")}
    assert managers == {"perdure", "perdure-cli"}


async def test_a_patch_with_an_old_version_is_a_conflict_and_changes_nothing(kube: KubeApi, namespace: str) -> None:
    old = await kube.create(CONFIG_MAP, config_map("a", x="1"), namespace)
    new = await kube.patch(CONFIG_MAP, namespace, "a", {"data": {"x": "2"}}, resource_version=version_of(old))
    with pytest.raises(Conflict, match=f"patch ConfigMap {namespace}/a: 409 Conflict"):
        await kube.patch(CONFIG_MAP, namespace, "a", {"data": {"x": "3"}}, resource_version=version_of(old))
    assert version_of(await kube.get(CONFIG_MAP, namespace, "a")) == version_of(new)


async def test_a_delete_of_another_uid_or_version_is_a_conflict(kube: KubeApi, namespace: str) -> None:
    first = await kube.create(CONFIG_MAP, config_map("a"), namespace)
    await kube.patch(CONFIG_MAP, namespace, "a", {"data": {"x": "1"}})
    for precondition in ({"uid": str(uuid4())}, {"resource_version": version_of(first)}):
        with pytest.raises(Conflict):
            await kube.delete(CONFIG_MAP, namespace, "a", **precondition)
    await kube.delete(CONFIG_MAP, namespace, "a", uid=text(first, "metadata", "uid"))


async def test_a_list_reads_all_pages_and_only_what_is_selected(kube: KubeApi, namespace: str) -> None:
    for number in range(7):
        labels = {"odd": str(number % 2)}
        metadata: JsonObject = {"name": f"c{number}", "labels": labels}
        await kube.create(CONFIG_MAP, {"metadata": metadata}, namespace)
    everything = await kube.list(CONFIG_MAP, namespace, limit=2)
    assert {f"c{number}" for number in range(7)} <= {text(item, "metadata", "name") for item in everything.items}
    assert int(everything.resource_version) > 0
    assert len((await kube.list(CONFIG_MAP, namespace, label_selector="odd=1")).items) == 3
    assert len((await kube.list(CONFIG_MAP, namespace, field_selector="metadata.name=c3")).items) == 1
    assert len((await kube.list(CONFIG_MAP, label_selector="odd=0")).items) >= 4


async def test_the_data_of_secrets_is_not_sent_where_metadata_is_enough(kube: KubeApi, namespace: str) -> None:
    secret: JsonObject = {"metadata": {"name": "a"}, "stringData": {"token": "hidden"}}
    await kube.create(SECRET, secret, namespace)
    async with aclosing(kube.pages(SECRET, namespace, metadata_only=True)) as pages:
        (listing,) = [page async for page in pages]
    await kube.patch(SECRET, namespace, "a", {"metadata": {"labels": {"seen": "true"}}})
    events = kube.watch(
        SECRET, namespace, resource_version=listing.resource_version, duration=timedelta(seconds=60), metadata_only=True
    )
    async with aclosing(events) as stream:
        event = await anext(stream)
    (listed,) = listing.items
    for obj in (listed, event.object):
        assert text(obj, "metadata", "name") == "a"
        assert obj.keys() <= {"kind", "apiVersion", "metadata"}
    assert text(event.object, "metadata", "labels", "seen") == "true"


async def test_a_watch_brings_what_happens_after_the_version(kube: KubeApi, namespace: str) -> None:
    start = await kube.list(CONFIG_MAP, namespace, field_selector="metadata.name=a")
    # Longer than any line buffer: a watch must bring objects of any size.
    await kube.create(CONFIG_MAP, config_map("a", x="1" * 900_000), namespace)
    await kube.patch(CONFIG_MAP, namespace, "a", {"data": {"x": "2"}})
    await kube.delete(CONFIG_MAP, namespace, "a")
    events = kube.watch(
        CONFIG_MAP,
        namespace,
        resource_version=start.resource_version,
        field_selector="metadata.name=a",
        duration=timedelta(seconds=60),
    )
    seen: list[str] = []
    async with aclosing(events) as stream:
        while "DELETED" not in seen:
            seen.append((await anext(stream)).type)
    assert [kind for kind in seen if kind != "BOOKMARK"] == ["ADDED", "MODIFIED", "DELETED"]


async def test_many_watches_leave_connections_for_requests(deployment: Deployment, namespace: str) -> None:
    opened: list[int] = []

    async def follow(api: KubeApi, number: int, version: str) -> None:
        selector, note = f"metadata.name=c{number}", partial(opened.append, number)
        events = api.watch(CONFIG_MAP, namespace, resource_version=version, field_selector=selector, opened=note)
        async with aclosing(events) as stream:
            async for _ in stream:
                """It only stays open."""

    async with await KubeApi.open(Settings(), "tests", deployment.env()["KUBECONFIG"], connections=2) as few:
        version = (await few.list(CONFIG_MAP, namespace)).resource_version
        following = [asyncio.create_task(follow(few, number, version)) for number in range(8)]
        await eventually(lambda: len(opened) == 8)
        await few.create(CONFIG_MAP, config_map("c7"), namespace)
        for each in following:
            each.cancel()
        await asyncio.gather(*following, return_exceptions=True)


async def test_a_silent_watch_is_given_up(kube: KubeApi, namespace: str) -> None:
    start = await kube.list(CONFIG_MAP, namespace)
    events = kube.watch(
        CONFIG_MAP,
        namespace,
        resource_version=start.resource_version,
        field_selector="metadata.name=never",
        silence=timedelta(seconds=0.3),
    )
    async with aclosing(events) as stream:
        with pytest.raises(Unavailable, match=r"no answer within 0\.3 s"):
            await anext(stream)


async def test_refusals_say_what_was_tried_on_what_and_why(kube: KubeApi, namespace: str) -> None:
    await kube.create(SECRET, {"metadata": {"name": "s"}}, namespace)
    with pytest.raises(Conflict, match=f"create Secret {namespace}/s: .*already exists") as taken:
        await kube.create(SECRET, {"metadata": {"name": "s"}}, namespace)
    assert taken.value.code == "AlreadyExists"
    with pytest.raises(Absent, match=f'get Secret {namespace}/no: 404 NotFound: secrets "no" not found'):
        await kube.get(SECRET, namespace, "no")
    with pytest.raises(Invalid, match="Not A Name"):
        await kube.create(SECRET, {"metadata": {"name": "Not A Name"}}, namespace)
    with pytest.raises(Absent, match="namespaces"):
        await kube.create(SECRET, {"metadata": {"name": "s"}}, "no-such-namespace")
    with pytest.raises(Absent) as absent:
        await kube.list(UNKNOWN)
    assert absent.value.code == NO_SUCH_KIND


async def test_a_terminating_namespace_has_its_own_code(kube: KubeApi) -> None:
    name = f"kube-client-{uuid4().hex[:8]}"
    finalizer: JsonObject = {"metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    await kube.create(NAMESPACE, {"metadata": {"name": name}})
    await kube.create(CONFIG_MAP, finalizer, name)
    await kube.delete(NAMESPACE, "", name)
    try:
        with pytest.raises(Denied) as refused:
            await kube.create(CONFIG_MAP, config_map("late"), name)
        assert refused.value.code == NAMESPACE_TERMINATING
    finally:
        await kube.patch(CONFIG_MAP, name, "held", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("name", ["../../secrets", "a/b", "a?watch=true", "a b", "ä", "%2e%2e"])
async def test_a_hostile_name_stays_one_name(kube: KubeApi, namespace: str, name: str) -> None:
    with pytest.raises((Absent, Invalid)):
        await kube.get(CONFIG_MAP, namespace, name)


async def test_observe_mode_sends_no_change(deployment: Deployment, kube: KubeApi, namespace: str) -> None:
    made = await kube.create(CONFIG_MAP, config_map("a", x="1"), namespace)
    observing = await KubeApi.open(Settings(mode="observe"), "tests", kubeconfig=deployment.env()["KUBECONFIG"])
    async with observing as api:
        for change in (
            api.create(CONFIG_MAP, config_map("b"), namespace),
            api.patch(CONFIG_MAP, namespace, "a", {"data": {"x": "2"}}),
            api.replace(CONFIG_MAP, namespace, "a", config_map("a")),
            api.delete(CONFIG_MAP, namespace, "a"),
        ):
            with pytest.raises(Denied, match="observe mode"):
                await change
        assert version_of(await api.get(CONFIG_MAP, namespace, "a")) == version_of(made)


async def test_a_thread_can_use_the_client(kube: KubeApi, namespace: str) -> None:
    blocking = BlockingKube(kube, asyncio.get_running_loop())

    def work() -> list[str]:
        blocking.create(CONFIG_MAP, config_map("a", x="1"), namespace)
        blocking.patch(CONFIG_MAP, namespace, "a", {"data": {"x": "2"}})
        values = [text(blocking.get(CONFIG_MAP, namespace, "a"), "data", "x")]
        values.append(str(len(blocking.list(CONFIG_MAP, namespace, field_selector="metadata.name=a").items)))
        blocking.delete(CONFIG_MAP, namespace, "a")
        with pytest.raises(Absent):
            blocking.get(CONFIG_MAP, namespace, "a")
        return values

    assert await asyncio.to_thread(work) == ["2", "1"]


def test_a_process_leaves_no_private_key_of_its_kubeconfig_behind(deployment: Deployment, tmp_path: Path) -> None:
    """Deleted by `exit_now`: no exit handler of the interpreter runs."""
    program = """
import asyncio, os
from pathlib import Path
from engine.hard_exit import exit_now
from engine.kube import KubeApi
from engine.settings import Settings

asyncio.run(KubeApi.open(Settings()))
print(len(list(Path(os.environ["TMPDIR"]).iterdir())), "files")
exit_now(7)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **deployment.env(), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (7, "3 files\n"), ended.stderr
    assert list(tmp_path.iterdir()) == []


async def test_a_missing_api_server_is_unavailable(deployment: Deployment, tmp_path: Path) -> None:
    api = await KubeApi.open(
        Settings(), "tests", kubeconfig=str(elsewhere(deployment, tmp_path, "https://127.0.0.1:1"))
    )
    async with api:
        with pytest.raises(Unavailable, match="get ConfigMap default/a"):
            await api.get(CONFIG_MAP, "default", "a")


async def test_wrong_credentials_are_denied_and_renewed_ones_are_taken_up(
    deployment: Deployment, tmp_path: Path
) -> None:
    file = elsewhere(deployment, tmp_path)
    content = yaml.safe_load(file.read_text())
    user, content["users"][0]["user"] = content["users"][0]["user"], {"token": "wrong"}
    file.write_text(yaml.safe_dump(content))
    async with await KubeApi.open(Settings(), "tests", kubeconfig=str(file)) as api:
        with pytest.raises(Denied, match="401"):
            await api.get(CONFIG_MAP, "default", "kube-root-ca.crt")
        content["users"][0]["user"] = user
        file.write_text(yaml.safe_dump(content))
        await api.list(CONFIG_MAP, "default")


def elsewhere(deployment: Deployment, directory: Path, server: str = "") -> Path:
    """A copy of the deployment's kubeconfig, leading to another server if one is given."""
    content = yaml.safe_load(Path(deployment.env()["KUBECONFIG"]).read_text())
    if server:
        content["clusters"][0]["cluster"]["server"] = server
    file = directory / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (429, "", Throttled, "429"),
        (500, '{"reason": "InternalError", "message": "webhook"}', Unavailable, "InternalError"),
        (504, '{"reason": "Timeout", "message": "slow"}', Unavailable, "Timeout"),
        (410, '{"reason": "Expired", "message": "too old"}', Expired, "Expired"),
        (413, "too big", Invalid, "413"),
        (403, '{"reason": "Forbidden", "message": "no", "details": {"causes": "odd"}}', Denied, "Forbidden"),
    ],
)
def test_answers_are_mapped_by_their_status(status: int, body: str, kind: type[ApiError], code: str) -> None:
    error = api_error("get X a/b", status, body)
    assert type(error) is kind
    assert error.code == code


def test_the_server_says_how_long_to_wait() -> None:
    assert api_error("get X", 429, "", "7").delay == timedelta(seconds=7)
    body = json.dumps({"reason": "TooManyRequests", "details": {"retryAfterSeconds": 3}})
    assert api_error("get X", 429, body, "7").delay == timedelta(seconds=3)


def election(kube: KubeApi, namespace: str, identity: str) -> LeaderElection:
    """The election, some times as fast."""
    return LeaderElection(
        kube,
        namespace,
        "lock",
        identity,
        lease=timedelta(seconds=3),
        retry=timedelta(seconds=0.4),
    )


async def test_the_second_waits_until_the_first_lets_go(kube: KubeApi, namespace: str) -> None:
    first, second = election(kube, namespace, "first"), election(kube, namespace, "second")
    await first.acquire()
    holding = asyncio.create_task(first.hold(lambda: {"example.com/known": "7"}))
    waiting = asyncio.create_task(second.acquire())
    # Longer than the lease: only renewing retains it.
    done, _ = await asyncio.wait([waiting, holding], timeout=4)
    assert not done
    assert (first.leader, second.leader) == ("", "first")
    assert await leader_lock_holder(kube, namespace, "lock") == "first"
    holding.cancel()
    await first.release()
    await asyncio.wait_for(waiting, 30)
    assert second.leader == ""
    assert second.annotation("example.com/known") == "7"
    assert await leader_lock_holder(kube, namespace, "lock") == "second"


async def test_a_dead_leader_is_followed_when_its_lease_has_run_out(kube: KubeApi, namespace: str) -> None:
    await election(kube, namespace, "dead").acquire()
    began = asyncio.get_running_loop().time()
    await asyncio.wait_for(election(kube, namespace, "next").acquire(), 60)
    assert asyncio.get_running_loop().time() - began >= 2.9
    lease = await kube.get(LEASE, namespace, "lock")
    assert at(lease, "spec", "leaseTransitions") == 1


async def test_a_leader_whose_lease_was_taken_is_notified(kube: KubeApi, namespace: str) -> None:
    leader = election(kube, namespace, "leader")
    await leader.acquire()
    await kube.patch(LEASE, namespace, "lock", {"spec": {"holderIdentity": "thief"}})
    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(leader.hold(), 10)


async def test_a_leader_whose_event_loop_is_busy_keeps_its_lease(
    kube: KubeApi, namespace: str, deployment: Deployment
) -> None:
    kubeconfig = deployment.env()["KUBECONFIG"]
    async with own_thread("lease") as thread:
        leases = await thread.run(KubeApi.open(Settings(), "tests", kubeconfig))
        leader = election(leases, namespace, "leader")
        try:
            await thread.run(leader.acquire())
            holding = asyncio.create_task(thread.run(leader.hold()))
            await asyncio.sleep(0)
            began = datetime.now(UTC)
            time.sleep(4)  # noqa: ASYNC251 - longer than the lease: this is the point
            renewed = parse_timestamp(text(await kube.get(LEASE, namespace, "lock"), "spec", "renewTime"))
            assert renewed is not None
            assert renewed > began, "the Lease is renewed while the loop is busy"
            holding.cancel()
        finally:
            await thread.run(leases.close())


async def test_a_lease_is_renewed_by_one_request_and_followed_without_any(
    kube: KubeApi, namespace: str, deployment: Deployment
) -> None:
    leader, standby = election(kube, namespace, "leader"), election(kube, namespace, "standby")
    await leader.acquire()
    holding, waiting = asyncio.create_task(leader.hold()), asyncio.create_task(standby.acquire())
    try:
        await eventually(lambda: holder_knows_of_standby(kube, namespace, deployment), "a shorter Lease")

        async def only_renewed() -> bool:
            before = lease_requests(deployment, namespace)
            await eventually(
                lambda: lease_requests(deployment, namespace)["update"] >= before["update"] + 4, "four renewals"
            )
            return (lease_requests(deployment, namespace) - before).keys() == {"update"}

        # A renewal that comes late, on a busy machine, is followed by a read.
        await eventually(only_renewed, "four renewals in a row without any other request")
        assert not waiting.done()
    finally:
        holding.cancel()
        waiting.cancel()


async def test_a_standby_that_sees_renewals_again_reports_no_trouble(
    kube: KubeApi, namespace: str, deployment: Deployment, tmp_path: Path
) -> None:
    leader = election(kube, namespace, "leader")
    await leader.acquire()
    async with (
        FaultProxy.running(deployment.env()["KUBECONFIG"]) as proxy,
        await KubeApi.open(Settings(), "tests", proxy.write_kubeconfig(tmp_path / "proxied")) as proxied,
    ):
        standby = election(proxied, namespace, "standby")
        holding, waiting = asyncio.create_task(leader.hold()), asyncio.create_task(standby.acquire())
        try:
            await eventually(lambda: proxy.streams and standby.leader == "leader", "the standby watches")
            # An announcement that lost against a renewal is made again, which takes a read.
            await eventually(lambda: holder_knows_of_standby(kube, namespace, deployment), "a shorter Lease")
            proxy.lose_reads = 1000
            proxy.cut()
            await eventually(lambda: standby.trouble, "the Lease cannot be read")
            await eventually(lambda: not standby.trouble, "its watch shows renewals, though it still cannot be read")
            assert proxy.lose_reads
        finally:
            holding.cancel()
            waiting.cancel()


async def holder_knows_of_standby(kube: KubeApi, namespace: str, deployment: Deployment) -> bool:
    # The first Lease is short, too. Then: a longer one, the announcement, a renewal that misses it, the shorter one.
    if lease_requests(deployment, namespace)["update"] < 4:
        return False
    return at(await kube.get(LEASE, namespace, "lock"), "spec", "leaseDurationSeconds") == 3


def lease_requests(deployment: Deployment, namespace: str) -> Counter[str]:
    """How many requests about Leases of a namespace there were, by verb; watches count when they begin."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    return Counter(event["verb"] for event in audit_events(deployment) if path in event["requestURI"])


@pytest.mark.parametrize(
    ("written", "holder"),
    [
        # The same process renewed it, and was stopped before the answer came.
        pytest.param({"metadata": {"annotations": {"renewed": "unseen"}}}, "", id="renewed"),
        pytest.param({"spec": {"holderIdentity": "next"}}, "next", id="taken"),
    ],
)
async def test_a_lease_is_given_back_unless_another_holds_it(
    kube: KubeApi, namespace: str, written: JsonObject, holder: str
) -> None:
    leader = election(kube, namespace, "leader")
    await leader.acquire()
    await kube.patch(LEASE, namespace, "lock", written)
    await leader.release()
    assert text(await kube.get(LEASE, namespace, "lock"), "spec", "holderIdentity") == holder


async def test_another_clients_write_does_not_end_leadership(kube: KubeApi, namespace: str) -> None:
    leader = election(kube, namespace, "leader")
    await leader.acquire()
    edited = await kube.patch(LEASE, namespace, "lock", {"metadata": {"annotations": {"note": "by hand"}}})
    holding = asyncio.create_task(leader.hold())

    async def renewed() -> bool:
        lease = await kube.get(LEASE, namespace, "lock")
        return text(lease, "spec", "renewTime") != text(edited, "spec", "renewTime")

    try:
        await eventually(renewed, "the lease is renewed")
        assert not holding.done()
        assert leader.annotation("note") == "by hand"
    finally:
        holding.cancel()


def test_a_lease_is_live_until_its_time_and_a_minute_are_over() -> None:
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def lease(age: float, holder: str = "x") -> JsonObject:
        renewed = (now - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}}

    assert lease_is_live(lease(1), now)
    assert lease_is_live(lease(74), now)
    assert not lease_is_live(lease(76), now)
    assert not lease_is_live(lease(1, holder=""), now)
    assert not lease_is_live({"spec": {"holderIdentity": "x", "renewTime": "odd"}}, now)
    assert not lease_is_live({}, now)
    last = {"holderIdentity": "x", "renewTime": "9999-12-31T23:59:59Z"}
    assert lease_is_live({"spec": last}, now), "near the end of the calendar"


async def test_an_annotated_config_map_is_a_leader_lock_while_it_is_fresh(kube: KubeApi, namespace: str) -> None:
    def record(renewed: datetime) -> JsonObject:
        moment = renewed.strftime("%Y-%m-%dT%H:%M:%SZ")
        held = {"holderIdentity": "old-operator", "leaseDurationSeconds": 15, "renewTime": moment}
        return {
            "metadata": {"name": "old", "annotations": {"control-plane.alpha.kubernetes.io/leader": json.dumps(held)}}
        }

    assert not await leader_lock_holder(kube, namespace, "old")
    await kube.create(CONFIG_MAP, record(datetime.now(UTC)), namespace)
    assert await leader_lock_holder(kube, namespace, "old") == "old-operator"
    await kube.patch(CONFIG_MAP, namespace, "old", record(datetime.now(UTC) - timedelta(minutes=5)))
    assert not await leader_lock_holder(kube, namespace, "old")


async def test_a_config_map_owned_by_a_living_pod_is_a_leader_lock(kube: KubeApi, namespace: str) -> None:
    # No controller makes the default one here.
    await kube.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, namespace)
    pod = await kube.create(
        POD,
        {
            "metadata": {"name": "operator"},
            "spec": {
                "containers": [{"name": "c", "image": "i"}],
                "automountServiceAccountToken": False,
            },
        },
        namespace,
    )
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "operator", "uid": text(pod, "metadata", "uid")}
    await kube.create(CONFIG_MAP, {"metadata": {"name": "lock", "ownerReferences": [owner]}}, namespace)
    assert await leader_lock_holder(kube, namespace, "lock") == "pod operator"
    await kube.patch(POD, namespace, "operator", {"status": {"phase": "Failed"}}, subresource="status")
    assert not await leader_lock_holder(kube, namespace, "lock")
