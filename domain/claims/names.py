"""Names of handles, managed resources and ResourceWatches: derived, so that a repeated creation finds the object.

A handle's guid is the suffix of its name, and part of its resources' names. It derives from the uid of the claim or
pool. There are only 14 million guids: if a handle of another owner has the name, the next salt is tried.
"""

from __future__ import annotations

import base64
import hashlib

from domain.claims.constants import HANDLE_NAME_PREFIX, HANDLE_SUFFIX_LENGTH
from domain.names import derived_suffix

_WATCH_SUFFIX_LENGTH = 12


def claim_handle_name(claim_uid: str, salt: int = 0) -> str:
    return _handle_name(claim_uid, str(salt))


def pool_handle_name(pool_uid: str, serial: int, salt: int = 0) -> str:
    return _handle_name(pool_uid, str(serial), str(salt))


def guid_of(name: str, generate_name: str = "") -> str:
    """The name without its prefix (`demo-base-7` of `guid-demo-base-7`), else its last five characters."""
    for prefix in (generate_name, HANDLE_NAME_PREFIX):
        if prefix and name.startswith(prefix):
            return name.removeprefix(prefix)
    return name[-HANDLE_SUFFIX_LENGTH:]


def resource_name(name: str, generate_name: str, *, guid: str, index: int) -> str:
    return name or (generate_name or f"guid{index}-") + guid


def watch_name(api_version: str, kind: str, namespace: str = "") -> str:
    digest = hashlib.sha256(f"{api_version}:{kind}:{namespace}".encode()).digest()
    text = base64.urlsafe_b64encode(digest).decode().translate({ord(char): None for char in "=-_"}).lower()
    return f"{namespace or 'cluster'}-{text[:_WATCH_SUFFIX_LENGTH]}"


def _handle_name(*seed: str) -> str:
    return HANDLE_NAME_PREFIX + derived_suffix(*seed, length=HANDLE_SUFFIX_LENGTH)
