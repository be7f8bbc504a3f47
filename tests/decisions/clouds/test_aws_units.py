"""Organizational units whose names AWS calls duplicates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.aws.organization import DUPLICATE_UNIT, ensure_organizational_units
from domain.accounts.passes import Units
from engine.errors import Conflict, Throttled


class Organization:
    """A payer's session in which the unit `acme` exists. AWS also calls other spellings of it duplicates."""

    def organizations(self) -> Any:
        return self

    def create_organizational_unit(self, *, Name: str, **_: str) -> dict[str, Any]:  # noqa: N803 - boto's spelling
        if Name.strip().lower() == "acme":
            raise Conflict("it exists", code=DUPLICATE_UNIT)
        return {"OrganizationalUnit": {"Id": f"ou-{Name}"}}

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        return [{"OrganizationalUnits": [{"Name": "acme", "Id": "ou-acme"}]}]


def units(*names: str, attempt: int) -> Units:
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=attempt)
    return environment.run(lambda: ensure_organizational_units(Organization(), "ou-base", names))  # type: ignore[arg-type]


def test_a_duplicate_that_is_not_listed_is_looked_up_again_at_first() -> None:
    with pytest.raises(Throttled):
        units("other", "ACME", attempt=1)


def test_a_duplicate_that_is_never_listed_is_refused_and_delays_no_other_name() -> None:
    found = units("other", "ACME", "acme", attempt=5)
    assert found.ids == {"other": "ou-other", "acme": "ou-acme"}
    assert "ACME" in found.refused["ACME"].message
    assert found.refused["ACME"].code == DUPLICATE_UNIT
