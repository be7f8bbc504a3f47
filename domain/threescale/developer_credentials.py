from __future__ import annotations

import re

from domain.threescale.calls import SecretKey
from domain.threescale.resources import DeveloperUser

PASSWORD_KEY = "password"  # noqa: S105 - its name
# One `@`, preceded by something and followed by a host with at least two characters.
_ADDRESS = re.compile(r"[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-zA-Z0-9](?:[a-zA-Z0-9.-]{0,253}[a-zA-Z0-9])")


def password_of(user: DeveloperUser) -> SecretKey:
    reference = user.spec.password_credentials_ref
    return SecretKey(namespace=reference.namespace or user.metadata.namespace, name=reference.name, key=PASSWORD_KEY)


def valid_address(address: str) -> bool:
    return _ADDRESS.fullmatch(address) is not None
