"""Which objects a handle adopts."""

from __future__ import annotations

from typing import Any

import pytest
from claim_domain import NAMES
from claim_scenes import config_map, handle

from domain.claims.resource_adoption import other_owner


@pytest.mark.parametrize(("annotated", "other"), [("", ""), ("guid-b7k2q", ""), ("guid-zzzzz", "guid-zzzzz")])
def test_an_object_is_adopted_unless_it_names_another_handle(annotated: str, other: str) -> None:
    existing: dict[str, Any] = config_map("a")
    if annotated:
        existing["metadata"]["annotations"] = {NAMES.resource_handle_name_annotation: annotated}
    assert other_owner(NAMES, handle(), existing) == other
