"""What a Service of type LoadBalancer asks for and gets, and which Events it has."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from lb_objects import INFRASTRUCTURE, INSTALLATION, balancer, node, service

from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.services.endpoints import endpoints_of, what_matters
from domain.loadbalancers.services.objects import Installation, Service
from domain.loadbalancers.services.service_annotations import parse_annotations
from domain.loadbalancers.services.service_status import write_back
from domain.loadbalancers.services.synchronization import ServiceWork, work_for
from domain.loadbalancers.template_hash import template_hash
from domain.writes import merge

Json = dict[str, Any]


NODES = (node("node-a", "10.0.0.1"),)


def work(of: Service, existing: LoadBalancer | None = None, installation: Installation = INSTALLATION) -> ServiceWork:
    return work_for(of, existing, NODES, installation)


def after(done: ServiceWork, before: LoadBalancer | None = None) -> LoadBalancer:
    """The LoadBalancer once the work is done."""
    if before is None:
        return LoadBalancer.model_validate(done.create)
    return LoadBalancer.model_validate(merge(before.model_dump(mode="json"), done.patch))


def messages(done: ServiceWork) -> str:
    return "\n".join(f"{notice.type}/{notice.reason} {notice.message}" for notice in done.notices)


# --- creation ---


def test_a_new_service_gets_a_finalizer_and_a_whole_load_balancer_in_one_request() -> None:
    """The LoadBalancer's own lifecycle adds its finalizer, once it knows whether the project can be reached."""
    done = work(service(metadata={"finalizers": None}))
    assert done.add_finalizer
    assert done.create == {
        "apiVersion": "yawol.stackit.cloud/v1beta1",
        "kind": "LoadBalancer",
        "metadata": {
            "name": "web--shop",
            "namespace": "lbs",
            "annotations": {"yawol.stackit.cloud/serviceName": "web/shop"},
        },
        "spec": {
            "selector": {"matchLabels": {"yawol.stackit.cloud/loadbalancer": "nhtfagm4uknmbphm"}},
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30080}],
            "endpoints": [{"name": "node-a", "addresses": ["10.0.0.1"]}],
            "infrastructure": INFRASTRUCTURE,
        },
    }
    assert messages(done) == (
        "Normal/creation LoadBalancer is in creation\n"
        "Normal/update LoadBalancer ports successfully synced with service ports"
    )


def test_a_new_load_balancer_needs_no_patch() -> None:
    of = service(ALL_OPTIONS)
    assert work(of, after(work(of))).patch == {}


def test_the_default_of_the_installation_makes_a_load_balancer_internal_from_birth() -> None:
    """W30: no floating IP is made to be deleted a moment later."""
    internal = INSTALLATION.model_copy(update={"internal": True})
    assert after(work(service(), installation=internal)).internal
    assert not after(work(service({"internalLB": "false"}), installation=internal)).internal


def test_zero_replicas_are_created_as_asked() -> None:
    assert after(work(service({"replicas": "0"}))).spec.replicas == 0


# --- options ---

ALL_OPTIONS = {
    "imageId": "image-2",
    "flavorId": "flavor-2",
    "availabilityZone": "zone-2",
    "defaultNetworkID": "net-2",
    "defaultSubnetID": "subnet-2",
    "floatingNetworkID": "ext-2",
    "additionalNetworks": "z,a",
    "internalLB": "true",
    "replicas": "3",
    "loadBalancerSourceRanges": "10.0.0.0/8,192.168.0.0/16",
    "tcpProxyProtocol": "true",
    "tcpProxyProtocolPortsFilter": "80,443",
    "tcpIdleTimeout": "5m",
    "udpIdleTimeout": "90s",
    "debug": "true",
    "debugsshkey": "key",
    "logForward": "true",
    "logForwardLokiURL": "http://loki",
    "logForwardProxyURL": "http://proxy",
    "logging.yawol.stackit.cloud/team": "shop",
    "serverGroupPolicy": "anti-affinity",
}


