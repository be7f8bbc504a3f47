"""The account API with region opt-in, which moto lacks.

A request that contradicts a pending change of the same region is refused with ConflictException. If six changes of an
account are pending, a further one is refused with TooManyRequestsException
(https://docs.aws.amazon.com/accounts/latest/reference/API_EnableRegion.html, .../quotas.html). Only the management
account may name a member in `AccountId`.
"""

from __future__ import annotations

from typing import Any

import moto.account.urls as urls
from moto.account.responses import AccountResponse
from moto.core.responses import ActionResult, EmptyResult

from localcloud.aws import call, organizations, regions, runtime
from localcloud.aws.json_api import page_of, parameters_of
from localcloud.aws.regions import Choice, OptStatus
from localcloud.aws.wire import ErrorAnswer, Refusal

_MAX_UNDER_WAY = 6
_DEFAULT_PAGE = 50
_ENABLED = (OptStatus.ENABLED, OptStatus.ENABLED_BY_DEFAULT)
_UNDER_WAY = (OptStatus.ENABLING, OptStatus.DISABLING)


def install() -> None:
    paths = ("putAlternateContact", "getAlternateContact", "deleteAlternateContact")
    ours = ("getRegionOptStatus", "enableRegion", "disableRegion", "listRegions", "getContactInformation")
    urls.url_paths = {f"{{0}}/{path}$": PerdureAccountResponse.dispatch for path in (*paths, *ours)}


class PerdureAccountResponse(AccountResponse):
    def get_region_opt_status(self) -> ActionResult:
        account, region = self._account_and_region()
        return ActionResult({"RegionName": region, "RegionOptStatus": regions.status(account, region).value})

    def list_regions(self) -> ActionResult:
        account, parameters = self._subject(), self._parameters()
        wanted = parameters.get("RegionOptStatusContains") or [status.value for status in OptStatus]
        found = [
            {"RegionName": region, "RegionOptStatus": regions.status(account, region).value}
            for region in sorted(regions.known())
        ]
        found = [entry for entry in found if entry["RegionOptStatus"] in wanted]
        size = int(parameters.get("MaxResults") or _DEFAULT_PAGE)
        unreadable = _refusal("ValidationException", "The NextToken is invalid.", 400)
        page, following = page_of(found, size, parameters.get("NextToken"), unreadable)
        return ActionResult({"Regions": page, **({"NextToken": following} if following else {})})

    def enable_region(self) -> ActionResult:
        return self._choose(enable=True)

    def disable_region(self) -> ActionResult:
        return self._choose(enable=False)

    def _choose(self, *, enable: bool) -> ActionResult:
        account, region = self._account_and_region()
        status = regions.status(account, region)
        if status is OptStatus.ENABLED_BY_DEFAULT:
            if enable:
                return EmptyResult()
            raise _refusal("ValidationException", f"{region} is enabled by default and cannot be disabled.", 400)
        if (status is OptStatus.DISABLING) if enable else (status is OptStatus.ENABLING):
            raise _refusal("ConflictException", f"{region} is currently {status.value}.", 409)
        if status is (OptStatus.ENABLING if enable else OptStatus.DISABLING) or (status in _ENABLED) == enable:
            return EmptyResult()
        if sum(1 for r in regions.choices(account) if regions.status(account, r) in _UNDER_WAY) >= _MAX_UNDER_WAY:
            message = f"At most {_MAX_UNDER_WAY} region changes can be under way per account."
            raise _refusal("TooManyRequestsException", message, 429)
        now = runtime.clock.now()
        regions.choices(account)[region] = Choice(enable, now + runtime.config().region_enable_seconds, now)
        call.touch(account, "aws")
        return EmptyResult()

    def _subject(self) -> str:
        account = str(self._parameters().get("AccountId") or self.current_account)
        may_name_others = self.current_account == runtime.payer_account and organizations.exists(account)
        if account != self.current_account and not may_name_others:
            raise _refusal("AccessDeniedException", "Access denied for the account named.", 403)
        return account

    def _account_and_region(self) -> tuple[str, str]:
        region = str(self._parameters().get("RegionName") or "")
        if region not in regions.known():
            raise _refusal("ValidationException", f"{region or 'The region'} is not a region.", 400)
        return self._subject(), region

    def _parameters(self) -> dict[str, Any]:
        return parameters_of(self.body)


def _refusal(code: str, message: str, status: int) -> Refusal:
    return Refusal("account", ErrorAnswer(code, message, status))
