"""What a tenant left in an account, and its removal."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar, TypeVar

from domain.accounts.actions.member import MemberAction
from domain.accounts.worlds import AccountWorld, ClaimWorld
from domain.model import Model

CleanedWorld = TypeVar("CleanedWorld", AccountWorld, ClaimWorld)


class Cleaned(Model):
    """What a clean-up deleted, as a line for people."""

    report: str


class CleanRegion(MemberAction):
    """Remove what the tenant left in one region: instances, snapshots, volumes, VPC endpoint services.

    With `marks` nothing goes but the instances that carry them, with their volumes: nobody has released the account,
    and what else is there may be somebody's.
    """

    activity: ClassVar[str] = "aws.clean_region"
    result: ClassVar[type[Model] | None] = Cleaned
    start_to_close: ClassVar[timedelta] = timedelta(minutes=30)

    region: str
    marks: dict[str, str] = {}

    @property
    def slot(self) -> str:
        """Regions are cleaned side by side."""
        return f"{self.activity}/{self.region}"

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"terminate initialisation instances in {self.region}" if self.marks else f"clean {self.region}"

    def fold(self, world: CleanedWorld, result: Model | None) -> CleanedWorld:  # type: ignore[override]
        """The region is clean."""
        assert isinstance(result, Cleaned)  # noqa: S101
        return world.learn(cleaned={**world.known.cleaned, self.region: result.report})


class CleanGlobal(MemberAction):
    """Remove what has no region: S3 buckets with all versions, Route 53 hosted zones."""

    activity: ClassVar[str] = "aws.clean_global"
    result: ClassVar[type[Model] | None] = Cleaned
    start_to_close: ClassVar[timedelta] = timedelta(hours=2)

    region: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "clean S3 and Route 53"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """S3 and Route 53 are clean."""
        assert isinstance(result, Cleaned)  # noqa: S101
        return world.learn(cleaned={**world.known.cleaned, "global": result.report})
