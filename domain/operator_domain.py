"""OPERATOR_DOMAIN: the API group of the claims area, from which its labels, annotations and finalizers derive.

Users choose it as they did for Poolboy. `engine.settings` alone reads it; from there it is handed on as data, in
questions to evaluators too, so that one process can work for two domains.
"""

from __future__ import annotations

import re

DEFAULT = "poolboy.gpte.redhat.com"
# Stands where a kind or a key of the claims area has the domain. The API server takes no such group or finalizer, so
# that a kind whose domain was never filled in fails at once.
PLACEHOLDER = "(OPERATOR_DOMAIN)"

# An RFC 1123 subdomain of two labels or more: the API server takes no other for the group of a definition.
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+")
_LONGEST = 253


def parse(configured: str) -> str:
    """The domain that a value of OPERATOR_DOMAIN asks for; empty asks for the default.

    Raises:
        ValueError: no domain name, so that no object could carry its keys.
    """
    domain = configured.strip() or DEFAULT
    if len(domain) > _LONGEST or not _DOMAIN.fullmatch(domain):
        raise ValueError(f"OPERATOR_DOMAIN is {configured!r}, which is no domain name such as {DEFAULT}")
    return domain
