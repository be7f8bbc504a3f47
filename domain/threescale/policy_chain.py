"""A product's policy chain, which always contains the gateway's own policy `apicast`."""

from __future__ import annotations

from collections.abc import Sequence

from domain.schema import Json
from domain.threescale.normalize import same_json
from domain.threescale.resources.shared import Policy

_APICAST = "apicast"


def with_apicast(policies: Sequence[Policy]) -> tuple[Policy, ...]:
    if any(policy.name == _APICAST for policy in policies):
        return tuple(policies)
    return (*policies, Policy(name=_APICAST, version="builtin", configuration={}, enabled=True))


def chain_of(policies: Sequence[Policy]) -> list[dict[str, Json]]:
    return [
        {
            "name": policy.name,
            "version": policy.version,
            "configuration": policy.configuration or {},
            "enabled": policy.enabled,
        }
        for policy in with_apicast(policies)
    ]


def same_chain(wanted: Sequence[Policy], found: Sequence[dict[str, Json]]) -> bool:
    names = ("name", "version", "configuration", "enabled")
    return same_json(chain_of(wanted), [{name: entry.get(name) for name in names} for entry in found])
