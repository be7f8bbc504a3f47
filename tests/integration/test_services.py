"""Services of type LoadBalancer on a real API server, with worker and watcher at work.

No machine is built here: the LoadBalancer of a Service is only there. What its own lifecycle and the cloud would do (an
address, a ready machine, the end of a deletion) the tests do in its place, under another name than Perdure's.

The product reaches Services and Nodes through a proxy, as if they were another cluster's: the answers to its writes can
be lost there, and what it asks of which cluster is seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kube_fault_proxy import FaultProxy
from lb_objects import ADDED_BY_YAWOL, INFRASTRUCTURE
from product import StoppedAndStarted
from temporalio.client import Client
from temporalio.service import RPCError
from waiting import eventually

from activities.loadbalancers.replaced_operator import LEASES
from domain.control_annotations import PAUSED
from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER, SERVICE
from domain.loadbalancers.constants import LOAD_BALANCER_FINALIZER, SERVICE_FINALIZER
from domain.why import Why
from engine.errors import Absent, Conflict
from engine.kube import EVENT, LEASE, NAMESPACE, NODE, KubeApi
from engine.kube.json import JsonObject, at, mapping, sequence, text
from localcloud.deployment import Deployment
from tests.running.temporal_client import temporal_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PATIENCE = 60.0
CONTROL = "services-control"
YAWOL = "services-yawol"  # where yawol's own controllers would run
CLASS = "test.perdure.dev/yawol"
PREFIX = "yawol.stackit.cloud/"
PERSON = "kubectl"

SETTINGS = {
    "CLUSTER_NAMESPACE": CONTROL,
    "SECRET_NAME": "cloud",
    "FLOATING_NET_ID": "ext-net",
    "NETWORK_ID": "net",
    "FLAVOR_ID": "small",
    "IMAGE_ID": "alpine",
    "PERDURE_LOADBALANCERS_CLASSES": CLASS,
    "PERDURE_LOADBALANCERS_UNCLASSED": "false",
    "PERDURE_LOADBALANCERS_YAWOL_NAMESPACE": YAWOL,
}


class Lab(StoppedAndStarted):
    """The product at work, and what tests do beside it."""

    def __init__(
        self, deployment: Deployment, kube: KubeApi, temporal: Client, proxy: FaultProxy, kubeconfig: str
    ) -> None:
        self.kube = kube
        self.temporal = temporal
        self.proxy = proxy
        super().__init__(deployment)
        self._settings = {**SETTINGS, "PERDURE_LOADBALANCERS_TARGET_KUBECONFIG": kubeconfig}

    async def says(self, shop: Shop, uid: str, true: Callable[[Why], bool]) -> bool:
        """Whether the Service's workflow says of itself what is true."""
        key = Key(kind=SERVICE.name, namespace=shop.namespace, name="shop", uid=uid)
        with suppress(RPCError):
            return true(await self.temporal.get_workflow_handle(key.workflow_id).query("why", result_type=Why))
        return False

    async def environ(self) -> dict[str, str]:
        """See `StoppedAndStarted`."""
        return self._settings


@pytest.fixture(scope="module")
async def lab(deployment: Deployment, kube: KubeApi, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lab]:
    for name in (CONTROL, YAWOL):
        with suppress(Conflict):
            await kube.create(NAMESPACE, {"metadata": {"name": name}})
    await create_node(kube, "svc-a", "10.0.0.1")
    async with FaultProxy.running(deployment.env()["KUBECONFIG"]) as proxy:
        file = tmp_path_factory.mktemp("served") / "kubeconfig"
        temporal = await temporal_of(deployment)
        found = Lab(deployment, kube, temporal, proxy, proxy.write_kubeconfig(Path(file)))
        await found.start()
        try:
            yield found
        finally:
            await found.stop()
            for each in (await kube.list(NODE)).items:
                if text(each, "metadata", "name").startswith("svc-"):
                    await kube.delete(NODE, "", text(each, "metadata", "name"))


