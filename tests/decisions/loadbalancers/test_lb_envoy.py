"""The documents that Envoy gets for a LoadBalancer, part by part, and what is left out of them."""

from __future__ import annotations

from typing import Any

import pytest
from lb_objects import balancer

from domain.loadbalancers.envoy import EnvoyConfiguration, envoy_configuration

Json = Any  # a piece of Envoy's document
HTTP = {"protocol": "TCP", "port": 80, "nodePort": 30080}
DNS = {"protocol": "UDP", "port": 53, "nodePort": 30053}
ALL_OF_IT = {"any": True}


def documents_for(**spec: Any) -> EnvoyConfiguration:
    return envoy_configuration(balancer(spec=spec), listen_address="10.1.0.5", cpus=2)


def cluster(name: str = "TCP-80", **spec: Any) -> Json:
    return documents_for(**spec).clusters[name]


def listener(name: str = "TCP-80", **spec: Any) -> Json:
    return documents_for(**spec).listeners[name]


def filters(**spec: Any) -> list[Json]:
    (chain,) = listener(**spec)["filter_chains"]
    return list(chain["filters"])


def messages(found: EnvoyConfiguration) -> list[str]:
    return [notice.message for notice in found.notices]


# --- what is sent ---


def test_each_port_has_a_cluster_and_a_listener_of_its_name_in_the_ports_order() -> None:
    found = documents_for(ports=[HTTP, DNS, {**HTTP, "port": 443}])
    assert list(found.clusters) == list(found.listeners) == ["TCP-80", "UDP-53", "TCP-443"]
    assert all(document["name"] == name for name, document in {**found.clusters, **found.listeners}.items())
    assert found.notices == ()


def test_a_cluster_has_a_locality_for_each_node_and_an_endpoint_for_each_address() -> None:
    endpoints = [{"name": "a", "addresses": ["10.0.0.1", "fd00::1"]}, {"name": "b", "addresses": ["10.0.0.2"]}]
    assignment = cluster(endpoints=endpoints)["load_assignment"]
    found = [
        [each["endpoint"]["address"]["socket_address"] for each in locality["lb_endpoints"]]
        for locality in assignment["endpoints"]
    ]
    assert assignment["cluster_name"] == "TCP-80"
    assert [[(each["address"], each["port_value"]) for each in locality] for locality in found] == [
        [("10.0.0.1", 30080), ("fd00::1", 30080)],
        [("10.0.0.2", 30080)],
    ]


def test_limits_grow_with_the_processors() -> None:
    (limits,) = cluster()["circuit_breakers"]["thresholds"]
    assert (limits["max_connections"], limits["max_requests"], limits["max_pending_requests"]) == (20000, 16000, 4000)


def test_a_cluster_has_yawols_settings() -> None:
    found = cluster()
    assert (found["type"], found["lb_policy"], found["connect_timeout"]) == ("STATIC", "ROUND_ROBIN", "5s")
    assert found["per_connection_buffer_limit_bytes"] == 32768
    assert found["common_lb_config"]["healthy_panic_threshold"]["value"] == 0


def test_only_tcp_is_checked_for_health() -> None:
    (check,) = cluster()["health_checks"]
    assert (check["timeout"], check["interval"], check["unhealthy_threshold"], check["healthy_threshold"]) == (
        "5s",
        "5s",
        3,
        2,
    )
    assert (check["no_traffic_interval"], check["no_traffic_healthy_interval"]) == ("5s", "60s")
    assert "health_checks" not in cluster("UDP-53", ports=[DNS])


@pytest.mark.parametrize(
    ("chosen", "sending"),
    [([], {"TCP-80", "TCP-443"}), ([443], {"TCP-443"}), ([53], set())],
)
def test_backends_learn_the_client_on_the_chosen_tcp_ports(chosen: list[int], sending: set[str]) -> None:
    options = {"tcpProxyProtocol": True, "tcpProxyProtocolPortFilter": chosen}
    found = documents_for(ports=[HTTP, {**HTTP, "port": 443}, DNS], options=options)
    sockets = {
        name: document["transport_socket"]
        for name, document in found.clusters.items()
        if "transport_socket" in document
    }
    assert set(sockets) == sending
    for socket in sockets.values():
        assert socket["name"] == "envoy.transport_sockets.upstream_proxy_protocol"  # type: ignore[index]
        assert socket["typed_config"]["config"] == {"version": "V2"}  # type: ignore[index]


def test_backends_do_not_learn_the_client_by_default() -> None:
    assert "transport_socket" not in cluster(options={"tcpProxyProtocolPortFilter": [80]})


def test_a_listener_listens_at_the_virtual_address_also_before_the_machine_has_it() -> None:
    found = listener()
    assert found["address"]["socket_address"] == {"protocol": "TCP", "address": "10.1.0.5", "port_value": 80}
    assert (found["freebind"], found["enable_reuse_port"]) == (True, True)


def test_tcp_is_passed_on_to_its_cluster() -> None:
    (proxy,) = filters()
    assert proxy["name"] == "envoy.filters.network.tcp_proxy"
    assert (proxy["typed_config"]["stat_prefix"], proxy["typed_config"]["cluster"]) == ("envoytcp", "TCP-80")
    assert "idle_timeout" not in proxy["typed_config"]


def test_udp_is_passed_on_to_its_cluster() -> None:
    (proxy,) = listener("UDP-53", ports=[DNS])["listener_filters"]
    assert proxy["typed_config"]["stat_prefix"] == "envoyudp"
    assert proxy["typed_config"]["matcher"]["on_no_match"]["action"]["typed_config"]["cluster"] == "UDP-53"
    assert "filter_chains" not in listener("UDP-53", ports=[DNS])


