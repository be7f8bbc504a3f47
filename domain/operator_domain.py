"""The API group of the claims area, Poolboy's OPERATOR_DOMAIN; each label and finalizer of the area derives from it.

Kinds are constants of a process, so a process has one domain, and has it before it imports `domain.claims`:

- a process that a person, Kubernetes or the local deployment starts takes the variable from its environment;
- a process that one of these starts without an environment, as evaluators are, is given the domain with `use`.
"""

from __future__ import annotations

import os
import re

VARIABLE = "OPERATOR_DOMAIN"
DEFAULT = "poolboy.gpte.redhat.com"

# An RFC 1123 subdomain of two labels or more: the API server takes no other for the group of a definition.
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+")
_LONGEST = 253

_used: str | None = None


def use(domain: str) -> None:
    """Give this process its domain.

    Raises:
        RuntimeError: it has another one already, and constants may hold that.
        ValueError: this is no domain name.
    """
    global _used
    if _used not in (None, domain):
        raise RuntimeError(f"this process uses the domain {_used} already, so it cannot use {domain}")
    _used = parse(domain)


def current() -> str:
    """The domain of this process; the first call decides.

    Raises:
        ValueError: the environment's value is no domain name.
    """
    if _used is None:
        use(parse(os.environ.get(VARIABLE, "")))  # noqa: TID251 - the kinds of the area depend on it
    assert _used is not None  # noqa: S101 - `use` sets it
    return _used


def parse(configured: str) -> str:
    """The domain that a value of OPERATOR_DOMAIN asks for; empty asks for the default.

    Raises:
        ValueError: no domain name, so that no object could carry its keys.
    """
    domain = configured.strip() or DEFAULT
    if len(domain) > _LONGEST or not _DOMAIN.fullmatch(domain):
        raise ValueError(f"{VARIABLE} is {configured!r}, which is no domain name such as {DEFAULT}")
    return domain