class Shop:
    """One Service, and its LoadBalancer."""

    def __init__(self, lab: Lab, namespace: str) -> None:
        self.lab = lab
        self.kube = lab.kube
        self.namespace = namespace
        self.name = f"{namespace}--shop"

    async def create(self, annotations: Mapping[str, str] | None = None, **spec: Any) -> None:
        body = {
            "metadata": {"name": "shop", "annotations": prefixed(annotations or {})},
            "spec": {
                "type": "LoadBalancer",
                "loadBalancerClass": CLASS,
                "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
                **spec,
            },
        }
        await self.kube.create(SERVICE, body, self.namespace)

    async def annotate(self, **annotations: str | None) -> None:
        await self.patch({"metadata": {"annotations": prefixed(annotations)}})

    async def patch(self, patch: JsonObject) -> None:
        await self.kube.patch(SERVICE, self.namespace, "shop", patch, field_manager=PERSON)

    async def service(self) -> JsonObject:
        return await self.kube.get(SERVICE, self.namespace, "shop")

    async def balancer(self) -> JsonObject:
        return await self.kube.get(LOAD_BALANCER, CONTROL, self.name)

    async def until_balancer(self, true: Callable[[JsonObject], bool], what: str) -> JsonObject:
        async def holds() -> bool:
            with suppress(Absent):
                return true(await self.balancer())
            return False

        await eventually(holds, what, PATIENCE)
        return await self.balancer()

    async def until_service(self, true: Callable[[JsonObject], bool], what: str) -> JsonObject:
        async def holds() -> bool:
            return true(await self.service())

        await eventually(holds, what, PATIENCE)
        return await self.service()

    async def until_recorded(self, words: str, times: int = 1) -> None:
        async def holds() -> bool:
            return len(await self.events_with(words)) == times

        await eventually(holds, f"{words!r} is recorded {times} times", PATIENCE)

    async def events_with(self, words: str) -> list[JsonObject]:
        """The Events about the Service with these words."""
        events = await self.kube.list(EVENT, self.namespace, field_selector="involvedObject.kind=Service")
        return [each for each in events.items if words in text(each, "message")]

    async def serve(self, address: str = "203.0.113.7") -> None:
        """As the LoadBalancer's own lifecycle does once a machine is ready; that one is held, as it knows of none."""
        held = {"metadata": {"annotations": {PAUSED: "true"}}}
        await self.kube.patch(LOAD_BALANCER, CONTROL, self.name, held, field_manager=PERSON)
        status = {"status": {"externalIP": address, "readyReplicas": 1, "replicas": 1}}
        await self.kube.patch(LOAD_BALANCER, CONTROL, self.name, status, subresource="status", field_manager=PERSON)

    async def end(self) -> None:
        """As the LoadBalancer's own lifecycle does once nothing is left in the cloud. One that is not held goes by
        itself, because its project is never reached.
        """

        async def goes() -> bool:
            with suppress(Absent):
                return is_deleting(await self.balancer())
            return True

        await eventually(goes, "the LoadBalancer is asked to go", PATIENCE)
        with suppress(Absent):
            await self.kube.patch(
                LOAD_BALANCER, CONTROL, self.name, {"metadata": {"finalizers": None}}, field_manager=PERSON
            )

    async def leave(self) -> None:
        with suppress(Absent):
            await self.kube.delete(SERVICE, self.namespace, "shop")
        await self.end()

        async def gone() -> bool:
            with suppress(Absent):
                await self.service()
                return False
            return True

        await eventually(gone, "the Service is gone", PATIENCE)


@pytest.fixture
async def shop(lab: Lab, kube: KubeApi) -> AsyncIterator[Shop]:
    name = f"web-{uuid4().hex[:6]}"
    await kube.create(NAMESPACE, {"metadata": {"name": name}})
    found = Shop(lab, name)
    yield found
    await found.leave()
    await kube.delete(NAMESPACE, "", name)


