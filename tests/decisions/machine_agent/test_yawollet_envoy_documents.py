"""The documents that Envoy gets for a LoadBalancer: names, defaults, options, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format

from domain.loadbalancers.envoy import CLUSTER_TYPE, LISTENER_TYPE, EnvoyConfiguration, envoy_configuration
from domain.loadbalancers.resources import LoadBalancer
from yawollet.messages import POOL, REQUEST, RESPONSE, Request, resources, response

Json = dict[str, Any]

HTTP = {"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080}
DNS = {"name": "dns", "protocol": "UDP", "port": 53, "nodePort": 30053}
NODE = {"name": "node-a", "addresses": ["10.0.0.1"]}


def documents_for(*ports: Json, endpoints: list[Json] | None = None, **options: Any) -> EnvoyConfiguration:
    balancer = LoadBalancer.model_validate(
        {"spec": {"ports": ports, "endpoints": [NODE] if endpoints is None else endpoints, "options": options}}
    )
    return envoy_configuration(balancer, listen_address="203.0.113.7", cpus=2)


def at(document: Any, *path: str | int) -> Any:
    for step in path:
        document = document[step]
    return document


def addresses(cluster: Any) -> list[list[str]]:
    return [
        [at(each, "endpoint", "address", "socket_address", "address") for each in locality["lb_endpoints"]]
        for locality in at(cluster, "load_assignment", "endpoints")
    ]


def messages(configuration: EnvoyConfiguration) -> list[str]:
    return [notice.message for notice in configuration.notices]


def test_a_port_becomes_a_cluster_and_a_listener_of_its_name() -> None:
    found = documents_for(HTTP, DNS)
    assert list(found.clusters) == list(found.listeners) == ["TCP-80", "UDP-53"]
    assert found.notices == ()


def test_a_listener_listens_at_the_virtual_address_whether_it_is_there_or_not() -> None:
    listener = documents_for(HTTP).listeners["TCP-80"]
    assert at(listener, "address", "socket_address") == {"protocol": "TCP", "address": "203.0.113.7", "port_value": 80}
    assert listener["freebind"] is True
    assert listener["enable_reuse_port"] is True
    assert listener["per_connection_buffer_limit_bytes"] == 32768


def test_a_node_is_a_locality_with_an_endpoint_for_each_address_at_the_node_port() -> None:
    nodes = [{"name": "a", "addresses": ["10.0.0.1", "fd00::1"]}, {"name": "b", "addresses": ["10.0.0.2"]}]
    cluster = documents_for(HTTP, endpoints=nodes).clusters["TCP-80"]
    assert addresses(cluster) == [["10.0.0.1", "fd00::1"], ["10.0.0.2"]]
    first = at(cluster, "load_assignment", "endpoints", 0, "lb_endpoints", 0)
    assert at(first, "endpoint", "address", "socket_address", "port_value") == 30080


def test_limits_grow_with_the_machines_processors() -> None:
    (limits,) = at(documents_for(HTTP).clusters["TCP-80"], "circuit_breakers", "thresholds")
    found = (limits["max_connections"], limits["max_requests"], limits["max_pending_requests"])
    assert found == (20000, 16000, 4000)


def test_tcp_backends_are_asked_for_their_health_and_udp_backends_are_not() -> None:
    found = documents_for(HTTP, DNS).clusters
    (check,) = at(found["TCP-80"], "health_checks")
    assert (check["timeout"], check["interval"]) == ("5s", "5s")
    assert (check["unhealthy_threshold"], check["healthy_threshold"]) == (3, 2)
    assert "health_checks" not in found["UDP-53"]


@pytest.mark.parametrize(("chosen", "proxied"), [([], True), ([80], True), ([81], False)])
def test_the_proxy_protocol_is_for_the_chosen_ports_or_for_all(chosen: list[int], proxied: bool) -> None:
    found = documents_for(HTTP, DNS, tcpProxyProtocol=True, tcpProxyProtocolPortFilter=chosen).clusters
    assert ("transport_socket" in found["TCP-80"]) is proxied
    assert "transport_socket" not in found["UDP-53"]


def test_a_filter_alone_turns_no_proxy_protocol_on() -> None:
    assert "transport_socket" not in documents_for(HTTP, tcpProxyProtocolPortFilter=[80]).clusters["TCP-80"]


def test_idle_timeouts_are_sent_per_protocol_and_only_where_they_are_set() -> None:
    found = documents_for(HTTP, DNS, tcpIdleTimeout="5m30s").listeners
    assert at(found["TCP-80"], "filter_chains", 0, "filters", -1, "typed_config", "idle_timeout") == "330.000000s"
    assert "idle_timeout" not in at(found["UDP-53"], "listener_filters", 0, "typed_config")


def test_no_timeout_is_nought_for_tcp_and_a_year_for_udp() -> None:
    found = documents_for(HTTP, DNS, tcpIdleTimeout="0s", udpIdleTimeout="0s").listeners
    assert at(found["TCP-80"], "filter_chains", 0, "filters", 0, "typed_config", "idle_timeout") == "0.000000s"
    assert at(found["UDP-53"], "listener_filters", 0, "typed_config", "idle_timeout") == "31536000.000000s"


@pytest.mark.parametrize("text", ["300", "-5s", "soon"])
def test_a_malformed_timeout_is_reported_and_left_out(text: str) -> None:
    found = documents_for(HTTP, tcpIdleTimeout=text)
    assert "idle_timeout" not in at(found.listeners["TCP-80"], "filter_chains", 0, "filters", 0, "typed_config")
    assert messages(found) == [f"Idle timeout {text!r} of TCP is not a duration, so it is left out"]


def access(configuration: EnvoyConfiguration) -> Any:
    filters = at(configuration.listeners["TCP-80"], "filter_chains", 0, "filters")
    assert [each["name"].rpartition(".")[2] for each in filters] == ["rbac", "tcp_proxy"]
    return at(filters, 0, "typed_config", "rules")


def test_source_ranges_admit_only_their_networks() -> None:
    rules = access(documents_for(HTTP, loadBalancerSourceRanges=["10.0.0.0/8", "2001:db8::/32"]))
    assert rules["action"] == "ALLOW"
    policy = at(rules, "policies", "load-balancer-source-ranges")
    assert policy["permissions"] == [{"any": True}]
    assert [each["direct_remote_ip"] for each in policy["principals"]] == [
        {"address_prefix": "10.0.0.0", "prefix_len": 8},
        {"address_prefix": "2001:db8::", "prefix_len": 32},
    ]


def test_a_malformed_source_range_is_reported_and_the_others_apply() -> None:
    found = documents_for(HTTP, loadBalancerSourceRanges=["10.0.0.0/33", "10.0.0.0/8"])
    assert len(at(access(found), "policies", "load-balancer-source-ranges", "principals")) == 1
    assert messages(found) == ["Source range '10.0.0.0/33' is not a network, so it is left out"]


def test_with_no_valid_source_range_no_client_is_admitted() -> None:
    assert access(documents_for(HTTP, loadBalancerSourceRanges=["everybody"])) == {"action": "ALLOW", "policies": {}}


def test_without_source_ranges_everybody_is_let_in() -> None:
    (only,) = at(documents_for(HTTP).listeners["TCP-80"], "filter_chains", 0, "filters")
    assert only["name"] == "envoy.filters.network.tcp_proxy"


def test_an_endpoint_without_addresses_is_reported_and_the_others_serve() -> None:
    found = documents_for(HTTP, endpoints=[{"name": "v6"}, NODE])
    assert addresses(found.clusters["TCP-80"]) == [["10.0.0.1"]]
    assert messages(found) == ["Endpoint v6 has no addresses, so it is left out"]


def test_a_name_among_addresses_is_reported_and_the_others_serve() -> None:
    found = documents_for(HTTP, endpoints=[{"name": "a", "addresses": ["node.example", "10.0.0.1"]}])
    assert addresses(found.clusters["TCP-80"]) == [["10.0.0.1"]]
    assert messages(found) == ["Endpoint a: 'node.example' is not an IP address, so it is left out"]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"protocol": "SCTP"}, "protocol 'SCTP' is neither TCP nor UDP"),
        ({"protocol": "tcp"}, "protocol 'tcp' is neither TCP nor UDP"),
        ({"port": 0}, "port 0 is not between 1 and 65535"),
        ({"port": 65536}, "port 65536 is not between 1 and 65535"),
        ({"nodePort": 0}, "nodePort 0 is not between 1 and 65535"),
        ({"port": 53, "protocol": "UDP"}, "it is listed twice"),
    ],
)
def test_a_port_that_cannot_be_served_is_reported_and_the_others_are_served(changes: Json, fault: str) -> None:
    found = documents_for(DNS, {**HTTP, **changes})
    assert list(found.clusters) == ["UDP-53"]
    (notice,) = messages(found)
    assert notice.endswith(f"is not served: {fault}")


def test_every_document_is_what_envoys_messages_can_say() -> None:
    options: Json = {
        "tcpProxyProtocol": True,
        "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "tcpIdleTimeout": "1h",
        "udpIdleTimeout": "10s",
    }
    found = documents_for(HTTP, DNS, **options)
    for type_url, documents in ((CLUSTER_TYPE, found.clusters), (LISTENER_TYPE, found.listeners)):
        answer = RESPONSE.FromString(response(type_url, "7", "n", documents.values()))
        read: Json = json_format.MessageToDict(answer, preserving_proto_field_name=True, descriptor_pool=POOL)
        assert (read["version_info"], read["nonce"]) == ("7", "n")
        assert [each["name"] for each in read["resources"]] == list(documents)


def test_a_field_that_is_not_described_is_refused_instead_of_lost() -> None:
    with pytest.raises(ValueError, match="no field named"):
        resources(CLUSTER_TYPE, [{"name": "TCP-80", "invented": 1}])


def sent(**fields: object) -> Request:
    """A request as Envoy sends it."""
    return Request(json_format.ParseDict(fields, REQUEST(), descriptor_pool=POOL).SerializeToString())


def test_a_request_says_what_is_asked_for_and_what_is_refused() -> None:
    first = sent(type_url=CLUSTER_TYPE)
    assert (first.type_url, first.nonce, first.refusal) == (CLUSTER_TYPE, "", "")
    detail = {"code": 13, "message": "cannot bind"}
    refusing = sent(type_url=LISTENER_TYPE, response_nonce="3", error_detail=detail)
    assert (refusing.nonce, refusing.refusal) == ("3", "cannot bind")
