"""Addresses of backends and gateways, stored with their port. Only self-managed gateways may be at localhost."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def is_acceptable(address: str, schemes: Iterable[str], *, localhost: bool = False) -> bool:
    parts = _parts(address)
    if parts is None or parts.scheme not in schemes or not parts.hostname:
        return False
    return localhost or not _is_local(parts.hostname)


def with_port(address: str) -> str:
    parts = _parts(address)
    if parts is None or parts.port is not None or parts.scheme not in PORTS:
        return address
    return parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{PORTS[parts.scheme]}").geturl()


def _is_local(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _parts(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    return parts