async def test_a_service_gets_a_whole_load_balancer_an_address_and_is_released_in_order(shop: Shop) -> None:
    await shop.create({"replicas": "2", "tcpIdleTimeout": "5m"})
    made = await shop.until_balancer(lambda _: True, "the LoadBalancer is made")
    assert text(made, "metadata", "annotations", f"{PREFIX}serviceName") == f"{shop.namespace}/shop"
    assert at(made, "metadata", "generation") == 1, "whole from its birth: no patch follows"
    assert at(made, "spec", "replicas") == 2
    assert text(made, "spec", "options", "tcpIdleTimeout") == "5m0s"
    assert text(made, "spec", "infrastructure", "defaultNetwork", "networkID") == "net"
    ports = sequence((await shop.service()), "spec", "ports")
    assert sequence(made, "spec", "ports") == ports
    assert endpoints(made)["svc-a"] == ["10.0.0.1"]
    assert SERVICE_FINALIZER in sequence(await shop.service(), "metadata", "finalizers")
    await shop.until_recorded("LoadBalancer is in creation")
    await shop.until_balancer(
        lambda each: sequence(each, "metadata", "finalizers") == [LOAD_BALANCER_FINALIZER], "its lifecycle keeps it"
    )

    await shop.serve("203.0.113.7")
    await shop.until_service(lambda each: addresses(each) == ["203.0.113.7"], "the address is written")
    await shop.until_recorded("LoadBalancer is successfully created with IP 203.0.113.7")
    await shop.serve("203.0.113.8")
    await shop.until_service(lambda each: addresses(each) == ["203.0.113.8"], "the new address is written")

    await shop.kube.delete(SERVICE, shop.namespace, "shop")
    await shop.until_balancer(is_deleting, "the LoadBalancer goes first")
    held = await shop.service()
    assert SERVICE_FINALIZER in sequence(held, "metadata", "finalizers")
    assert addresses(held) == ["203.0.113.8"]
    await shop.leave()


async def test_every_change_reaches_the_load_balancer_in_one_patch(shop: Shop) -> None:
    """W12, W13, W1: five options at once, sorted networks, and nothing is left of what is asked no more."""
    requested = {
        "tcpProxyProtocol": "true",
        "tcpProxyProtocolPortsFilter": "80,443",
        "tcpIdleTimeout": "5m",
        "udpIdleTimeout": "1m",
        "serverGroupPolicy": "anti-affinity",
        "logForward": "true",
        "logForwardProxyURL": "http://proxy",
        "additionalNetworks": "net-c,net-a,net-b",
        "defaultSubnetID": "subnet",
        "replicas": "3",
    }
    await shop.create()
    before = await shop.until_balancer(lambda _: True, "the LoadBalancer is made")
    await shop.annotate(**requested, **{"logging.yawol.stackit.cloud/team": "web"})
    after = await shop.until_balancer(lambda each: at(each, "spec", "replicas") == 3, "the options are there")
    assert at(after, "metadata", "generation") == 2
    options = mapping(after, "spec", "options")
    assert options["tcpProxyProtocolPortFilter"] == [80, 443]
    assert (options["tcpIdleTimeout"], options["udpIdleTimeout"]) == ("5m0s", "1m0s")
    assert options["serverGroupPolicy"] == "anti-affinity"
    assert mapping(options, "logForward")["labels"] == {"team": "web"}
    networks = sequence(after, "spec", "infrastructure", "additionalNetworks")
    assert [text(each, "networkID") for each in networks] == ["net-a", "net-b", "net-c"]

    await shop.annotate(**dict.fromkeys(requested), **{"logging.yawol.stackit.cloud/team": None})
    back = await shop.until_balancer(lambda each: at(each, "spec", "replicas") == 1, "the options are gone")
    assert at(back, "metadata", "generation") == 3
    assert text(back, "spec", "infrastructure", "defaultNetwork", "subnetID") == ""
    assert not at(back, "spec", "options", "tcpIdleTimeout")
    assert not at(back, "spec", "options", "logForward", "proxyUrl")
    assert not at(back, "spec", "options", "logForward", "labels")
    assert not at(back, "spec", "infrastructure", "additionalNetworks")
    assert at(before, "spec", "ports") == at(back, "spec", "ports")


