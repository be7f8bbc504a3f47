"""A Service's annotations, parsed so that one bad annotation does not affect the others.

An unreadable value counts as absent and is reported; `unreadable_annotations.py` then restores the stored value. A list
keeps its valid items.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from domain.loadbalancers.constants import GROUP, LOG_LABEL_PREFIX
from domain.loadbalancers.go_formats import format_duration, parse_bool, parse_duration
from domain.loadbalancers.ip_addresses import bad_source_range, source_range
from domain.loadbalancers.resources import (
    AdditionalNetwork,
    CredentialsReference,
    DebugSettings,
    Flavor,
    Image,
    Infrastructure,
    LoadBalancerOptions,
    LogForward,
    Network,
)
from domain.loadbalancers.services.existing_floating_ip import read_address
from domain.loadbalancers.services.objects import Installation, Service
from domain.model import Model
from domain.notices import Notice, warning

T = TypeVar("T")

SERVER_GROUP_POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
_ONE_OF_THE_POLICIES = f"one of {', '.join(SERVER_GROUP_POLICIES)}"
_HIGHEST_PORT = 65535


class ServiceAnnotations(Model):
    """The Service's settings: its annotations, or else defaults. `notices` report unreadable annotations."""

    replicas: int = 1
    existing_floating_ip: str | None = None
    infrastructure: Infrastructure = Infrastructure()
    debug_settings: DebugSettings = DebugSettings()
    options: LoadBalancerOptions = LoadBalancerOptions()
    notices: tuple[Notice, ...] = ()
    unreadable: frozenset[str] = frozenset()  # names of annotations, without their prefix
    problem: str = ""  # why `existingFloatingIP` is unreadable


def parse_annotations(service: Service, installation: Installation) -> ServiceAnnotations:
    reader = _Reader(service)
    existing, problem = read_address(reader.text("existingFloatingIP"))
    replicas = reader.read("replicas", _count, "a number from 0 up")
    return ServiceAnnotations(
        replicas=1 if replicas is None else replicas,
        existing_floating_ip=existing,
        infrastructure=_infrastructure(reader, installation),
        debug_settings=_debug(reader),
        options=_options(reader, installation),
        notices=tuple(reader.notices),
        unreadable=frozenset(reader.unreadable),
        problem=problem,
    )


class _Reader:
    def __init__(self, service: Service) -> None:
        self.service = service
        self.annotations = service.metadata.annotations
        self.notices: list[Notice] = []
        self.unreadable: set[str] = set()

    def text(self, name: str) -> str:
        return self.annotations.get(f"{GROUP}/{name}", "").strip()

    def read(self, name: str, parse: Callable[[str], T | None], form: str) -> T | None:
        text = self.text(name)
        if not text:
            return None
        value = parse(text)
        if value is None:
            self.refuse(name, text, form)
        return value

    def flag(self, name: str) -> bool | None:
        """The boolean. As in yawol the text is not stripped, so surrounding white space makes it unreadable."""
        text = self.annotations.get(f"{GROUP}/{name}", "")
        value = parse_bool(text)
        if text and value is None:
            self.refuse(name, text, "true or false")
        return value

    def items(self, name: str) -> list[str]:
        return [item.strip() for item in self.text(name).split(",") if item.strip()]

    def refuse(self, name: str, text: str, form: str) -> None:
        self.ignore(name, f"Could not read annotation {GROUP}/{name}: {text!r} is not {form}. Ignoring it.")

    def ignore(self, name: str, message: str) -> None:
        self.unreadable.add(name)
        self.notices.append(warning("update", message))


def _infrastructure(reader: _Reader, installation: Installation) -> Infrastructure:
    flavor, image = reader.text("flavorId"), reader.text("imageId")
    return Infrastructure(
        default_network=Network(
            floating_net_id=reader.text("floatingNetworkID") or installation.floating_net_id,
            network_id=reader.text("defaultNetworkID") or installation.network_id,
            subnet_id=reader.text("defaultSubnetID") or installation.subnet_id,
        ),
        additional_networks=_additional_networks(reader, installation),
        flavor=Flavor(id=flavor)
        if flavor
        else Flavor(id=installation.flavor_id, name=installation.flavor_name, search=installation.flavor_search),
        image=Image(id=image)
        if image
        else Image(id=installation.image_id, name=installation.image_name, search=installation.image_search),
        availability_zone=reader.text("availabilityZone") or installation.availability_zone,
        auth_secret_ref=CredentialsReference(name=installation.secret_name, namespace=installation.namespace),
        project_id=reader.text("projectID") or None,
    )