def seconds(document: Json) -> float:
    return float(document["typed_config"]["idle_timeout"].removesuffix("s"))


def test_idle_timeouts_are_sent_by_protocol() -> None:
    ports, options = [HTTP, DNS], {"tcpIdleTimeout": "5m30s", "udpIdleTimeout": "90s"}
    (tcp,) = filters(ports=ports, options=options)
    (udp,) = listener("UDP-53", ports=ports, options=options)["listener_filters"]
    assert (seconds(tcp), seconds(udp)) == (330, 90)


def test_no_timeout_is_zero_for_tcp_and_as_good_as_never_for_udp() -> None:
    ports, options = [HTTP, DNS], {"tcpIdleTimeout": "0s", "udpIdleTimeout": "0s"}
    (tcp,) = filters(ports=ports, options=options)
    (udp,) = listener("UDP-53", ports=ports, options=options)["listener_filters"]
    # A UDP session of no time at all would end before its answer comes.
    assert (seconds(tcp), seconds(udp)) == (0, 365 * 86400)


def test_the_longest_timeout_is_one_that_envoy_accepts() -> None:
    longest = "2562047h47m16.854775807s"
    ports, options = [HTTP, DNS], {"tcpIdleTimeout": longest, "udpIdleTimeout": longest}
    (tcp,) = filters(ports=ports, options=options)
    (udp,) = listener("UDP-53", ports=ports, options=options)["listener_filters"]
    assert (seconds(tcp), seconds(udp)) == (36500 * 86400, 36500 * 86400)


def test_source_ranges_are_asked_before_tcp_is_passed_on() -> None:
    access, proxy = filters(options={"loadBalancerSourceRanges": ["10.1.2.3/8", "fd00::/16"]})
    rules = access["typed_config"]["rules"]
    policy = rules["policies"]["load-balancer-source-ranges"]
    assert (rules["action"], policy["permissions"]) == ("ALLOW", [ALL_OF_IT])
    assert policy["principals"] == [
        {"direct_remote_ip": {"address_prefix": "10.0.0.0", "prefix_len": 8}},
        {"direct_remote_ip": {"address_prefix": "fd00::", "prefix_len": 16}},
    ]
    assert proxy["name"] == "envoy.filters.network.tcp_proxy"


# --- what is left out ---


@pytest.mark.parametrize(
    ("port", "fault"),
    [
        ({**HTTP, "protocol": "SCTP"}, "Port SCTP-80 is not served: protocol 'SCTP' is neither TCP nor UDP"),
        ({**HTTP, "protocol": "tcp"}, "Port tcp-80 is not served: protocol 'tcp' is neither TCP nor UDP"),
        ({**HTTP, "port": 0}, "Port TCP-0 is not served: port 0 is not between 1 and 65535"),
        ({**HTTP, "port": 65536}, "Port TCP-65536 is not served: port 65536 is not between 1 and 65535"),
        ({**HTTP, "nodePort": 0}, "Port TCP-80 is not served: nodePort 0 is not between 1 and 65535"),
        ({**HTTP, "port": 443}, "Port TCP-443 is not served: it is listed twice"),
    ],
)
def test_one_bad_port_is_left_out_and_the_others_are_served(port: Json, fault: str) -> None:
    found = documents_for(ports=[{**HTTP, "port": 443}, DNS, port])
    assert list(found.listeners) == list(found.clusters) == ["TCP-443", "UDP-53"]
    assert messages(found) == [fault]


@pytest.mark.parametrize("endpoint", [{"name": "bad"}, {"name": "bad", "addresses": ["node.example.com"]}])
def test_one_bad_endpoint_is_left_out_and_the_others_are_served(endpoint: Json) -> None:
    found = documents_for(endpoints=[{"name": "a", "addresses": ["10.0.0.1"]}, endpoint])
    assert len(found.clusters["TCP-80"]["load_assignment"]["endpoints"]) == 1  # type: ignore[index]
    (message,) = messages(found)
    assert message.startswith("Endpoint bad")


def test_a_name_among_addresses_is_left_out_alone() -> None:
    endpoint = {"name": "a", "addresses": ["10.0.0.1", "node.example.com"]}
    (locality,) = cluster(endpoints=[endpoint])["load_assignment"]["endpoints"]
    assert len(locality["lb_endpoints"]) == 1


def test_without_any_endpoint_the_port_is_still_listened_to() -> None:
    found = documents_for(endpoints=[])
    assert list(found.listeners) == ["TCP-80"]
    assert found.clusters["TCP-80"]["load_assignment"]["endpoints"] == []  # type: ignore[index]


def test_a_bad_source_range_is_left_out_and_only_bad_ones_admit_no_client() -> None:
    some = documents_for(options={"loadBalancerSourceRanges": ["all", "10.0.0.0/8"]})
    assert len(messages(some)) == 1
    access, _ = filters(options={"loadBalancerSourceRanges": ["all"]})
    # An access rule that admits no client, and none without principals, which Envoy refuses.
    assert access["typed_config"]["rules"] == {"action": "ALLOW", "policies": {}}


@pytest.mark.parametrize("text", ["300", "soon", "-1s"])
def test_a_bad_timeout_is_left_out_and_reported(text: str) -> None:
    found = documents_for(options={"tcpIdleTimeout": text})
    assert len(messages(found)) == 1
    (proxy,) = filters(options={"tcpIdleTimeout": text})
    assert "idle_timeout" not in proxy["typed_config"]


def test_the_same_load_balancer_yields_the_same_documents() -> None:
    assert documents_for() == documents_for()