async def test_a_bad_annotation_changes_nothing_and_is_shown_until_it_is_corrected(shop: Shop) -> None:
    await shop.create({"replicas": "3"})
    await shop.until_balancer(lambda each: at(each, "spec", "replicas") == 3, "the LoadBalancer is made")
    await shop.annotate(replicas="three", udpIdleTimeout="2m")
    after = await shop.until_balancer(
        lambda each: text(each, "spec", "options", "udpIdleTimeout") == "2m0s", "the good one counts"
    )
    assert at(after, "spec", "replicas") == 3
    shown = await shop.until_service(lambda each: bool(misconfigured(each)), "the Service says what is wrong")
    assert "replicas: 'three' is not a number from 0 up" in misconfigured(shown)
    await shop.until_recorded("replicas: 'three' is not a number")
    await shop.annotate(replicas="2")
    await shop.until_balancer(lambda each: at(each, "spec", "replicas") == 2, "mended")
    await shop.until_service(lambda each: not misconfigured(each), "nothing is wrong any more")


async def test_a_service_that_cannot_be_served_stops_no_other(shop: Shop, kube: KubeApi) -> None:
    """W14: a Service that is wrong or missing affects no other."""
    bad = {
        "metadata": {"name": "bad"},
        "spec": {"type": "LoadBalancer", "loadBalancerClass": CLASS, "ports": [{"port": 53, "protocol": "SCTP"}]},
    }
    await kube.create(SERVICE, bad, shop.namespace)
    orphan = {
        "metadata": {"name": f"aa-{shop.namespace}", "annotations": {f"{PREFIX}serviceName": "nowhere/gone"}},
        "spec": {"selector": {"matchLabels": {"of": "nobody"}}, "infrastructure": infrastructure()},
    }
    await kube.create(LOAD_BALANCER, orphan, CONTROL)
    await shop.create()
    await shop.until_balancer(lambda _: True, "the good Service is served")
    await create_node(kube, "svc-new", "10.0.0.77")
    await shop.until_balancer(lambda each: "svc-new" in endpoints(each), "its nodes are followed")
    await kube.delete(NODE, "", "svc-new")
    await shop.until_balancer(lambda each: "svc-new" not in endpoints(each), "the node is left out")

    async def events_with() -> bool:
        return "unsupported protocol" in misconfigured(await kube.get(SERVICE, shop.namespace, "bad"))

    await eventually(events_with, "the bad one says why", PATIENCE)
    with pytest.raises(Absent):
        await kube.get(LOAD_BALANCER, CONTROL, f"{shop.namespace}--bad")
    await kube.delete(SERVICE, shop.namespace, "bad")
    await kube.patch(LOAD_BALANCER, CONTROL, f"aa-{shop.namespace}", {"metadata": {"finalizers": None}})
    with suppress(Absent):
        await kube.delete(LOAD_BALANCER, CONTROL, f"aa-{shop.namespace}")


