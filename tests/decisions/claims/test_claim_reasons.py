"""Every reason that a Stalled condition may give is in the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from activities.claims.evaluation import BUG, TOO_MUCH
from domain.claims import (
    claim_preparation,
    claim_spec_validation,
    faults,
    handle_creation,
    provider_assignment,
    stalled_condition,
)

ROOT = Path(__file__).parents[3]


def written_out() -> Iterator[str]:
    """The reasons that the code writes where it needs them."""
    for part in ("domain", "activities"):
        for file in (ROOT / part / "claims").glob("*.py"):
            yield from re.findall(r'Fault\(reason="(\w+)"|reason = "(\w+)" if .* else "(\w+)"', file.read_text())


def test_every_reason_is_documented() -> None:
    named = {
        provider_assignment.INVALID_RESOURCES,
        provider_assignment.NO_PROVIDER,
        provider_assignment.SEVERAL_PROVIDERS,
        claim_spec_validation.INVALID_SPEC,
        claim_spec_validation.PROVIDER_IMMUTABLE,
        claim_preparation.CLAIM_REFUSED,
        handle_creation.UNCLAIMED_TOO_SHORT,
        stalled_condition.HANDLE_STALLED,
        BUG,
        TOO_MUCH,
        *(reason for _, reason in faults.REASONS),
        *(reason for found in written_out() for reason in found if reason),
    }
    text = (ROOT / "docs" / "claims.md").read_text()
    assert len(named) > 18
    assert {reason for reason in named if f"`{reason}`" not in text} == set()
