"""The settings of Services: yawol's variables, and when Services are served at all."""

from __future__ import annotations

import logging

import pytest

from activities.loadbalancers.installation import installation_of
from domain.loadbalancers.services.objects import Installation
from engine.settings import Settings

YAWOLS = {
    "CLUSTER_NAMESPACE": "lbs",
    "SECRET_NAME": "cloud",
    "FLOATING_NET_ID": "ext-net",
    "NETWORK_ID": "net",
    "SUBNET_ID": "subnet",
    "FLAVOR_ID": "small",
    "IMAGE_SEARCH": "alpine",
    "AVAILABILITY_ZONE": "eu-1",
    "INTERNAL_LB": "true",
}


def given(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Installation | None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return installation_of(Settings())


def test_the_variables_of_yawols_cloud_controller_are_read_under_their_own_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert given(monkeypatch, **YAWOLS) == Installation(
        namespace="lbs",
        secret_name="cloud",
        floating_net_id="ext-net",
        network_id="net",
        subnet_id="subnet",
        flavor_id="small",
        image_search="alpine",
        availability_zone="eu-1",
        internal=True,
        classes=("stackit.cloud/yawol",),
        unclassed=True,
    )


def test_classes_of_services_are_settings_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found = given(
        monkeypatch,
        **YAWOLS,
        PERDURE_LOADBALANCERS_CLASSES="a, b",
        PERDURE_LOADBALANCERS_UNCLASSED="false",
        PERDURE_LOADBALANCERS_RELEASE_FOREIGN="true",
    )
    assert found is not None
    assert (found.classes, found.unclassed, found.release_foreign) == (("a", "b"), False, True)


@pytest.mark.parametrize("missing", ["CLUSTER_NAMESPACE", "SECRET_NAME", "FLOATING_NET_ID", "NETWORK_ID"])
def test_without_one_of_four_no_services_are_served(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    assert given(monkeypatch, **{**YAWOLS, missing: ""}) is None


def test_a_network_that_was_forgotten_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        assert given(monkeypatch, **{**YAWOLS, "NETWORK_ID": ""}) is None
    assert "set: NETWORK_ID" in caplog.text