def test_every_annotation_reaches_the_load_balancer_in_one_patch() -> None:
    """W12: not one option for each change of the Service."""
    done = work(service(ALL_OPTIONS), balancer())
    spec = after(done, balancer()).spec
    infrastructure, options = spec.infrastructure, spec.options
    network = infrastructure.default_network
    assert (infrastructure.image.id, infrastructure.flavor.id) == ("image-2", "flavor-2")
    assert (network.network_id, network.subnet_id, network.floating_net_id) == ("net-2", "subnet-2", "ext-2")
    assert [each.network_id for each in infrastructure.additional_networks or ()] == ["a", "net", "z"]
    assert infrastructure.availability_zone == "zone-2"
    assert (spec.replicas, options.internal_lb, options.tcp_proxy_protocol) == (3, True, True)
    assert options.load_balancer_source_ranges == ("10.0.0.0/8", "192.168.0.0/16")
    assert options.tcp_proxy_protocol_port_filter == (80, 443)
    assert (options.tcp_idle_timeout, options.udp_idle_timeout) == ("5m0s", "1m30s")
    assert (spec.debug_settings.enabled, spec.debug_settings.sshkey_name) == (True, "key")
    forward = options.log_forward
    assert (forward.enabled, forward.loki_url, forward.proxy_url) == (True, "http://loki", "http://proxy")
    assert forward.labels == {"team": "shop"}
    assert options.server_group_policy == "anti-affinity"
    assert "Warning" not in messages(done)


def test_an_option_that_is_removed_becomes_null_in_the_same_patch() -> None:
    """W13: subnet, proxy and labels go when they are asked no more."""
    rich = after(work(service(ALL_OPTIONS), balancer()), balancer())
    done = work(service(), rich)
    assert after(done, rich).spec == balancer().spec.model_copy(
        update={
            "infrastructure": after(done, rich).spec.infrastructure,
            "options": after(done, rich).spec.options,
        }
    )
    options = done.patch["spec"]["options"]  # type: ignore[index]
    assert options["logForward"]["proxyUrl"] == ""
    assert options["logForward"]["labels"] is None
    assert options["tcpIdleTimeout"] is None
    assert done.patch["spec"]["infrastructure"]["defaultNetwork"]["subnetID"] is None  # type: ignore[index]
    assert work(service(), after(done, rich)).patch == {}


def test_a_label_of_the_logs_that_went_is_removed_alone() -> None:
    """W13: and the others stay."""
    forwarded = {"logForward": "true", "logging.yawol.stackit.cloud/a": "1"}
    two = service({**forwarded, "logging.yawol.stackit.cloud/b": "2"})
    made = after(work(two))
    one = service(forwarded)
    assert work(one, made).patch == {"spec": {"options": {"logForward": {"labels": {"b": None}}}}}


def test_a_settled_service_asks_for_nothing() -> None:
    assert work(service(), balancer()) == ServiceWork()


@pytest.mark.parametrize(
    "stored",
    [
        {"infrastructure": {"additionalNetworks": []}},
        {"infrastructure": {"projectID": ""}},
        {"infrastructure": {"flavor": {"flavorName": ""}}},
        {"infrastructure": {"defaultNetwork": {"subnetID": ""}}},
        {"options": {"logForward": {"labels": {}}}},
        {"options": {"internalLB": False, "loadBalancerSourceRanges": []}},
    ],
    ids=["networks", "project", "flavor", "subnet", "labels", "options"],
)
def test_an_equivalent_value_stays_in_its_stored_form_so_that_no_machine_is_replaced(stored: Json) -> None:
    assert work(service(), balancer(spec=stored)).patch == {}


# Annotations that the template hash depends on, and what yawol stores for them while nothing switches them off.
LOG_SETTINGS: tuple[tuple[dict[str, str], Json], ...] = (
    ({"logForwardLokiURL": "http://loki"}, {"lokiUrl": "http://loki"}),
    ({"logForwardProxyURL": "http://proxy"}, {"proxyUrl": "http://proxy"}),
    ({"logging.yawol.stackit.cloud/team": "shop"}, {"labels": {"team": "shop"}}),
)
OTHER_SETTINGS: tuple[tuple[dict[str, str], Json], ...] = (
    (
        {"imageId": "image-2", "flavorId": "flavor-2", "availabilityZone": "zone-2"},
        {
            "infrastructure": {
                "image": {"imageID": "image-2"},
                "flavor": {"flavorID": "flavor-2"},
                "availabilityZone": "zone-2",
            }
        },
    ),
    ({"defaultSubnetID": "subnet-2"}, {"infrastructure": {"defaultNetwork": {"subnetID": "subnet-2"}}}),
    ({"floatingNetworkID": "ext-2"}, {"infrastructure": {"defaultNetwork": {"floatingNetID": "ext-2"}}}),
    ({"additionalNetworks": "other"}, {"infrastructure": {"additionalNetworks": [{"networkID": "other"}]}}),
    ({"serverGroupPolicy": "anti-affinity"}, {"options": {"serverGroupPolicy": "anti-affinity"}}),
    ({"debugsshkey": "key"}, {}),
    ({"debug": "true"}, {"debugSettings": {"enabled": True}}),
)


