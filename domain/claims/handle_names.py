"""Names of handles: derived, so that a repeated creation finds the handle.

A handle's guid is the suffix of its name, and part of its resources' names. It derives from the uid of the claim, pool
or scaling. There are only 14 million guids: if a handle of another owner has the name, the next salt is tried.
"""

from __future__ import annotations

from domain.claims.constants import HANDLE_NAME_PREFIX, HANDLE_SUFFIX_LENGTH
from domain.names import derived_suffix


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


def _handle_name(*seed: str) -> str:
    return HANDLE_NAME_PREFIX + derived_suffix(*seed, length=HANDLE_SUFFIX_LENGTH)