async def test_endpoints_follow_the_nodes_and_heartbeats_change_nothing(shop: Shop, kube: KubeApi) -> None:
    """W3: a node without an address of the wanted family is left out, and the configuration stays whole."""
    await shop.create()
    await shop.until_balancer(lambda each: set(endpoints(each)) == {"svc-a"}, "the node is there")
    await create_node(kube, "svc-b", "10.0.0.2")
    await create_node(kube, "svc-six", "2001:db8::6")
    found = await shop.until_balancer(lambda each: "svc-b" in endpoints(each), "the second node is there")
    assert set(endpoints(found)) == {"svc-a", "svc-b"}
    await set_node(kube, "svc-b", ready=False)
    await shop.until_balancer(lambda each: set(endpoints(each)) == {"svc-a"}, "a node that is not ready is left out")
    await set_node(kube, "svc-a", ready=False)
    both = await shop.until_balancer(lambda each: "svc-b" in endpoints(each), "with none ready all of them answer")
    generation = at(both, "metadata", "generation")
    for beat in range(5):
        await set_node(kube, "svc-a", ready=False, beat=f"2026-01-01T00:00:0{beat}Z")
    await set_node(kube, "svc-a", address="10.0.0.9", ready=True)
    moved = await shop.until_balancer(lambda each: endpoints(each) == {"svc-a": ["10.0.0.9"]}, "the address has moved")
    assert at(moved, "metadata", "generation") == int(str(generation)) + 1, "heartbeats were written"
    await set_node(kube, "svc-a", address="10.0.0.1", ready=True)
    for name in ("svc-b", "svc-six"):
        await kube.delete(NODE, "", name)
    await shop.until_balancer(lambda each: endpoints(each) == {"svc-a": ["10.0.0.1"]}, "all as before")


async def test_an_address_is_written_once_whatever_the_api_server_adds_to_it(shop: Shop) -> None:
    """W2: the API server adds `ipMode: VIP`, and nothing is written for that."""
    await shop.create()
    await shop.until_balancer(lambda _: True, "the LoadBalancer is made")
    await shop.serve()
    served = await shop.until_service(lambda each: bool(addresses(each)), "the address is written")
    assert sequence(served, "status", "loadBalancer", "ingress") == [{"ip": "203.0.113.7", "ipMode": "VIP"}]
    await shop.annotate(replicas="2")
    await shop.until_balancer(lambda each: at(each, "spec", "replicas") == 2, "another pass is over")
    assert len(await shop.events_with("successfully created")) == 1
    managed = [
        each
        for each in sequence(await shop.service(), "metadata", "managedFields")
        if text(each, "subresource") == "status" and text(each, "manager") == "perdure"
    ]
    assert [text(each, "time") for each in managed] == [status_written(served)]


async def test_a_service_that_is_one_no_more_loses_everything_but_itself(shop: Shop) -> None:
    await shop.create()
    await shop.until_balancer(lambda _: True, "the LoadBalancer is made")
    await shop.serve()
    await shop.until_service(lambda each: bool(addresses(each)), "the address is written")
    await shop.patch({"spec": {"type": "ClusterIP", "loadBalancerClass": None}})
    await shop.end()
    left = await shop.until_service(lambda each: not sequence(each, "metadata", "finalizers"), "the finalizer is gone")
    assert addresses(left) == []
    await shop.patch({"spec": {"type": "LoadBalancer", "loadBalancerClass": CLASS}})
    await shop.until_balancer(lambda each: not is_deleting(each), "it is served again")


async def test_a_class_that_changes_hands_ends_the_load_balancer_and_leaves_the_finalizer(shop: Shop) -> None:
    """W19: as yawol leaves it, by default; the class of an annotation counts more than the field."""
    await shop.create()
    await shop.until_balancer(lambda _: True, "the LoadBalancer is made")
    await shop.annotate(className="somebody-else")
    await shop.end()

    async def gone() -> bool:
        with suppress(Absent):
            await shop.balancer()
            return False
        return True

    await eventually(gone, "the LoadBalancer is gone", PATIENCE)
    assert SERVICE_FINALIZER in sequence(await shop.service(), "metadata", "finalizers")
    await shop.annotate(className=None)
    await shop.until_balancer(lambda each: not is_deleting(each), "ours again, it is served again")


