"""Opting in to the regions that AWS does not enable by itself: the permit, and the look that enables and waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from domain.accounts.actions.member import MemberAction
from domain.accounts.constants import OPTING_IN_REGIONS
from domain.accounts.worlds import AccountWorld
from domain.decision import Action
from domain.identity import Key
from domain.model import Model


class AskToOptIn(Action):
    """Tell the organization's lifecycle that this Account waits for its turn to opt in to regions."""

    activity: ClassVar[str] = "accounts.ask_to_opt_in"
    title: ClassVar[str] = "request a turn to opt in to regions"
    learns: ClassVar[Mapping[str, object]] = {"opt_in_asked": True, "opt_in_until": None}

    account: Key


class RegionStatuses(Model):
    """How opt-in regions stand: ENABLED, ENABLING, TODO, MANUAL_ACTION; empty for what is no region."""

    statuses: dict[str, str]


class EnableRegions(MemberAction):
    """Look at the opt-in regions of an account, all in one call, and ask for those that are not asked for yet.

    Ends when one stands otherwise than `seen`; until then it looks again, by the server's retries. Never more than
    `at_once` regions under way in the account, whoever asked for them.
    """

    activity: ClassVar[str] = "aws.enable_regions"
    result: ClassVar[type[Model] | None] = RegionStatuses
    renewable: ClassVar[bool] = True

    seen: dict[str, str]
    at_once: int = OPTING_IN_REGIONS

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"opt in to {', '.join(sorted(self.seen))}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """How they stand now; which regions the account has is not what it was."""
        assert isinstance(result, RegionStatuses)  # noqa: S101 - the activity's type
        return world.learn(opt_in_news={**world.known.opt_in_news, **result.statuses}, regions=None)
