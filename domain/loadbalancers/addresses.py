"""IP addresses and networks as people and clouds write them: equal in meaning, not always in spelling."""

from __future__ import annotations

import ipaddress

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def ip_version(text: str) -> int:
    """4 or 6, 0 for what is no address."""
    try:
        return ipaddress.ip_address(text).version
    except ValueError:
        return 0


def same_address(one: str, other: str) -> bool:
    """Whether two texts are the same IP address."""
    try:
        return ipaddress.ip_address(one) == ipaddress.ip_address(other)
    except ValueError:
        return one == other


def source_range(text: str) -> Network | None:
    """The network of a text such as 10.0.0.0/8, bits of a host dropped; None for what is none, or lacks its length."""
    if "/" not in text:
        return None
    address, _, length = text.partition("/")
    if not (length.isascii() and length.isdigit()):
        return None
    try:
        return ipaddress.ip_network(f"{address}/{int(length)}", strict=False)
    except ValueError:
        return None