async def test_a_load_balancer_that_others_edit_or_delete_is_restored(shop: Shop) -> None:
    await shop.create()
    first = await shop.until_balancer(lambda _: True, "the LoadBalancer is made")
    await shop.kube.patch(LOAD_BALANCER, CONTROL, shop.name, {"spec": {"replicas": 5}}, field_manager=PERSON)
    await shop.until_balancer(lambda each: at(each, "spec", "replicas") == 1, "the Service decides on replicas")
    name = {"metadata": {"annotations": {f"{PREFIX}serviceName": "nobody/nothing"}}}
    await shop.kube.patch(LOAD_BALANCER, CONTROL, shop.name, name, field_manager=PERSON)
    await shop.until_balancer(lambda each: service_name(each) == f"{shop.namespace}/shop", "its Service is named again")
    await shop.kube.delete(LOAD_BALANCER, CONTROL, shop.name)
    await shop.until_balancer(
        lambda each: text(each, "metadata", "uid") != text(first, "metadata", "uid"), "another one is made"
    )


@pytest.mark.complete
async def test_a_load_balancers_events_reach_its_service_once_across_restarts(shop: Shop, lab: Lab) -> None:
    """W31: a restart repeats neither forwarded Events nor the errors of the Service."""
    await shop.create({"tcpIdleTimeout": "soon"})
    balancer = await shop.until_balancer(lambda _: True, "the LoadBalancer is made")
    await record_event(shop.kube, balancer, "Failed", "Quota exceeded for resources: ['floatingip']")
    await shop.until_recorded("Quota exceeded")
    await shop.until_recorded("tcpIdleTimeout")
    async with lab.without_product():
        pass
    await record_event(shop.kube, balancer, "Warning", "DebugSettings are enabled")
    await shop.until_recorded("DebugSettings are enabled")
    (forwarded,) = await shop.events_with("Quota exceeded")
    assert (text(forwarded, "type"), text(forwarded, "reason")) == ("Warning", "Failed")
    assert text(forwarded, "source", "component") == "yawol-cloud-controller"
    assert len(await shop.events_with("tcpIdleTimeout")) == 1


@pytest.mark.complete
async def test_changes_during_downtime_are_applied_afterwards(shop: Shop, lab: Lab, kube: KubeApi) -> None:
    await shop.create()
    await shop.until_balancer(lambda _: True, "the LoadBalancer is made")
    async with lab.without_product():
        await shop.annotate(replicas="4")
        await shop.serve()
        await create_node(kube, "svc-late", "10.0.0.5")
    await shop.until_balancer(lambda each: at(each, "spec", "replicas") == 4, "the Service was looked at")
    await shop.until_balancer(lambda each: "svc-late" in endpoints(each), "the nodes were looked at")
    await shop.until_service(lambda each: bool(addresses(each)), "the LoadBalancer was looked at")
    async with lab.without_product():
        await kube.delete(NODE, "", "svc-late")
        await shop.patch({"spec": {"type": "ClusterIP", "loadBalancerClass": None}})
    await shop.end()
    await shop.until_service(lambda each: not sequence(each, "metadata", "finalizers"), "it is let go")


async def test_lost_answers_double_nothing(shop: Shop, lab: Lab) -> None:
    lab.proxy.lose_writes = 3  # finalizer, Event, status
    await shop.create()
    made = await shop.until_balancer(lambda _: True, "the LoadBalancer is made")
    await shop.serve()
    await shop.until_service(lambda each: bool(addresses(each)), "the address is written")
    lab.proxy.lose_writes = 0
    held = await shop.service()
    assert list(sequence(held, "metadata", "finalizers")).count(SERVICE_FINALIZER) == 1
    assert text(await shop.balancer(), "metadata", "uid") == text(made, "metadata", "uid")
    lab.proxy.lose_writes = 2
    await shop.leave()
    lab.proxy.lose_writes = 0