@pytest.mark.parametrize("forwards", [None, "", "false", "true"])
@pytest.mark.parametrize("number_of_log_settings", range(4))
def test_no_combination_of_annotations_changes_the_template_hash_at_the_takeover(
    forwards: str | None, number_of_log_settings: int
) -> None:
    """Another hash would replace every machine of the load balancer."""
    switch = {} if forwards is None else {"logForward": forwards}
    for chosen in combinations(LOG_SETTINGS, number_of_log_settings):
        for count in range(len(OTHER_SETTINGS) + 1):
            for others in combinations(OTHER_SETTINGS, count):
                annotations = dict(switch)
                spec: Any = {}
                for names, stored in others:
                    annotations |= names
                    spec = merge(spec, stored)
                if annotations.get("debug") and annotations.get("debugsshkey"):
                    spec = merge(spec, {"debugSettings": {"sshkeyName": "key"}})
                forward: Json = {}
                for names, stored in chosen:
                    annotations |= names
                    forward |= stored if forwards == "true" else {}
                log_forward = {**forward, "enabled": forwards == "true"}
                existing = balancer(spec=merge(spec, {"options": {"logForward": log_forward}}))
                done = work(service(annotations), existing)
                assert template_hash(after(done, existing)) == template_hash(existing), annotations


@pytest.mark.parametrize("settings", [{}, LOG_SETTINGS[0][0]])
def test_stored_settings_of_logs_that_are_not_forwarded_replace_no_machine(settings: dict[str, str]) -> None:
    unused = {"lokiUrl": "http://loki", "proxyUrl": "http://proxy", "labels": {"team": "shop"}}
    existing = balancer(spec={"options": {"logForward": {"enabled": False, **unused}}})
    assert work(service(settings), existing).patch == {}
    forwarded = after(work(service({**settings, "logForward": "true"}), existing), existing)
    assert forwarded.spec.options.log_forward.proxy_url == ""


@pytest.mark.parametrize("stored", [["b", "a"], ["a", "b"]])
def test_additional_networks_keep_the_order_in_which_they_are_stored(stored: list[str]) -> None:
    """W1: the same networks in another order replace no machine."""
    networks = [{"networkID": each} for each in stored]
    existing = balancer(spec={"infrastructure": {"additionalNetworks": networks}})
    assert work(service({"additionalNetworks": "a,b,a"}), existing).patch == {}


def test_a_new_list_of_networks_is_sorted() -> None:
    """W1: their order is part of what machines are made from."""
    done = work(service({"additionalNetworks": "c, a,b"}), balancer())
    networks = after(done, balancer()).spec.infrastructure.additional_networks or ()
    assert [each.network_id for each in networks] == ["a", "b", "c"]


def test_the_installations_network_is_added_unless_the_service_declines_it() -> None:
    annotations = {"defaultNetworkID": "net-2"}
    added = after(work(service(annotations))).spec.infrastructure.additional_networks or ()
    assert [each.network_id for each in added] == ["net"]
    same = after(work(service({"defaultNetworkID": "net"})))
    assert same.spec.infrastructure.additional_networks is None
    declined = after(work(service({**annotations, "skipCloudControllerDefaultNetworkID": "true"})))
    assert declined.spec.infrastructure.additional_networks is None


def test_a_timeout_of_the_same_length_stays_as_written() -> None:
    existing = balancer(spec={"options": {"tcpIdleTimeout": "300s"}})
    assert work(service({"tcpIdleTimeout": "5m"}), existing).patch == {}
    assert work(service({"tcpIdleTimeout": "6m"}), existing).patch == {"spec": {"options": {"tcpIdleTimeout": "6m0s"}}}


def test_former_network_fields_are_cleared_once_the_default_network_says_it() -> None:
    old = balancer(spec={"infrastructure": {"networkID": "net", "floatingNetID": "ext-net"}})
    done = work(service(), old)
    assert done.patch == {"spec": {"infrastructure": {"networkID": "", "floatingNetID": None}}}
    assert template_hash(after(done, old)) == template_hash(balancer())


