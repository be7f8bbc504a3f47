"""Raising service quotas: one action for all quotas of a region."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from domain.accounts.actions.member import MemberAction
from domain.accounts.resources import ServiceQuota
from domain.accounts.worlds import AccountWorld
from domain.model import Model


class QuotaStatuses(Model):
    """How quotas stand by code: TODO, IN_PROGRESS, COMPLETED, DENIED, MANUAL_ACTION.

    `vcpus_asked` while the region's initialisation has a request open, for what is not among these codes.
    """

    statuses: dict[str, str]
    vcpus_asked: bool = False


class RaiseQuotas(MemberAction):
    """Look at the requests for higher quotas in one region, all in one list, and make those that are missing.

    `quotas` are those that may have an open request now, as they stood last; no request is made for any other. Ends
    when one stands otherwise; until then it looks again, by the server's retries. Refusals of AWS from before `since`
    do not count: somebody wants it tried again. `region` is empty for the account-wide quotas. `vcpus_asked` says that
    the request of the region's initialisation was open last: its end gives room to others.
    """

    activity: ClassVar[str] = "aws.raise_quotas"
    result: ClassVar[type[Model] | None] = QuotaStatuses
    renewable: ClassVar[bool] = True

    region: str
    quotas: dict[str, ServiceQuota]
    since: datetime | None = None
    vcpus_asked: bool = False

    @property
    def slot(self) -> str:
        """Regions are seen to side by side."""
        return f"{self.activity}/{self.region or 'global'}"

    @property
    def summary(self) -> str:
        """For the timeline."""
        if not self.quotas:
            return f"wait for the vCPU quota of {self.region}"
        return f"raise {len(self.quotas)} quotas {f'in {self.region}' if self.region else 'of the account'}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """How they stand now."""
        assert isinstance(result, QuotaStatuses)  # noqa: S101 - the activity's type
        stand = {
            code: quota.model_copy(update={"status": result.statuses[code]})
            for code, quota in self.quotas.items()
            if code in result.statuses
        }
        before, asked = world.known.quota_news, {*world.known.vcpus_asked} - {self.region}
        return world.learn(
            quota_news={**before, self.region: {**before.get(self.region, {}), **stand}},
            vcpus_asked=tuple(sorted(asked | {self.region} if result.vcpus_asked else asked)),
        )