async def test_services_are_asked_of_their_own_cluster_and_load_balancers_of_ours(shop: Shop, lab: Lab) -> None:
    await shop.create()
    await shop.until_balancer(lambda _: True, "the LoadBalancer is made")
    await shop.until_recorded("LoadBalancer is in creation")
    wanted = {("WATCH", "services"), ("WATCH", "nodes"), ("GET", "nodes"), ("PATCH", "services"), ("POST", "events")}
    assert wanted <= lab.proxy.asked
    assert {plural for _, plural in lab.proxy.asked} == {"services", "nodes", "events"}
    assert ("WATCH", "events") not in lab.proxy.asked, "those about LoadBalancers are in our own cluster"


async def test_services_of_other_classes_and_types_are_left_alone(shop: Shop, kube: KubeApi) -> None:
    other = {"spec": {"type": "LoadBalancer", "loadBalancerClass": "somebody/else", "ports": [{"port": 1}]}}
    plain = {"spec": {"ports": [{"port": 1}]}}
    unclassed = {"spec": {"type": "LoadBalancer", "ports": [{"port": 1}]}}
    for name, body in (("other", other), ("plain", plain), ("unclassed", unclassed)):
        await kube.create(SERVICE, {"metadata": {"name": name}, **body}, shop.namespace)
    await shop.create()
    await shop.until_balancer(lambda _: True, "the last of them is served")
    for name in ("other", "plain", "unclassed"):
        left = await kube.get(SERVICE, shop.namespace, name)
        assert not sequence(left, "metadata", "finalizers")
        await kube.delete(SERVICE, shop.namespace, name)


@pytest.mark.complete
async def test_nothing_is_done_while_yawol_still_leads(shop: Shop, lab: Lab, kube: KubeApi) -> None:
    lease = {
        "metadata": {"name": LEASES[SERVICE.name]},
        "spec": {"holderIdentity": "yawol-1", "leaseDurationSeconds": 3600, "renewTime": "2090-01-01T00:00:00.000000Z"},
    }
    async with lab.without_product():
        await kube.create(LEASE, lease, YAWOL)
    try:
        await shop.create()
        uid = text(await shop.service(), "metadata", "uid")
        await eventually(
            lambda: lab.says(shop, uid, lambda why: "yawol still leads (yawol-1)" in why.hold),
            "the Service's workflow says who leads",
            PATIENCE,
        )
        with pytest.raises(Absent):
            await shop.balancer()
        assert not sequence(await shop.service(), "metadata", "finalizers")
    finally:
        async with lab.without_product():
            await kube.delete(LEASE, YAWOL, LEASES[SERVICE.name])
    await shop.until_balancer(lambda _: True, "the LoadBalancer is made once no other process leads")


@pytest.mark.slow
async def test_objects_left_by_yawol_are_adopted_without_a_write(shop: Shop, lab: Lab, kube: KubeApi) -> None:
    """W1: also where its networks are in another order than ours would."""
    async with lab.without_product():
        await shop.create({"additionalNetworks": "net-a,net-b", "tcpIdleTimeout": "300s", "replicas": "2"})
        held = {"metadata": {"finalizers": [SERVICE_FINALIZER]}}
        address = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}}
        await kube.patch(SERVICE, shop.namespace, "shop", held, field_manager=YAWOL)
        await kube.patch(SERVICE, shop.namespace, "shop", address, subresource="status", field_manager=YAWOL)
        service = await shop.service()
        await kube.create(LOAD_BALANCER, as_yawol_leaves_it(shop, service), CONTROL)
        await shop.serve()
        balancer = await shop.balancer()
    uid = text(service, "metadata", "uid")
    await eventually(lambda: lab.says(shop, uid, lambda why: why.phase == "Ready"), "it is looked after", PATIENCE)
    assert version(await shop.service()) == version(service)
    assert version(await shop.balancer()) == version(balancer)
    assert await shop.events_with("") == []


# --- what is done and seen ---