def test_a_change_of_ports_writes_them_as_services_do() -> None:
    ports = [{"protocol": "UDP", "port": 53, "targetPort": 53, "nodePort": 30053}]
    done = work(service(spec={"ports": ports}), balancer())
    assert done.patch == {"spec": {"ports": ports}}
    assert messages(done) == "Normal/update LoadBalancer ports successfully synced with service ports"


def test_the_project_stays_and_the_rest_is_changed_all_the_same() -> None:
    done = work(service({"projectID": "other", "replicas": "2"}), balancer())
    assert done.patch == {"spec": {"replicas": 2}}
    assert "Warning/Failed project id is immutable, cant be changed after initial creation" in messages(done)


@pytest.mark.parametrize(
    ("stored", "requested", "enabled", "ports"),
    [
        ({}, "true", False, ()),
        ({"tcpProxyProtocol": True}, "true", True, ()),
        ({"tcpProxyProtocol": True}, "false", False, ()),
        ({"tcpProxyProtocolPortFilter": [443]}, "true", True, (443,)),
    ],
)
def test_an_unreadable_filter_turns_the_proxy_protocol_on_for_no_further_port(
    stored: Json, requested: str, enabled: bool, ports: tuple[int, ...]
) -> None:
    existing = balancer(spec={"options": stored})
    bad = service({"tcpProxyProtocol": requested, "tcpProxyProtocolPortsFilter": "443;8443"})
    options = after(work(bad, existing), existing).spec.options
    assert (options.tcp_proxy_protocol, options.tcp_proxy_protocol_port_filter) == (enabled, ports)


def test_a_load_balancer_with_an_unreadable_filter_is_created_without_proxy_protocol() -> None:
    """An empty filter would turn it on for all ports."""
    bad = {"tcpProxyProtocol": "true", "tcpProxyProtocolPortsFilter": "443;8443"}
    assert not after(work(service(bad))).spec.options.tcp_proxy_protocol
    partly = after(work(service({**bad, "tcpProxyProtocolPortsFilter": "443,x"}))).spec.options
    assert (partly.tcp_proxy_protocol, partly.tcp_proxy_protocol_port_filter) == (True, (443,))


def test_the_services_own_source_ranges_count_more_than_the_annotation() -> None:
    of = service({"loadBalancerSourceRanges": "10.0.0.0/8"}, spec={"loadBalancerSourceRanges": ["192.0.2.0/24"]})
    assert parse_annotations(of, INSTALLATION).options.load_balancer_source_ranges == ("192.0.2.0/24",)
    none = service({"loadBalancerSourceRanges": "10.0.0.0/8"}, spec={"loadBalancerSourceRanges": []})
    assert parse_annotations(none, INSTALLATION).options.load_balancer_source_ranges == ()


# --- bad annotations ---


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("internalLB", " true", "yawol.stackit.cloud/internalLB: ' true' is not true or false"),
        ("tcpProxyProtocol", "true\n", "yawol.stackit.cloud/tcpProxyProtocol: 'true\\n' is not true or false"),
        ("internalLB", "yes", "Could not read annotation yawol.stackit.cloud/internalLB: 'yes' is not true or false"),
        ("tcpProxyProtocol", "on", "yawol.stackit.cloud/tcpProxyProtocol: 'on' is not true or false"),
        ("debug", "maybe", "yawol.stackit.cloud/debug: 'maybe' is not true or false"),
        ("logForward", "si", "yawol.stackit.cloud/logForward: 'si' is not true or false"),
        ("replicas", "many", "yawol.stackit.cloud/replicas: 'many' is not a number from 0 up"),
        ("replicas", "-1", "yawol.stackit.cloud/replicas: '-1' is not a number from 0 up"),
        ("tcpIdleTimeout", "300", "Could not parse yawol.stackit.cloud/tcpIdleTimeout to time duration. Ignoring"),
        ("udpIdleTimeout", "-1s", "Could not parse yawol.stackit.cloud/udpIdleTimeout to time duration. Ignoring"),
        ("tcpProxyProtocolPortsFilter", "x", "yawol.stackit.cloud/tcpProxyProtocolPortsFilter: 'x' is not a port"),
        ("serverGroupPolicy", "close", "'close' is not one of affinity, anti-affinity, soft-affinity"),
        ("existingFloatingIP", "mine", "yawol.stackit.cloud/existingFloatingIP: 'mine' is not an IP address"),
        ("logging.yawol.stackit.cloud/", "x", "Annotation logging.yawol.stackit.cloud/ does not have a name."),
        ("logging.yawol.stackit.cloud/team", "", "Annotation logging.yawol.stackit.cloud/team does not have a value."),
    ],
)
def test_a_bad_annotation_is_named_to_its_service_and_changes_nothing(name: str, text: str, message: str) -> None:
    done = work(service({name: text}), balancer())
    assert done.patch == {}
    assert message in messages(done)
    assert messages(done).startswith("Warning/update")


