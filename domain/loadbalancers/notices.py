from __future__ import annotations

from domain.notices import Notice, warning


def bad_source_range(text: str) -> Notice:
    """The notice of an unreadable source range; the others are used."""
    return warning("Error", f"Could not parse LoadBalancerSourceRange: {text}")