async def create_node(kube: KubeApi, name: str, address: str) -> None:
    with suppress(Conflict):
        await kube.create(NODE, {"metadata": {"name": name}})
    await set_node(kube, name, address=address, ready=True)


async def set_node(
    kube: KubeApi, name: str, *, ready: bool, address: str = "", beat: str = "2026-01-01T00:00:00Z"
) -> None:
    condition = {"type": "Ready", "status": str(ready), "lastHeartbeatTime": beat, "reason": "Test", "message": ""}
    status: JsonObject = {"conditions": [condition]}
    if address:
        status["addresses"] = [{"type": "InternalIP", "address": address}]
    await kube.patch(NODE, "", name, {"status": status}, subresource="status", field_manager="kubelet")


async def record_event(kube: KubeApi, balancer: JsonObject, reason: str, message: str) -> None:
    """An Event about a LoadBalancer, as its controller writes them."""
    meta = mapping(balancer, "metadata")
    about = {"kind": "LoadBalancer", "namespace": CONTROL, "name": text(meta, "name"), "uid": text(meta, "uid")}
    await kube.create(
        EVENT,
        {
            "metadata": {"generateName": "event."},
            "involvedObject": {"apiVersion": LOAD_BALANCER.api_version, **about},
            "type": "Warning",
            "reason": reason,
            "message": message,
            "source": {"component": "yawol-service"},
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:00Z",
        },
        CONTROL,
    )


def as_yawol_leaves_it(shop: Shop, service: JsonObject) -> JsonObject:
    """The LoadBalancer that yawol has made and left for the Service."""
    reference = {"name": "cloud", "namespace": CONTROL}
    return {
        "metadata": {
            "name": shop.name,
            "annotations": {f"{PREFIX}serviceName": f"{shop.namespace}/shop", PAUSED: "true"},
            "finalizers": [LOAD_BALANCER_FINALIZER],
        },
        "spec": {
            "selector": {"matchLabels": {f"{PREFIX}loadbalancer": "yyjki53tcryt5pcw"}},
            "replicas": 2,
            "ports": sequence(service, "spec", "ports"),
            "endpoints": [{"name": "svc-a", "addresses": ["10.0.0.1"]}],
            **ADDED_BY_YAWOL,
            "infrastructure": {**INFRASTRUCTURE, **ADDED_BY_YAWOL["infrastructure"], "authSecretRef": reference},
        },
    }


def version(obj: JsonObject) -> str:
    return text(obj, "metadata", "resourceVersion")


def prefixed(annotations: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name if "/" in name else PREFIX + name: value for name, value in annotations.items()}


def infrastructure() -> JsonObject:
    reference = {"name": "cloud", "namespace": CONTROL}
    return {"authSecretRef": reference, "flavor": {"flavorID": "f"}, "image": {"imageID": "i"}}


def endpoints(balancer: JsonObject) -> dict[str, list[str]]:
    found = sequence(balancer, "spec", "endpoints")
    return {text(each, "name"): [str(one) for one in sequence(each, "addresses")] for each in found}


def addresses(service: JsonObject) -> list[str]:
    return [text(each, "ip") for each in sequence(service, "status", "loadBalancer", "ingress")]


def misconfigured(service: JsonObject) -> str:
    conditions = sequence(service, "status", "conditions")
    return "".join(text(each, "message") for each in conditions if text(each, "type") == "perdure.dev/Misconfigured")


def status_written(service: JsonObject) -> str:
    entries = sequence(service, "metadata", "managedFields")
    (entry,) = [
        each for each in entries if text(each, "subresource") == "status" and text(each, "manager") == "perdure"
    ]
    return text(entry, "time")


def service_name(balancer: JsonObject) -> str:
    return text(balancer, "metadata", "annotations", f"{PREFIX}serviceName")


def is_deleting(obj: JsonObject) -> bool:
    return bool(text(obj, "metadata", "deletionTimestamp"))