def test_a_bad_annotation_does_not_block_the_others() -> None:
    """W27: what is wrong in one Service is said, and costs nothing that works."""
    done = work(service({"replicas": "3", "tcpIdleTimeout": "soon", "udpIdleTimeout": "1m"}), balancer())
    assert done.patch == {"spec": {"replicas": 3, "options": {"udpIdleTimeout": "1m0s"}}}


def test_good_items_of_a_list_stay() -> None:
    options = parse_annotations(service({"tcpProxyProtocolPortsFilter": "80,x,70000,443"}), INSTALLATION).options
    assert options.tcp_proxy_protocol_port_filter == (80, 443)


@pytest.mark.parametrize("text", ["10.0.0.0", "10.0.0.0/33", "all", "10.0.0.0/255.0.0.0", "10.0.0.0/-1"])
def test_a_bad_source_range_is_reported_and_passed_on_unchanged(text: str) -> None:
    annotations = parse_annotations(service({"loadBalancerSourceRanges": f"192.0.2.0/24,{text}"}), INSTALLATION)
    assert annotations.options.load_balancer_source_ranges == ("192.0.2.0/24", text)
    assert [notice.message for notice in annotations.notices] == [f"Could not parse LoadBalancerSourceRange: {text}"]


NO_SOURCE = "255.255.255.255/32"


@pytest.mark.parametrize(
    ("stored", "kept"),
    [
        (["192.0.2.0/24", "all"], ["192.0.2.0/24", "all"]),
        ([], [NO_SOURCE]),
        (["all"], [NO_SOURCE]),
        ([NO_SOURCE], [NO_SOURCE]),
    ],
)
def test_source_ranges_of_which_none_is_readable_never_reach_the_machines(stored: list[str], kept: list[str]) -> None:
    """W27: yawol's agent would give Envoy a rule that it rejects, and each machine would be replaced for that."""
    existing = balancer(spec={"options": {"loadBalancerSourceRanges": stored}})
    for bad in (service({"loadBalancerSourceRanges": "10.0.0.0"}), service(spec={"loadBalancerSourceRanges": ["x"]})):
        done = work(bad, existing)
        assert list(after(done, existing).spec.options.load_balancer_source_ranges) == kept
        assert "Could not parse LoadBalancerSourceRange" in messages(done)


def test_a_load_balancer_created_without_a_readable_source_range_allows_none() -> None:
    made = after(work(service({"loadBalancerSourceRanges": "10.0.0.0"})))
    assert made.spec.options.load_balancer_source_ranges == (NO_SOURCE,)
    assert work(service({"loadBalancerSourceRanges": "10.0.0.0/8"}), made).patch == {
        "spec": {"options": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}
    }


def test_a_bad_existing_address_makes_no_load_balancer_with_another_one() -> None:
    done = work(service({"existingFloatingIP": "203.0.113"}))
    assert (done.create, done.add_finalizer) == ({}, False)
    assert done.problem == (
        "validation failed: annotation yawol.stackit.cloud/existingFloatingIP: '203.0.113' is not an IP address such "
        "as 203.0.113.7. No load balancer is created until the annotation is corrected."
    )
    assert messages(done) == f"Warning/Failed {done.problem}"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"allocateLoadBalancerNodePorts": False}, "unsupported service option is used"),
        ({"ports": [{"protocol": "SCTP", "port": 1, "nodePort": 30000}]}, "unsupported protocol used"),
        ({"ports": [{"protocol": "TCP", "port": 1}]}, "port 1 has node port 0"),
        ({"ports": [{"protocol": "TCP", "port": 1, "nodePort": 70000}]}, "port 1 has node port 70000"),
    ],
)
@pytest.mark.parametrize("existing", [None, balancer()], ids=["new", "there"])
def test_a_service_that_cannot_be_served_gets_an_event_and_nothing_is_changed(
    spec: Json, message: str, existing: LoadBalancer | None
) -> None:
    done = work(service(spec=spec), existing)
    assert done.problem.startswith(f"validation failed: {message}")
    assert messages(done) == f"Warning/Failed {done.problem}"
    assert (done.create, done.patch, done.add_finalizer) == ({}, {}, False)


