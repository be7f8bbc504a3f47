from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.accounts.actions.account_access import MemberAction
from domain.accounts.observed import AccountWorld, RegionOutcome
from domain.decision import Facts, WhenUnwanted
from domain.identity import Key
from domain.model import Model
from domain.refusal import Refusal


class Regions(Facts):
    regions: tuple[str, ...]


class ListRegions(MemberAction):
    """A new account answers OptInRequired, which is retried."""

    activity: ClassVar[str] = "aws.list_regions"
    title: ClassVar[str] = "list the regions of {account_id}"
    result: ClassVar[type[Model] | None] = Regions
    first_retry: ClassVar[timedelta] = timedelta(seconds=5)
    longest_retry: ClassVar[timedelta] = timedelta(minutes=1)


class InitializeRegion(MemberAction):
    activity: ClassVar[str] = "aws.initialize_region"
    slot_by: ClassVar[str] = "region"
    title: ClassVar[str] = "initialise {region}"
    result: ClassVar[type[Model] | None] = RegionOutcome
    start_to_close: ClassVar[timedelta] = timedelta(minutes=15)
    first_retry: ClassVar[timedelta] = timedelta(seconds=2)
    longest_retry: ClassVar[timedelta] = timedelta(seconds=512)
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.AWAITED

    owner: Key
    region: str
    round: str
    ami_owner: str
    kms_key_id: str = ""
    vcpu_quota: int = 0  # requested in the region, but not awaited; 0 requests nothing
    tags: dict[str, str]
    search: bool

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        assert isinstance(result, RegionOutcome)  # noqa: S101
        known = world.known
        requested = tuple(sorted({*known.vcpus_asked, *({self.region} if result.vcpus_asked else ())}))
        return world.learn(outcomes={**known.outcomes, self.region: result}, vcpus_asked=requested)

    # An instance may be left in the region. A deletion that has already searched the region must search it again.

    def cancelled(self, world: AccountWorld) -> AccountWorld:  # type: ignore[override]
        cleaned = world.known.cleaned
        return world.learn(cleaned={region: how for region, how in cleaned.items() if region != self.region})

    def refuse(self, world: AccountWorld, refusal: Refusal) -> AccountWorld:  # type: ignore[override]
        return self.cancelled(super().refuse(world, refusal))


class EndLaunches(MemberAction):
    activity: ClassVar[str] = "aws.end_launches"
    slot_by: ClassVar[str] = "region"
    title: ClassVar[str] = "terminate initialisation instances in {region}"

    region: str
    tags: dict[str, str]

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        return world.learn(cleaned={**world.known.cleaned, self.region: "no instance of Perdure's is left"})
