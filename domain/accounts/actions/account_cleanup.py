from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.accounts.actions.account_access import MemberAction
from domain.accounts.observed import ClaimWorld
from domain.model import Model


class Cleaned(Model):
    report: str


class CleanAction(MemberAction):
    result: ClassVar[type[Model] | None] = Cleaned

    region: str

    @property
    def part(self) -> str:
        """The key under which the claim's memory stores the report."""
        return self.region

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        assert isinstance(result, Cleaned)  # noqa: S101
        return world.learn(cleaned={**world.known.cleaned, self.part: result.report})


class CleanRegion(CleanAction):
    """Delete instances, snapshots, volumes and VPC endpoint services of the region."""

    activity: ClassVar[str] = "aws.clean_region"
    slot_by: ClassVar[str] = "region"
    title: ClassVar[str] = "clean {region}"
    start_to_close: ClassVar[timedelta] = timedelta(minutes=30)


class CleanGlobal(CleanAction):
    """Delete S3 buckets with all versions, and Route 53 hosted zones."""

    activity: ClassVar[str] = "aws.clean_global"
    title: ClassVar[str] = "clean S3 and Route 53"
    start_to_close: ClassVar[timedelta] = timedelta(hours=2)

    @property
    def part(self) -> str:
        return "global"
