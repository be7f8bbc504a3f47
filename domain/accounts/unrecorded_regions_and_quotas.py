"""News: states of opt-in regions and quotas that are not in the Account's status yet.

The lifecycle's memory keeps an action's result until the observed status shows it. So the status, which people and
tools may change, stays authoritative.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.accounts.resources import AccountStatus, OptInRegion, ServiceQuota

ACCOUNT_WIDE = ""  # in place of a region

RegionNews = Mapping[str, str]
QuotaNews = Mapping[str, Mapping[str, ServiceQuota]]
Quotas = dict[str, dict[str, ServiceQuota]]


def quotas_of(status: AccountStatus) -> Quotas:
    everywhere = {ACCOUNT_WIDE: status.global_service_quotas} if status.global_service_quotas else {}
    regional = {region: status.regional_service_quotas[region] for region in sorted(status.regional_service_quotas)}
    return {**regional, **everywhere}


def with_quotas(status: AccountStatus, quotas: Quotas) -> AccountStatus:
    regional = {region: codes for region, codes in quotas.items() if region != ACCOUNT_WIDE}
    return status.model_copy(
        update={"regional_service_quotas": regional, "global_service_quotas": quotas.get(ACCOUNT_WIDE, {})}
    )


def with_news(status: AccountStatus, regions: RegionNews, quotas: QuotaNews) -> AccountStatus:
    opt_in = {name: OptInRegion(status=regions.get(name, has.status)) for name, has in status.opt_in_regions.items()}
    opt_in = {name: has for name, has in opt_in.items() if has.status}
    merged = {
        region: {code: _newer(quota, quotas.get(region, {}).get(code)) for code, quota in codes.items()}
        for region, codes in quotas_of(status).items()
    }
    return with_quotas(status.model_copy(update={"opt_in_regions": opt_in}), merged)


def _newer(shown: ServiceQuota, news: ServiceQuota | None) -> ServiceQuota:
    """An action's result `news` if it has the same wanted value as the status's quota `shown`; otherwise `shown`."""
    return news if news is not None and news.value == shown.value else shown


def still_unwritten(status: AccountStatus, regions: RegionNews, quotas: QuotaNews) -> dict[str, object]:
    """The results that the status does not show yet, by field of `AccountMemory`."""
    if not regions and not quotas:
        return {}
    shown = quotas_of(status)
    left = {
        region: {code: quota for code, quota in codes.items() if shown.get(region, {}).get(code) != quota}
        for region, codes in quotas.items()
    }
    listed = status.opt_in_regions
    # A region that AWS does not know is kept: no status shows it, and `wanted_regions` must leave it out.
    return {
        "opt_in_news": {
            name: state
            for name, state in regions.items()
            if not state or (name in listed and listed[name].status != state)
        },
        "quota_news": {region: codes for region, codes in left.items() if codes},
    }
