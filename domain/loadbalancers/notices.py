from __future__ import annotations

from domain.notices import Notice, warning


def bad_source_range(text: str) -> Notice:
    return warning("Error", f"Could not parse LoadBalancerSourceRange: {text}")
