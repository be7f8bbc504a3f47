"""Hashes, names and Go's spellings, held against values that yawol and Go give."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from typing import Any

import pytest
from lb_objects import balancer, machine, machine_set

from domain.loadbalancers.former_fields import machine_migration, migrated, spec_migration, status_migration
from domain.loadbalancers.go_formats import format_duration, parse_bool, parse_duration, to_json
from domain.loadbalancers.names import load_balancer_label, load_balancer_name
from domain.loadbalancers.new_machine import machine_names
from domain.loadbalancers.new_set import set_name
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.template_hash import cloud_hash, template_document, template_hash
from domain.resource import ObjectMeta

# --- the template hash ---

EMPTY = (
    '{"debugSettings":{"enabled":false},"loadBalancerMachineSpec":{"infrastructure":{"defaultNetwork":{"networkID":""},'
    '"additionalNetworks":null,"flavor":{},"image":{},"availabilityZone":"","authSecretRef":{},"projectID":null},'
    '"portID":"","serverGroupID":"","loadBalancerRef":{"name":"","namespace":""}},'
    '"logForward":{"enabled":false,"lokiUrl":"","labels":null},"serverGroupPolicy":""}'
)
SOME: dict[str, Any] = {
    "metadata": {"name": "test", "namespace": "testspace"},
    "spec": {
        "debugSettings": {"enabled": True, "sshkeyName": "key"},
        "options": {"logForward": {"enabled": True, "lokiUrl": "url"}, "serverGroupPolicy": "affinity"},
    },
    "status": {"portID": "port", "serverGroupName": "group-name"},
}
FULL: dict[str, Any] = {
    "metadata": {"name": "n", "namespace": "s"},
    "spec": {
        "infrastructure": {
            "floatingNetID": "old-ext",
            "networkID": "old-net",
            "defaultNetwork": {"floatingNetID": "ext", "networkID": "net", "subnetID": "sub"},
            "additionalNetworks": [{"networkID": "b"}, {"networkID": "a"}],
            "flavor": {"flavorID": "1", "flavorName": "2", "flavorSearch": "3"},
            "image": {"image_id": "4", "image_name": "5", "image_search": "6"},
            "availabilityZone": "z",
            "authSecretRef": {"name": "secret", "namespace": "s"},
            "projectID": "p",
        },
        "options": {"logForward": {"proxyUrl": "http://a?b&c", "labels": {"z": "<1>", "a": "\u00e9\u2028"}}},
    },
}


def test_an_empty_load_balancer_has_the_known_json_and_hash() -> None:
    empty = LoadBalancer()
    assert to_json(template_document(empty)) == EMPTY
    assert template_hash(empty) == "ogwzb3hasmo2o2tj"


def test_the_known_load_balancer_has_the_known_hash() -> None:
    assert template_hash(LoadBalancer.model_validate(SOME)) == "5h3dhrkdncr5csa7"


def test_a_change_that_reaches_machines_through_their_agent_changes_no_hash() -> None:
    spec = {
        **SOME["spec"],
        "replicas": 3,
        "ports": [{"port": 80}],
        "endpoints": [{"name": "n", "addresses": ["10.0.0.1"]}],
        "options": {
            **SOME["spec"]["options"],
            "internalLB": True,
            "tcpIdleTimeout": "5m",
            "loadBalancerSourceRanges": ["10.0.0.0/8"],
        },
    }
    status = {**SOME["status"], "externalIP": "1.2.3.4", "serverGroupID": "another"}
    meta = {**SOME["metadata"], "annotations": {"yawol.stackit.cloud/adHocDebug": "true"}}
    other = LoadBalancer.model_validate({"metadata": meta, "spec": spec, "status": status})
    assert template_hash(other) == "5h3dhrkdncr5csa7"


def test_every_field_has_its_place() -> None:
    assert to_json(template_document(LoadBalancer.model_validate(FULL))) == (
        '{"debugSettings":{"enabled":false},"loadBalancerMachineSpec":{"infrastructure":{"floatingNetID":"old-ext",'
        '"networkID":"old-net","defaultNetwork":{"floatingNetID":"ext","networkID":"net","subnetID":"sub"},'
        '"additionalNetworks":[{"networkID":"b"},{"networkID":"a"}],"flavor":{"flavorID":"1","flavorName":"2",'
        '"flavorSearch":"3"},"image":{"image_id":"4","image_name":"5","image_search":"6"},"availabilityZone":"z",'
        '"authSecretRef":{"name":"secret","namespace":"s"},"projectID":"p"},"portID":"","serverGroupID":"",'
        '"loadBalancerRef":{"name":"n","namespace":"s"}},"logForward":{"enabled":false,"lokiUrl":"",'
        '"proxyUrl":"http://a?b\\u0026c","labels":{"a":"\u00e9\\u2028","z":"\\u003c1\\u003e"}},"serverGroupPolicy":""}'
    )


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ({"infrastructure": {"additionalNetworks": []}}, '"additionalNetworks":[]'),
        ({"options": {"logForward": {"labels": {}}}}, '"labels":{}'),
        ({"infrastructure": {"projectID": ""}}, '"projectID":""'),
        ({"infrastructure": {"defaultNetwork": {"subnetID": ""}}}, '{"networkID":"","subnetID":""}'),
        ({"infrastructure": {"flavor": {"flavorID": ""}}}, '"flavor":{"flavorID":""}'),
        ({"infrastructure": {"floatingNetID": ""}}, '"infrastructure":{"floatingNetID":"","defaultNetwork"'),
    ],
    ids=["networks", "labels", "project", "subnet", "flavor", "floating net"],
)
def test_an_empty_value_is_hashed_unlike_an_absent_one(spec: dict[str, Any], part: str) -> None:
    assert part in to_json(template_document(LoadBalancer.model_validate({"spec": spec})))
    assert template_hash(LoadBalancer.model_validate({"spec": spec})) != "ogwzb3hasmo2o2tj"


def test_the_order_of_networks_counts() -> None:
    def hash_with(*networks: str) -> str:
        infrastructure = {"additionalNetworks": [{"networkID": each} for each in networks]}
        return template_hash(LoadBalancer.model_validate({"spec": {"infrastructure": infrastructure}}))

    assert hash_with("a", "b") != hash_with("b", "a")


def test_a_load_balancer_that_was_written_and_read_again_has_its_hash() -> None:
    of = LoadBalancer.model_validate(FULL)
    assert template_hash(LoadBalancer.model_validate_json(of.model_dump_json())) == template_hash(of)


# --- the cloud's hash ---


def test_an_empty_load_balancer_has_the_known_cloud_hash() -> None:
    assert cloud_hash(LoadBalancer()) == "utf5r322k64vc5mk"


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": {"ports": [{"port": 443}]}},
        {"spec": {"debugSettings": {"enabled": True}}},
        {"spec": {"options": {"serverGroupPolicy": "affinity"}}},
        {"spec": {"options": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}},
        {"metadata": {"annotations": {"yawol.stackit.cloud/adHocDebug": "true"}}},
    ],
)
def test_a_value_that_the_cloud_is_compared_with_changes_the_clouds_hash(changes: dict[str, Any]) -> None:
    assert cloud_hash(balancer(**changes)) != cloud_hash(balancer())


# --- Go's spellings ---


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_go_takes_six_spellings_for_true(text: str) -> None:
    assert parse_bool(text) is True


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_go_takes_six_spellings_for_false(text: str) -> None:
    assert parse_bool(text) is False


@pytest.mark.parametrize("text", ["", "yes", "tRUE", " true", "on", "2"])
def test_go_takes_nothing_else_for_a_boolean(text: str) -> None:
    assert parse_bool(text) is None


@pytest.mark.parametrize(
    ("text", "duration", "written"),
    [
        ("0", timedelta(0), "0s"),
        ("0s", timedelta(0), "0s"),
        ("5m30s", timedelta(minutes=5, seconds=30), "5m30s"),
        ("1.5h", timedelta(minutes=90), "1h30m0s"),
        ("60m", timedelta(hours=1), "1h0m0s"),
        ("1h1s", timedelta(hours=1, seconds=1), "1h0m1s"),
        ("1.5s", timedelta(milliseconds=1500), "1.5s"),
        ("250ms", timedelta(milliseconds=250), "250ms"),
        ("1500us", timedelta(microseconds=1500), "1.5ms"),
        ("10\u00b5s", timedelta(microseconds=10), "10\u00b5s"),
        (".5s", timedelta(milliseconds=500), "500ms"),
        ("1.s", timedelta(seconds=1), "1s"),
        ("+30s", timedelta(seconds=30), "30s"),
        ("-1m", timedelta(minutes=-1), "-1m0s"),
        ("100h", timedelta(hours=100), "100h0m0s"),
        (
            "2562047h47m16.854775807s",
            timedelta(microseconds=9_223_372_036_854_775),
            "2562047h47m16.854775s",
        ),
    ],
)
def test_durations_are_read_and_written_as_go_does(text: str, duration: timedelta, written: str) -> None:
    assert parse_duration(text) == duration
    assert format_duration(duration) == written
    assert parse_duration(written) == duration


@pytest.mark.parametrize(
    "text", ["", "300", "5 m", "1d", "m", "-", "1h-5m", ".s", "5M", "9" * 30 + "h", "1s" * 60, "9223372036854775808ns"]
)
def test_other_texts_are_no_durations(text: str) -> None:
    assert parse_duration(text) is None


# --- names ---


def test_the_label_of_the_known_service_is_the_known_one() -> None:
    service = ObjectMeta(namespace="yawol-test", name="loadbalancer")
    assert load_balancer_name(service) == "yawol-test--loadbalancer"
    assert load_balancer_label("yawol-test", service) == "yyjki53tcryt5pcw"


def test_a_set_is_named_by_load_balancer_and_template() -> None:
    assert set_name("web--shop", "ogwzb3hasmo2o2tj") == "web--shop-ogwzb3hasmo2o2tj"


def test_machine_names_are_the_same_until_they_are_taken() -> None:
    meta = machine_set("web--shop-aaaa").metadata
    first, second, third = islice(machine_names(meta, ()), 3)
    assert len({first, second, third}) == 3
    prefix, suffix = first.rsplit("-", 1)
    assert prefix == "web--shop-aaaa"
    assert len(suffix) == 5
    assert set(suffix) <= set("0123456789abcdef")
    assert next(machine_names(meta, {first})) == second
    assert next(machine_names(machine_set("web--shop-bbbb").metadata, ())) != first


# --- former names ---


def test_former_names_of_flavor_and_image_move_to_todays_in_one_patch() -> None:
    infrastructure = {"flavor": {"flavor_id": "f", "flavorID": None}, "image": {"image_name": "i"}}
    old = balancer(spec={"infrastructure": infrastructure})
    assert spec_migration(old) == {
        "spec": {
            "infrastructure": {
                "flavor": {"flavor_id": None, "flavorID": "f"},
                "image": {"image_name": None, "imageName": "i"},
            }
        }
    }
    after = migrated(old)
    assert after.spec.infrastructure.flavor.id == "f"
    assert spec_migration(after) == {}
    assert template_hash(after) == template_hash(
        balancer(spec={"infrastructure": {"flavor": {"flavorID": "f"}, "image": {"imageName": "i"}}})
    )


def test_todays_name_wins_over_the_former_one() -> None:
    old = balancer(status={"security_group_id": "old", "security_group_name": "name", "securityGroupName": None})
    assert status_migration(old) == {
        "status": {"security_group_id": None, "security_group_name": None, "securityGroupName": "name"}
    }
    assert migrated(old).status.group_id == "sg-1"


def test_an_object_with_todays_names_is_left_unchanged() -> None:
    assert spec_migration(balancer()) == status_migration(balancer()) == {}
    assert migrated(balancer()) == balancer()


def test_a_machines_port_moves_to_its_todays_name() -> None:
    assert machine_migration(machine(status={"portID": "p"})) == {"status": {"portID": None, "defaultPortID": "p"}}
    assert machine_migration(machine(status={"portID": "p", "defaultPortID": "p"})) == {"status": {"portID": None}}
    assert machine_migration(machine(status={"defaultPortID": "p"})) == {}


def test_two_ports_of_a_machine_stay_known_both() -> None:
    assert machine_migration(machine(status={"portID": "p", "defaultPortID": "q"})) == {}
