"""Notices that several kinds of load balancing give."""

from __future__ import annotations

from domain.notices import Notice, warning


def bad_source_range(text: str) -> Notice:
    """A source range that is no network: it is left out, the others count."""
    return warning("Error", f"Could not parse LoadBalancerSourceRange: {text}")
