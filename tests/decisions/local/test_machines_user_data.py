"""What the machine host reads from user data: that of our own machines word for word, and nothing else."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
from lb_objects import balancer, machine

from domain.loadbalancers.machine.user_data import KUBECONFIG_PATH, MachineSettings, user_data
from localcloud.machines.contract import Fare, Fares
from localcloud.machines.user_data import AGENT, ENVOY, KEEPALIVED_SERVICE, ForeignError, Vrrp, read


def born(**settings: object) -> str:
    return user_data(
        machine(),
        balancer(),
        virtual_address="127.64.0.5",
        kubeconfig="the kubeconfig",
        settings=MachineSettings.model_validate(settings),
    )


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_machine_is_read_as_it_was_written() -> None:
    birth = read(encoded(born(requeue_time=timedelta(seconds=45))))
    assert birth.vrrp == Vrrp(virtual_address="127.64.0.5", priority=50, envoy_weight=100, agent_weight=10)
    assert {AGENT, ENVOY, KEEPALIVED_SERVICE} <= birth.services
    files = {each.path: each for each in birth.files}
    assert files[KUBECONFIG_PATH].content == b"the kubeconfig"
    assert files[KUBECONFIG_PATH].mode == 0o600


def test_the_agent_has_all_its_arguments_whether_after_a_sign_or_a_space() -> None:
    given = machine()
    assert read(encoded(born(requeue_time=timedelta(seconds=45)))).arguments == {
        "--namespace": given.metadata.namespace,
        "--loadbalancer-name": given.spec.load_balancer_ref.name,
        "--loadbalancer-machine-name": given.metadata.name,
        "--listen-address": "127.64.0.5",
        "--health-probe-bind-address": "127.0.0.1:8080",
        "--kubeconfig": KUBECONFIG_PATH,
        "--requeue-time": "45",
    }


def test_a_service_that_is_stopped_does_not_run() -> None:
    assert "promtail" not in read(encoded(born())).services


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no user data"),
        ("#!/bin/sh\necho hello\n", "does not begin with #cloud-config"),
        ("#cloud-config\n{", "YAMLError|ParserError"),
        ("#cloud-config\npackages: [nginx]\n", "ValidationError"),
        ("#cloud-config\nwrite_files: []\nruncmd: []\n", "does not write /etc/yawol/env.conf"),
        (born().replace("encoding: b64", "encoding: gzip", 1), "encoding 'gzip'"),
        (born().replace("YAWOLLET_ARGS", "OTHER_ARGS"), "does not set YAWOLLET_ARGS"),
        (born().replace("--namespace=", "namespace="), "is not a flag"),
    ],
)
def test_user_data_of_no_machine_of_ours_is_refused(text: str, message: str) -> None:
    with pytest.raises(ForeignError, match=message):
        read(encoded(text))


def test_malformed_base64_is_refused() -> None:
    with pytest.raises(ForeignError, match="not base64"):
        read("#cloud-config")


def test_a_refusal_does_not_repeat_what_it_has_read() -> None:
    with pytest.raises(ForeignError) as refused:
        read(encoded("#cloud-config\nwrite_files: [{token: abc}]\nruncmd: []\n"))
    assert "abc" not in str(refused.value)


def test_the_first_fare_that_speaks_of_a_machine_counts() -> None:
    fares = Fares(fares=(Fare(server="^web-", boots=False), Fare(boot_delay=5)))
    assert not fares.of("web-1").boots
    assert fares.of("api-1").boot_delay == 5
    assert Fares().of("web-1") == Fare()


def test_a_fare_of_a_broken_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        Fare(server="(")
