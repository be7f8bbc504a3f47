"""Suffixes like those of the API server's generated names, derived instead of drawn.

Deriving a name again finds what it named before, so that a create which is sent twice makes one object.
"""

from __future__ import annotations

import hashlib

# Kubernetes' own alphabet of generated names: no vowels, no look-alikes.
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def derived_suffix(*seed: str, length: int) -> str:
    """So many characters of the alphabet, the same for the same seed."""
    number = int.from_bytes(hashlib.sha256("/".join(seed).encode()).digest()[:8])
    letters = []
    for _ in range(length):
        number, index = divmod(number, len(SUFFIX_ALPHABET))
        letters.append(SUFFIX_ALPHABET[index])
    return "".join(letters)
