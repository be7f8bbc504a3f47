"""Where an account is, if AWS answers with an empty page first."""

from __future__ import annotations

from typing import Any, cast

from account_objects import AWS_ID

from activities.aws.account_moves import misplaced, move_account
from activities.aws.session import Sessions
from engine.errors import Absent

UNITS = {"ou-acme": "ou-base", "ou-base": "r-1"}


class Organization:
    """A payer's session. Each list of parents begins with an empty page."""

    def __init__(self, parent: str) -> None:
        self.parent = parent

    def organizations(self) -> Any:
        return self

    def refuse_protected(self, _: str) -> None: ...

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self, *, ChildId: str) -> list[dict[str, Any]]:  # noqa: N803 - boto's spelling
        return [{"Parents": [], "NextToken": "1"}, {"Parents": [{"Id": UNITS.get(ChildId, self.parent)}]}]

    def list_parents(self, *, ChildId: str) -> dict[str, Any]:  # noqa: N803
        return self.paginate(ChildId=ChildId)[0]

    def move_account(self, *, SourceParentId: str, DestinationParentId: str, **_: str) -> None:  # noqa: N803
        if SourceParentId != self.parent:
            raise Absent("not there", code="AccountNotFoundException")
        self.parent = DestinationParentId


def test_an_account_in_another_unit_is_moved() -> None:
    organization = Organization("ou-acme")
    move_account(cast("Sessions", organization), AWS_ID, "r-1", "ou-base", "ou-other")
    assert organization.parent == "ou-other"


def test_an_account_in_its_unit_is_not_misplaced() -> None:
    assert misplaced(cast("Sessions", Organization("ou-acme")), {AWS_ID: "ou-acme"}) == {}
