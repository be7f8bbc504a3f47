"""Name suffixes like the API server's generated ones, but derived from a seed: a create request that is sent twice
creates one object.
"""

from __future__ import annotations

import hashlib

# Kubernetes' alphabet for generated names: no vowels, no characters that look alike.
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def derived_suffix(*seed: str, length: int) -> str:
    number = int.from_bytes(hashlib.sha256("/".join(seed).encode()).digest()[:8])
    letters = []
    for _ in range(length):
        number, index = divmod(number, len(SUFFIX_ALPHABET))
        letters.append(SUFFIX_ALPHABET[index])
    return "".join(letters)
