"""Notices of several kinds of the area."""

from __future__ import annotations

from domain.notices import Notice, warning


def bad_source_range(text: str) -> Notice:
    """The source range is not a network and is left out; the others are used."""
    return warning("Error", f"Could not parse LoadBalancerSourceRange: {text}")
