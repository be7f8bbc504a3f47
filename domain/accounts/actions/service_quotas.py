from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from domain.accounts.actions.account_access import MemberAction
from domain.accounts.observed import AccountWorld
from domain.accounts.resources import ServiceQuota
from domain.model import Model


class QuotaStatuses(Model):
    """The statuses by quota code: TODO, IN_PROGRESS, COMPLETED, DENIED, MANUAL_ACTION.

    `vcpus_asked`: the region's initialisation has an open vCPU request that `statuses` does not contain.
    """

    statuses: dict[str, str]
    vcpus_asked: bool = False


class RaiseQuotas(MemberAction):
    """Create missing quota requests in one region, and poll until the status of a quota changes."""

    activity: ClassVar[str] = "aws.raise_quotas"
    result: ClassVar[type[Model] | None] = QuotaStatuses
    renewable: ClassVar[bool] = True

    region: str  # empty for account-wide quotas
    quotas: dict[str, ServiceQuota]  # with their last statuses; AWS's limits allow an open request for each
    since: datetime | None = None  # refusals before this time are ignored
    vcpus_asked: bool = False  # the region's initialisation had an open request for vCPUs

    @property
    def slot(self) -> str:
        return f"{self.activity}/{self.region or 'global'}"

    @property
    def summary(self) -> str:
        if not self.quotas:
            return f"wait for the vCPU quota of {self.region}"
        return f"raise {len(self.quotas)} quotas {f'in {self.region}' if self.region else 'of the account'}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        assert isinstance(result, QuotaStatuses)  # noqa: S101 - the activity's type
        stand = {
            code: quota.model_copy(update={"status": result.statuses[code]})
            for code, quota in self.quotas.items()
            if code in result.statuses
        }
        before, requested = world.known.quota_news, {*world.known.vcpus_asked} - {self.region}
        return world.learn(
            quota_news={**before, self.region: {**before.get(self.region, {}), **stand}},
            vcpus_asked=tuple(sorted(requested | {self.region} if result.vcpus_asked else requested)),
        )