@pytest.mark.parametrize(
    "spec", [{"allocateLoadBalancerNodePorts": False}, {"ports": [{"protocol": "SCTP", "port": 1}]}]
)
def test_a_load_balancer_follows_nodes_while_its_service_cannot_be_served(spec: Json) -> None:
    changed = (node("node-b", "10.0.0.2"),)
    of = service({"replicas": "3"}, spec=spec)
    done = work_for(of, balancer(), changed, INSTALLATION)
    assert done.patch == {"spec": {"endpoints": [{"name": "node-b", "addresses": ["10.0.0.2"]}]}}
    assert messages(done) == (
        f"Warning/Failed {done.problem}\nNormal/update LoadBalancer endpoints successfully synced with nodes addresses"
    )
    assert work_for(of, after(done, balancer()), changed, INSTALLATION).patch == {}
    assert work_for(of, balancer(metadata=DELETING), changed, INSTALLATION).patch == {}


@pytest.mark.parametrize(
    "of",
    [service(metadata={"deletionTimestamp": "2026-05-01T11:00:00Z"}), service({"className": "theirs"})],
    ids=["deleted", "another class"],
)
def test_no_endpoints_are_written_for_an_unservable_service_that_is_released(of: Service) -> None:
    unservable = of.model_copy(update={"spec": of.spec.model_copy(update={"allocate_load_balancer_node_ports": False})})
    done = work_for(unservable, balancer(), (node("node-b", "10.0.0.2"),), INSTALLATION)
    assert (done.delete, done.patch) == (True, {})


# --- an existing floating IP ---


def test_the_address_that_a_service_has_can_be_named_later() -> None:
    done = work(service({"existingFloatingIP": "203.0.113.7"}), balancer())
    assert done.patch == {"spec": {"existingFloatingIP": "203.0.113.7"}}


def test_another_address_than_the_service_has_is_refused_and_the_rest_is_changed() -> None:
    done = work(service({"existingFloatingIP": "203.0.113.99", "replicas": "2"}), balancer())
    assert done.patch == {"spec": {"replicas": 2}}
    assert "adding a different ExistingFloatingIP is not supported after LB creation" in messages(done)


def test_an_address_named_from_the_beginning_is_stored_and_stays() -> None:
    of = service({"existingFloatingIP": "203.0.113.7"})
    made = after(work(of))
    assert made.spec.existing_floating_ip == "203.0.113.7"
    assert work(service(), made).patch == {}


@pytest.mark.parametrize(("has", "stored"), [(None, "203.0.113.9"), ("203.0.113.8", None)])
def test_a_named_address_can_be_corrected_until_there_is_one(has: str | None, stored: str | None) -> None:
    made = balancer(spec={"existingFloatingIP": "203.0.113.8"}, status={"externalIP": has})
    of = service({"existingFloatingIP": "203.0.113.9"}, status={"loadBalancer": None})
    assert work(of, made).patch == ({"spec": {"existingFloatingIP": stored}} if stored else {})


# --- letting go ---

DELETING = {"deletionTimestamp": "2026-05-01T11:00:00Z"}


@pytest.mark.parametrize(
    "of",
    [
        service(metadata=DELETING),
        service(spec={"type": "ClusterIP"}),
        service(spec={"loadBalancerClass": "other"}),
    ],
    ids=["deleted", "another type", "another class"],
)
def test_a_service_that_wants_none_loses_its_load_balancer_first(of: Service) -> None:
    done = work(of, balancer())
    assert (done.delete, done.drop_finalizer, bool(done.waits_for)) == (True, False, True)
    going = work(of, balancer(metadata=DELETING))
    assert (going.delete, going.drop_finalizer, bool(going.waits_for)) == (False, False, True)


@pytest.mark.parametrize("of", [service(metadata=DELETING), service(spec={"type": "ClusterIP"})])
def test_then_it_loses_its_address_and_the_finalizer(of: Service) -> None:
    done = work(of)
    assert (done.clear_ingress, done.drop_finalizer) == (True, True)


