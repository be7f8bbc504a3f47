"""Equality of desired values and 3scale's responses.

3scale adds ports to addresses, slashes to paths and the backend's id to metric names; it removes trailing slashes and
zeros. An unset field equals any value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from urllib.parse import SplitResult, urlsplit

from domain.schema import Json

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def same_text(wanted: str | None, found: str | None) -> bool:
    return wanted is None or wanted == (found or "")


def with_port(address: str) -> str:
    """The address with its port, as 3scale stores it. A text that is no address is returned unchanged."""
    try:
        parts = urlsplit(address)
        named = parts.port
    except ValueError:
        return address
    if named is not None or parts.scheme not in _PORTS or not parts.hostname:
        return address
    return parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{_PORTS[parts.scheme]}").geturl()


def parts_of(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def shown(url: str) -> str:
    """The address without its user and query, which may be secret."""
    parts = parts_of(url)
    if parts is None:
        return url.partition("?")[0].rpartition("@")[2]
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def same_address(wanted: str | None, found: str | None) -> bool:
    return wanted is None or with_port(wanted) == with_port(found or "")


def usage_path(path: str) -> str:
    return "/" + path.strip().strip("/")


def same_path(wanted: str, found: str) -> bool:
    return usage_path(wanted) == usage_path(found)


def same_money(wanted: str | None, found: Json) -> bool:
    return wanted is None or _decimal(wanted) == _decimal(found)


def bare_name(system_name: str, backend_id: int) -> str:
    return system_name.removesuffix(f".{backend_id}")


def described(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in fields.items() if name != "description" or value}


def same_json(wanted: object, found: object) -> bool:
    return json.dumps(wanted, sort_keys=True) == json.dumps(found, sort_keys=True)


def _decimal(value: Json) -> Decimal | None:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return None
