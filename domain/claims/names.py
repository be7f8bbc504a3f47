"""Names of handles, of what they manage, and of ResourceWatches; derived, so that deriving again finds what is there.

A handle's guid is the random tail of its name, and names every resource that it manages. Poolboy lets the API server
choose the tail (`generateName: guid-`), so a create that is sent again makes a second handle. Perdure sends both that
`generateName` and a name whose tail is derived from the claim's uid (the pool's uid and a serial number for pools): the
API server keeps both, the guid comes out the same, and a repeated create is answered by a conflict. Five characters of
27 make 14 million names, so two owners may meet: whoever finds the name taken by another's handle tries the next salt.
"""

from __future__ import annotations

import base64
import hashlib

from domain.claims.constants import HANDLE_NAME_PREFIX, HANDLE_SUFFIX_LENGTH
from domain.names import derived_suffix

_WATCH_SUFFIX_LENGTH = 12


def claim_handle_name(claim_uid: str, salt: int = 0) -> str:
    """The name of the handle that is made for a claim."""
    return _handle_name(claim_uid, str(salt))


def pool_handle_name(pool_uid: str, serial: int, salt: int = 0) -> str:
    """The name of a pool's handle; `serial` tells the pool's handles apart and is never used twice."""
    return _handle_name(pool_uid, str(serial), str(salt))


def guid_of(name: str, generate_name: str = "") -> str:
    """The guid of a handle; one made by hand as `guid-demo-base-7` has the guid `demo-base-7`."""
    for prefix in (generate_name, HANDLE_NAME_PREFIX):
        if prefix and name.startswith(prefix):
            return name.removeprefix(prefix)
    return name[-HANDLE_SUFFIX_LENGTH:]


def resource_name(name: str, generate_name: str, *, guid: str, index: int) -> str:
    """The name of a managed resource whose definition has this `metadata.name` and `metadata.generateName`."""
    return name or (generate_name or f"guid{index}-") + guid


def watch_name(api_version: str, kind: str, namespace: str = "") -> str:
    """The name of the ResourceWatch for a kind of managed resources; without a namespace it watches the cluster."""
    digest = hashlib.sha256(f"{api_version}:{kind}:{namespace}".encode()).digest()
    text = base64.urlsafe_b64encode(digest).decode().translate({ord(char): None for char in "=-_"}).lower()
    return f"{namespace or 'cluster'}-{text[:_WATCH_SUFFIX_LENGTH]}"


def _handle_name(*seed: str) -> str:
    return HANDLE_NAME_PREFIX + derived_suffix(*seed, length=HANDLE_SUFFIX_LENGTH)
