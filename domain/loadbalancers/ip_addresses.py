"""IP addresses and networks from people and clouds, compared by meaning and not by spelling."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from domain.notices import Notice, warning

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def ip_version(text: str) -> int:
    """The address's version, 4 or 6; 0 for anything else."""
    try:
        return ipaddress.ip_address(text).version
    except ValueError:
        return 0


def same_address(one: str, other: str) -> bool:
    try:
        return ipaddress.ip_address(one) == ipaddress.ip_address(other)
    except ValueError:
        return one == other


def bare_addresses(texts: Iterable[str]) -> set[str]:
    # Neutron may return addresses with a prefix length.
    return {str(ipaddress.ip_interface(each).ip) if ip_version(each.partition("/")[0]) else each for each in texts}


def source_range(text: str) -> Network | None:
    """The network with its host bits set to zero; None if the text is invalid or has no prefix length."""
    if "/" not in text or "%" in text:  # like Go, Neutron accepts no IPv6 zone
        return None
    address, _, length = text.partition("/")
    if not (length.isascii() and length.isdigit()):
        return None
    try:
        return ipaddress.ip_network(f"{address}/{int(length)}", strict=False)
    except ValueError:
        return None


def bad_source_range(text: str) -> Notice:
    return warning("Error", f"Could not parse LoadBalancerSourceRange: {text}")
