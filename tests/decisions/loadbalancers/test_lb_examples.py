"""`examples/loadbalancers-*`: the manifests say only what is known, and mean what their comments promise."""

from __future__ import annotations

import base64

import pytest
from definitions import Json
from lb_objects import NOW
from manifests import EXAMPLES, dropped, manifests

from activities.openstack.credentials import read_credentials
from domain.loadbalancers import LOAD_BALANCER
from domain.loadbalancers.cloud.load_balancer import plan_cloud
from domain.loadbalancers.cloud.objects import LoadBalancerCloud
from domain.loadbalancers.constants import DEFAULT_CLASS
from domain.loadbalancers.envoy import envoy_configuration
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerOptions, LogForward
from domain.loadbalancers.services.objects import Installation, Service
from domain.loadbalancers.services.synchronization import work_for

SERVICES = {each["metadata"]["name"]: each for each in manifests("loadbalancers-services") if each["kind"] == "Service"}
OBJECTS = manifests("loadbalancers-objects")
BALANCERS = {each["metadata"]["name"]: each for each in OBJECTS if each["kind"] == LOAD_BALANCER.name}
INSTALLATION = Installation(
    namespace="load-balancers",
    secret_name="cloud",
    floating_net_id="external",
    network_id="tenant",
    flavor_id="small",
    image_id="alpine",
)


def load_balancer_of(name: str) -> LoadBalancer:
    """The LoadBalancer that an example's Service comes to; the API server gives each port a node port."""
    body = SERVICES[name]
    ports = [{**port, "nodePort": 30000 + port["port"]} for port in body["spec"]["ports"]]
    service = Service.model_validate({**body, "spec": {**body["spec"], "ports": ports}})
    work = work_for(service, None, (), INSTALLATION)
    assert (work.problem, [each.message for each in work.notices if each.type == "Warning"]) == ("", [])
    assert work.create is not None
    return LoadBalancer.model_validate(work.create)


def test_a_public_service_gets_an_address_and_machines_on_different_hosts() -> None:
    found = load_balancer_of("public")
    assert (found.spec.replicas, found.internal) == (2, False)
    assert found.spec.options == LoadBalancerOptions(
        server_group_policy="anti-affinity", tcp_idle_timeout="1h30m0s", internal_lb=False
    )
    assert found.spec.infrastructure.floating_net == "external"


def test_an_internal_service_has_no_floating_ip_and_is_served_by_class() -> None:
    found = load_balancer_of("internal")
    assert found.internal
    assert [(port.protocol, port.port) for port in found.spec.ports] == [("TCP", 80), ("UDP", 53)]
    assert SERVICES["internal"]["spec"]["loadBalancerClass"] == DEFAULT_CLASS


def test_a_restricted_service_admits_two_ranges_and_shows_the_client_on_one_port() -> None:
    options = load_balancer_of("restricted").spec.options
    assert options.load_balancer_source_ranges == ("203.0.113.0/24", "2001:db8::/32")
    assert (options.tcp_proxy_protocol, options.tcp_proxy_protocol_port_filter) == (True, (443,))


def test_a_service_keeps_its_own_address() -> None:
    assert load_balancer_of("fixed-address").spec.existing_floating_ip == "203.0.113.80"


@pytest.mark.parametrize("name", sorted(BALANCERS))
def test_load_balancers_written_by_hand_stay_unchanged_and_can_be_served(name: str) -> None:
    body: Json = BALANCERS[name]
    assert dropped(body) == []
    found = LoadBalancer.model_validate(body)
    configuration = envoy_configuration(found, listen_address="10.1.0.5", cpus=1)
    assert [port.port for port in found.spec.ports]
    assert configuration.notices == ()
    assert plan_cloud(found, LoadBalancerCloud(), NOW).steps
    assert found.spec.infrastructure.auth_secret_ref.name == "cloud"


def test_the_debugged_machines_are_what_the_comments_say() -> None:
    found = LoadBalancer.model_validate(BALANCERS["debugged"])
    assert (found.spec.debug_settings.enabled, found.spec.debug_settings.sshkey_name) == (True, "operators")
    assert found.spec.options.log_forward == LogForward(
        enabled=True, loki_url="https://loki.example.com/loki/api/v1/push", labels={"team": "network"}
    )


def test_the_credentials_are_complete() -> None:
    (secret,) = (each for each in OBJECTS if each["kind"] == "Secret")
    fields = {name: base64.b64encode(text.encode()).decode() for name, text in secret["stringData"].items()}
    reference = ProjectReference.of(LoadBalancer.model_validate(BALANCERS["vault"]))
    assert (reference.namespace, reference.secret) == (secret["metadata"]["namespace"], secret["metadata"]["name"])
    found = read_credentials(fields, reference.where, environment={})
    assert (found.project_name, found.region) == ("load-balancers", "RegionOne")


@pytest.mark.parametrize("directory", ["loadbalancers-services", "loadbalancers-objects"])
def test_every_manifest_is_mentioned(directory: str) -> None:
    page = (EXAMPLES / directory / "README.md").read_text()
    assert [file.name for file in (EXAMPLES / directory).glob("*.yaml") if f"`{file.name}`" not in page] == []
