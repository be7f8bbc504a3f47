from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.accounts.actions.member import MemberAction
from domain.accounts.observed import ClaimWorld
from domain.model import Model


class Cleaned(Model):
    report: str


class CleanRegion(MemberAction):
    """Instances, snapshots, volumes, VPC endpoint services."""

    activity: ClassVar[str] = "aws.clean_region"
    slot_by: ClassVar[str] = "region"
    title: ClassVar[str] = "clean {region}"
    result: ClassVar[type[Model] | None] = Cleaned
    start_to_close: ClassVar[timedelta] = timedelta(minutes=30)

    region: str

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        assert isinstance(result, Cleaned)  # noqa: S101
        return world.learn(cleaned={**world.known.cleaned, self.region: result.report})


class CleanGlobal(MemberAction):
    """S3 buckets with all versions, Route 53 hosted zones."""

    activity: ClassVar[str] = "aws.clean_global"
    title: ClassVar[str] = "clean S3 and Route 53"
    result: ClassVar[type[Model] | None] = Cleaned
    start_to_close: ClassVar[timedelta] = timedelta(hours=2)

    region: str

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        assert isinstance(result, Cleaned)  # noqa: S101
        return world.learn(cleaned={**world.known.cleaned, "global": result.report})
