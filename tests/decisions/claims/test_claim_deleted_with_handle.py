"""Which claims are deleted with their handles."""

from __future__ import annotations

from typing import Any

import pytest
from claim_scenes import handle

from domain.claims.claim_deleted_with_handle import deletes_claim

NOON, LATER = "2026-11-21T12:00:00Z", "2026-11-21T12:00:01Z"


@pytest.mark.parametrize(
    ("link", "created", "deleted"),
    [
        ({"name": "guid-b7k2q"}, NOON, True),
        ({"name": "guid-b7k2q"}, LATER, True),
        ({"name": "guid-b7k2q", "detached": True}, NOON, False),
        ({"name": "guid-zzzzz"}, NOON, False),
        ({}, NOON, True),
        ({}, LATER, False),
    ],
    ids=["its claim", "its claim, created late", "detached", "another's", "not linked yet", "a later claim"],
)
def test_a_handles_deletion_deletes_its_claim(link: dict[str, Any], created: str, deleted: bool) -> None:
    claim: Any = {"metadata": {"creationTimestamp": created}, "status": {"resourceHandle": link}}
    held = handle()
    held["metadata"]["deletionTimestamp"] = LATER
    assert deletes_claim(held, claim) is deleted
    del held["metadata"]["deletionTimestamp"]
    assert deletes_claim(held, claim) is (deleted or not link)