def _additional_networks(reader: _Reader, installation: Installation) -> tuple[AdditionalNetwork, ...] | None:
    """The networks, sorted because their order is part of the template hash."""
    networks = set(reader.items("additionalNetworks"))
    own = reader.text("defaultNetworkID")
    skipped = reader.flag("skipCloudControllerDefaultNetworkID")
    if own and own != installation.network_id and not skipped:
        networks.add(installation.network_id)
    return tuple(AdditionalNetwork(network_id=each) for each in sorted(networks)) or None


def _debug(reader: _Reader) -> DebugSettings:
    enabled = bool(reader.flag("debug"))
    return DebugSettings(enabled=enabled, sshkey_name=reader.text("debugsshkey") if enabled else "")


def _options(reader: _Reader, installation: Installation) -> LoadBalancerOptions:
    internal = reader.flag("internalLB")
    return LoadBalancerOptions(
        internal_lb=installation.internal if internal is None else internal,
        load_balancer_source_ranges=_source_ranges(reader),
        tcp_proxy_protocol=bool(reader.flag("tcpProxyProtocol")),
        tcp_proxy_protocol_port_filter=_port_filter(reader),
        tcp_idle_timeout=_idle_timeout(reader, "tcpIdleTimeout"),
        udp_idle_timeout=_idle_timeout(reader, "udpIdleTimeout"),
        log_forward=_log_forward(reader),
        server_group_policy=reader.read("serverGroupPolicy", _policy, _ONE_OF_THE_POLICIES) or "",
    )


def _source_ranges(reader: _Reader) -> tuple[str, ...]:
    """The ranges in the Service's spec or, if it has none, in the annotation. Invalid ranges are included, and
    reported.
    """
    own = reader.service.spec.load_balancer_source_ranges
    ranges = [each.strip() for each in own] if own is not None else reader.items("loadBalancerSourceRanges")
    for each in ranges:
        if source_range(each) is None:
            reader.notices.append(bad_source_range(each))
    return tuple(ranges)


def _port_filter(reader: _Reader) -> tuple[int, ...]:
    name, found = "tcpProxyProtocolPortsFilter", []
    for item in reader.items(name):
        port = _port(item)
        if port is None:
            reader.refuse(name, item, f"a port from 1 to {_HIGHEST_PORT}")
        else:
            found.append(port)
    return tuple(found)


def _idle_timeout(reader: _Reader, name: str) -> str | None:
    text = reader.text(name)
    if not text:
        return None
    duration = parse_duration(text)
    if duration is None or duration < timedelta(0):
        reader.ignore(name, f"Could not parse {GROUP}/{name} to time duration. Ignoring option.")
        return None
    return format_duration(duration)


def _log_forward(reader: _Reader) -> LogForward:
    labels: dict[str, str] = {}
    for name, value in sorted(reader.annotations.items()):
        if not name.startswith(LOG_LABEL_PREFIX):
            continue
        label = name.removeprefix(LOG_LABEL_PREFIX)
        missing = "name" if not label else "value" if not value else ""
        if missing:
            reader.notices.append(warning("update", f"Annotation {name} does not have a {missing}. Ignoring."))
        else:
            labels[label] = value
    if not reader.flag("logForward"):
        # The settings are part of the template hash: a change of unused settings would replace every machine.
        return LogForward()
    return LogForward(
        enabled=True,
        loki_url=reader.text("logForwardLokiURL"),
        proxy_url=reader.text("logForwardProxyURL"),
        labels=labels or None,
    )


# --- parsers: None if unreadable ---


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _port(text: str) -> int | None:
    port = _count(text)
    return port if port and port <= _HIGHEST_PORT else None


def _policy(text: str) -> str | None:
    return text if text in SERVER_GROUP_POLICIES else None