def test_a_service_of_any_other_type_is_left_alone() -> None:
    assert work(service(spec={"type": "ClusterIP"}, metadata={"finalizers": None})) == ServiceWork()


def test_our_finalizer_stays_on_a_service_of_another_class_unless_release_is_set() -> None:
    """W19: as yawol leaves it, unless the installation is alone."""
    of = service(spec={"loadBalancerClass": "other"})
    assert work(of) == ServiceWork()
    releasing = INSTALLATION.model_copy(update={"release_foreign": True})
    assert work(of, installation=releasing).drop_finalizer


def test_a_service_without_class_and_type_is_released_by_a_single_class_installation() -> None:
    """The API server takes the class with the type; a finalizer that stayed would hold the Service for ever."""
    strict = INSTALLATION.model_copy(update={"unclassed": False})
    assert work(service(spec={"type": "ClusterIP"}), installation=strict).drop_finalizer
    elsewhere = service({"className": "other"}, spec={"type": "ClusterIP"})
    assert not work(elsewhere, installation=strict).drop_finalizer


def test_nothing_is_changed_while_a_load_balancer_of_that_name_is_on_its_way_out() -> None:
    done = work(service({"replicas": "2"}), balancer(metadata=DELETING))
    assert (done.patch, done.create) == ({}, {})
    assert done.waits_for


# --- two Services, one name ---


def test_a_service_with_a_colliding_name_neither_adopts_nor_deletes() -> None:
    theirs = balancer(metadata={"name": "a--b--c", "annotations": {"yawol.stackit.cloud/serviceName": "a/b--c"}})
    here = {"namespace": "a--b", "name": "c"}
    done = work(service(metadata=here), theirs)
    assert done.problem == "validation failed: LoadBalancer a--b--c serves Service a/b--c"
    assert done.patch == {}
    assert not work(service(metadata={**here, **DELETING}), theirs).delete
    assert not work(service(metadata=here, spec={"type": "ClusterIP"}), theirs).delete


@pytest.mark.parametrize("named", [None, "", "nonsense", "web/other"])
def test_a_load_balancer_that_names_no_possible_service_gets_its_own(named: str | None) -> None:
    wrong = balancer(metadata={"annotations": {"yawol.stackit.cloud/serviceName": named}})
    assert work(service(), wrong).patch == {
        "metadata": {"annotations": {"yawol.stackit.cloud/serviceName": "web/shop"}}
    }


# --- endpoints ---


def names(found: Any) -> dict[str, tuple[str, ...]]:
    return {each.name: each.addresses for each in found}


def test_ready_nodes_answer_sorted_by_name_with_their_internal_addresses() -> None:
    nodes = (node("b", "10.0.0.2"), node("a", "10.0.0.1", "fd00::1"), node("c", "10.0.0.3", ready="False"))
    assert names(endpoints_of(service(), nodes)) == {"a": ("10.0.0.1", "fd00::1"), "b": ("10.0.0.2",)}


@pytest.mark.parametrize(
    ("families", "addresses"),
    [
        (["IPv4"], ("10.0.0.1",)),
        (["IPv6"], ("fd00::1",)),
        (["IPv6", "IPv4"], ("10.0.0.1", "fd00::1")),
    ],
)
def test_addresses_are_of_the_services_families(families: list[str], addresses: tuple[str, ...]) -> None:
    of = service(spec={"ipFamilies": families})
    assert names(endpoints_of(of, [node("a", "10.0.0.1", "fd00::1")])) == {"a": addresses}


def test_a_node_without_an_address_of_the_family_is_left_out() -> None:
    """W3: an endpoint without addresses would spoil the whole configuration."""
    nodes = (node("a", "10.0.0.1"), node("b", "fd00::2"), node("c"), node("d", "not-an-address"))
    assert names(endpoints_of(service(spec={"ipFamilies": ["IPv4"]}), nodes)) == {"a": ("10.0.0.1",)}


def test_a_ready_node_that_cannot_answer_leaves_the_others_in() -> None:
    """W3: of the wanted family there is no ready node, so the rule for none counts."""
    nodes = (node("a", "10.0.0.1", ready="False"), node("six", "2001:db8::6"))
    families = service(spec={"ipFamilies": ["IPv4"]})
    assert names(endpoints_of(families, nodes)) == {"a": ("10.0.0.1",)}


