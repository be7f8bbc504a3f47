"""When what is wanted and what 3scale answers are equal.

3scale rewrites what it receives: addresses get their port, paths a leading slash and no trailing one, prices lose
zeros, metrics of a backend get its id as a suffix, a policy chain gets `apicast`. A comparison of texts would write
again for ever. A field that is not set asks for nothing and equals any value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from urllib.parse import urlsplit

from domain.schema import Json
from domain.threescale.constants import APICAST, BUILT_IN
from domain.threescale.resources.shared import Policy

_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def same_text(wanted: str | None, found: str | None) -> bool:
    """Texts; 3scale may say nothing where the text is empty."""
    return wanted is None or wanted == (found or "")


def with_port(address: str) -> str:
    """The address as 3scale keeps it; what is no address stays as it is."""
    try:
        parts = urlsplit(address)
        named = parts.port
    except ValueError:
        return address
    if named is not None or parts.scheme not in _PORTS or not parts.hostname:
        return address
    return parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{_PORTS[parts.scheme]}").geturl()


def same_address(wanted: str | None, found: str | None) -> bool:
    """Addresses, with the port written or not."""
    return wanted is None or with_port(wanted) == with_port(found or "")


def usage_path(path: str) -> str:
    """The path under which a product uses a backend, as 3scale keeps it."""
    return "/" + path.strip().strip("/")


def same_path(wanted: str, found: str) -> bool:
    """Such paths, with or without their slashes."""
    return usage_path(wanted) == usage_path(found)


def same_money(wanted: str | None, found: Json) -> bool:
    """Prices and fees: "20" is 20.0 and "20.0"."""
    return wanted is None or _decimal(wanted) == _decimal(found)


def bare_name(system_name: str, backend_id: int) -> str:
    """A backend's metric as custom resources name it, without the backend's id."""
    return system_name.removesuffix(f".{backend_id}")


def chain_of(policies: Sequence[Policy]) -> list[dict[str, Json]]:
    """The chain as it is sent, which is as 3scale keeps it."""
    chain: list[dict[str, Json]] = [
        {
            "name": policy.name,
            "version": policy.version,
            "configuration": policy.configuration or {},
            "enabled": policy.enabled,
        }
        for policy in policies
    ]
    if all(policy.name != APICAST for policy in policies):
        chain.append({"name": APICAST, "version": BUILT_IN, "configuration": {}, "enabled": True})
    return chain


def same_chain(wanted: Sequence[Policy], found: Sequence[dict[str, Json]]) -> bool:
    """Chains of policies, in their order."""
    names = ("name", "version", "configuration", "enabled")
    return same_json(chain_of(wanted), [{name: entry.get(name) for name in names} for entry in found])


def described(fields: Mapping[str, Json]) -> dict[str, Json]:
    """What describes something, without an empty description, which is the same as none."""
    return {name: value for name, value in fields.items() if name != "description" or value}


def same_json(wanted: object, found: object) -> bool:
    """Values as JSON has them: to Python, true is 1."""
    return json.dumps(wanted, sort_keys=True) == json.dumps(found, sort_keys=True)


def _decimal(value: Json) -> Decimal | None:
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return None
