from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from domain.accounts.actions.account_access import MemberAction
from domain.accounts.constants import OPTING_IN_REGIONS
from domain.accounts.observed import AccountWorld
from domain.decision import Action
from domain.identity import Key
from domain.model import Model


class AskToOptIn(Action):
    activity: ClassVar[str] = "accounts.ask_to_opt_in"
    title: ClassVar[str] = "request a turn to opt in to regions"
    learns: ClassVar[Mapping[str, object]] = {"opt_in_asked": True, "opt_in_until": None}

    account: Key


class RegionStatuses(Model):
    """The status of each region: ENABLED, ENABLING, TODO or MANUAL_ACTION; empty if AWS does not know the region."""

    statuses: dict[str, str]


class EnableRegions(MemberAction):
    """Read the statuses of an account's opt-in regions in one call, and enable regions that are not requested yet.

    Temporal retries until a status differs from `seen`. At most `at_once` regions are pending in the account, including
    regions that other clients requested.
    """

    activity: ClassVar[str] = "aws.enable_regions"
    result: ClassVar[type[Model] | None] = RegionStatuses
    renewable: ClassVar[bool] = True

    seen: dict[str, str]
    at_once: int = OPTING_IN_REGIONS

    @property
    def summary(self) -> str:
        return f"opt in to {', '.join(sorted(self.seen))}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        assert isinstance(result, RegionStatuses)  # noqa: S101 - the activity's type
        return world.learn(opt_in_news={**world.known.opt_in_news, **result.statuses}, regions=None)