def test_when_no_node_is_ready_all_that_stay_answer() -> None:
    taints = {"taints": [{"key": "ToBeDeletedByClusterAutoscaler"}]}
    nodes = (
        node("a", "10.0.0.1", ready="False"),
        node("b", "10.0.0.2", ready="Unknown"),
        node("c", "10.0.0.3", spec=taints),
    )
    assert set(names(endpoints_of(service(), nodes))) == {"a", "b"}


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Terminating", "status": "True"}]}},
        {"metadata": {"deletionTimestamp": "2026-05-01T11:00:00Z"}},
    ],
    ids=["tainted", "terminating", "deleted"],
)
def test_a_node_that_is_about_to_go_does_not_answer(change: Json) -> None:
    nodes = (node("a", "10.0.0.1"), node("b", "10.0.0.2", **change))
    assert set(names(endpoints_of(service(), nodes))) == {"a"}
    assert what_matters(node("b", "10.0.0.2")) != what_matters(nodes[1])


def test_a_nodes_heartbeat_matters_to_no_service() -> None:
    beaten = node("a", "10.0.0.1", metadata={"resourceVersion": "2"}, spec={"taints": [{"key": "busy"}]})
    assert what_matters(node("a", "10.0.0.1")) == what_matters(beaten)
    assert what_matters(node("a", "10.0.0.1")) != what_matters(node("a", "10.0.0.9"))


def test_a_change_of_nodes_patches_the_endpoints_alone() -> None:
    nodes = (*NODES, node("node-b", "10.0.0.2"))
    assert work_for(service(), balancer(), nodes, INSTALLATION).patch == {
        "spec": {
            "endpoints": [
                {"name": "node-a", "addresses": ["10.0.0.1"]},
                {"name": "node-b", "addresses": ["10.0.0.2"]},
            ]
        }
    }


def test_endpoints_in_another_order_are_the_same() -> None:
    both = [{"name": "node-b", "addresses": ["10.0.0.2"]}, {"name": "node-a", "addresses": ["10.0.0.1"]}]
    nodes = (*NODES, node("node-b", "10.0.0.2"))
    assert work_for(service(), balancer(spec={"endpoints": both}), nodes, INSTALLATION).patch == {}


# --- the address ---


def ready(**changes: Any) -> LoadBalancer:
    return balancer(**merge({"status": {"readyReplicas": 1}}, changes))  # type: ignore[arg-type]


def test_a_service_gets_the_address_once_a_machine_is_ready() -> None:
    of = service(status={"loadBalancer": {"ingress": None}})
    done = write_back(of, ready())
    assert done.patch == {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}}
    assert [notice.message for notice in done.notices] == ["LoadBalancer is successfully created with IP 203.0.113.7"]


@pytest.mark.parametrize("families", [["IPv4", "IPv6"], ["IPv6", "IPv4"], ["IPv6"]])
def test_a_service_of_any_families_has_the_one_address_that_answers(families: list[str]) -> None:
    """W29: the virtual address is an IPv4 one, so there is one ingress, and it is not left out for the other family."""
    of = service(spec={"ipFamilies": families}, status={"loadBalancer": {"ingress": None}})
    assert write_back(of, ready()).patch == {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}}


def test_an_existing_address_is_not_written_again_whatever_fields_are_beside_it() -> None:
    """W2: the API server adds `ipMode`, which is no difference."""
    assert write_back(service(), ready()).patch == {}


@pytest.mark.parametrize(
    "ingress", [[{"ip": "203.0.113.8"}], [{"hostname": "x"}], [{"ip": "203.0.113.7"}, {"ip": "203.0.113.8"}]]
)
def test_any_other_address_is_replaced(ingress: list[Json]) -> None:
    assert write_back(service(status={"loadBalancer": {"ingress": ingress}}), ready()).patch


@pytest.mark.parametrize(
    ("of", "existing"),
    [
        (service(), ready(status={"readyReplicas": 0})),
        (service(), ready(status={"externalIP": ""})),
        (service(metadata=DELETING), ready()),
    ],
    ids=["no machine ready", "no address", "deleted"],
)
def test_until_then_nothing_is_written(of: Service, existing: LoadBalancer) -> None:
    bare = merge(of.model_dump(mode="json"), {"status": {"loadBalancer": {"ingress": None}}})
    assert write_back(Service.model_validate(bare), existing).patch == {}


def test_zero_replicas_have_their_address_at_once() -> None:
    idle = balancer(spec={"replicas": 0})
    assert write_back(service(status={"loadBalancer": {"ingress": None}}), idle).patch
