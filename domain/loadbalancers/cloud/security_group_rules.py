"""The rules of a load balancer's security group.

Rules are compared by meaning: Neutron normalizes them, so a comparison by spelling would recreate them endlessly. As
in yawol, the ICMP rule has type 1 and code 8, which does not allow pings. The rule is kept, so adopted groups stay
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from domain.loadbalancers.cloud.objects import SecurityGroupRule
from domain.loadbalancers.cloud.steps import ChangeRules
from domain.loadbalancers.constants import AD_HOC_DEBUG_ANNOTATION
from domain.loadbalancers.go_formats import parse_bool
from domain.loadbalancers.ip_addresses import bad_source_range, source_range
from domain.loadbalancers.names import cloud_name
from domain.loadbalancers.resources import LoadBalancer
from domain.model import Model
from domain.notices import Notice, warning

_ANYBODY: Final = ("0.0.0.0/0", "::/0")
_ICMP: Final = {"IPv4": "icmp", "IPv6": "ipv6-icmp"}
_SSH: Final = 22
_OPEN = "DebugSettings are enabled, Port 22 is open to all IP ranges."
_IN_USE = "DebugSettings are enabled, but port 22 is already in use."

# https://www.iana.org/assignments/protocol-numbers; Neutron accepts names and numbers.
_PROTOCOLS: Final = {
    "1": "icmp",
    "6": "tcp",
    "17": "udp",
    "58": "ipv6-icmp",
    "icmpv6": "ipv6-icmp",
    "112": "vrrp",
    "any": "",
    "0": "",
    "none": "",
}


class WantedRules(Model):
    rules: tuple[SecurityGroupRule, ...]
    notices: tuple[Notice, ...] = ()


def wanted_rules(balancer: LoadBalancer, security_group_id: str) -> WantedRules:
    ranges, notices = _ranges(balancer)
    rules = [*_basic_rules(security_group_id)]
    for port in balancer.spec.ports:
        rules.extend(_ingress(each, port.protocol.lower(), port.port) for each in ranges)
    if _debugging(balancer):
        taken = any(port.port == _SSH for port in balancer.spec.ports)
        notices.append(warning("Warning", _IN_USE if taken else _OPEN))
        if not taken:
            rules.extend(_ingress(each, "tcp", _SSH) for each in _ANYBODY)
    name = cloud_name(balancer.metadata)
    described = (rule.model_copy(update={"description": name}) for rule in rules)
    # Two ranges may be the same network, and Neutron refuses duplicate rules.
    distinct = {meaning(rule): rule for rule in reversed(list(described))}
    return WantedRules(rules=tuple(reversed(distinct.values())), notices=tuple(notices))


def changed_rules(
    security_group_id: str, wanted: Iterable[SecurityGroupRule], present: Iterable[SecurityGroupRule]
) -> ChangeRules | None:
    """The change of a group's rules; None if nothing differs. Duplicates in `present` are deleted."""
    missing = {meaning(rule): rule for rule in wanted}
    unwanted: list[str] = []
    for rule in present:
        if missing.pop(meaning(rule), None) is None:
            unwanted.append(rule.id)
    if not missing and not unwanted:
        return None
    return ChangeRules(security_group_id=security_group_id, create=tuple(missing.values()), delete=tuple(unwanted))


def meaning(rule: SecurityGroupRule) -> tuple[object, ...]:
    return (
        rule.direction.lower(),
        rule.ethertype.lower(),
        _protocol(rule.protocol),
        rule.port_range_min,
        rule.port_range_max,
        _prefix(rule.remote_ip_prefix),
        rule.remote_group_id,
    )


def _basic_rules(security_group_id: str) -> Iterable[SecurityGroupRule]:
    for ethertype in ("IPv4", "IPv6"):
        yield SecurityGroupRule(direction="egress", ethertype=ethertype)
        yield SecurityGroupRule(
            direction="ingress", ethertype=ethertype, protocol="vrrp", remote_group_id=security_group_id
        )
        yield SecurityGroupRule(
            direction="ingress",
            ethertype=ethertype,
            protocol=_ICMP[ethertype],
            port_range_min=1,
            port_range_max=8,
        )


def _ranges(balancer: LoadBalancer) -> tuple[list[str], list[Notice]]:
    """The source ranges. If ranges are given but none can be parsed, the result is empty, and no source is allowed."""
    named = balancer.spec.options.load_balancer_source_ranges
    ranges = [str(network) for each in named if (network := source_range(each)) is not None]
    notices = [bad_source_range(each) for each in named if source_range(each) is None]
    return (ranges if named else list(_ANYBODY)), notices


def _ingress(prefix: str, protocol: str, port: int) -> SecurityGroupRule:
    return SecurityGroupRule(
        direction="ingress",
        ethertype="IPv6" if ":" in prefix else "IPv4",
        protocol=protocol,
        port_range_min=port,
        port_range_max=port,
        remote_ip_prefix=prefix,
    )


def _debugging(balancer: LoadBalancer) -> bool:
    ad_hoc = parse_bool(balancer.metadata.annotations.get(AD_HOC_DEBUG_ANNOTATION, ""))
    return balancer.spec.debug_settings.enabled or bool(ad_hoc)


def _protocol(name: str) -> str:
    return _PROTOCOLS.get(name.lower(), name.lower())


def _prefix(text: str) -> str:
    network = source_range(text)
    if network is None:
        return text
    return str(network) if network.prefixlen else ""
