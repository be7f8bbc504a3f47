"""OPERATOR_DOMAIN: the API group of the claims area, from which its labels, annotations and finalizers derive.

Only `engine.settings` reads it; from there it is passed on as data, so that one process can serve two domains.
"""

from __future__ import annotations

import re

DEFAULT = "poolboy.gpte.redhat.com"
# Used in place of the domain until `Kind.under` fills it in. The API server refuses it as a group or finalizer, so a
# missing substitution fails at once.
PLACEHOLDER = "(OPERATOR_DOMAIN)"

# An RFC 1123 subdomain of two labels or more: the API server accepts nothing else as a CRD's group.
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+")
_LONGEST = 253


def parse(configured: str) -> str:
    """The configured domain; the default if `configured` is empty.

    Raises:
        ValueError: the API server would not accept `configured` as an API group.
    """
    domain = configured.strip() or DEFAULT
    if len(domain) > _LONGEST or not _DOMAIN.fullmatch(domain):
        raise ValueError(f"OPERATOR_DOMAIN is {configured!r}, which is not a domain name such as {DEFAULT}")
    return domain
