"""Service quotas: requests for higher quotas, and polling of AWS's decisions, which take minutes to days."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from activities import attempt
from activities.aws.session import Sessions
from domain.accounts.actions.service_quotas import QuotaStatuses, RaiseQuotas
from domain.accounts.quota_codes import SERVICE_OF, VCPUS
from domain.accounts.resources import ServiceQuota
from domain.accounts.service_quotas import COMPLETED, IN_PROGRESS, MANUAL_ACTION, QuotaRequest, outcomes
from engine.errors import Absent, ApiError, Conflict, Invalid, Pending

if TYPE_CHECKING:
    from mypy_boto3_service_quotas.client import ServiceQuotasClient

log = logging.getLogger(__name__)

_FULL = "QuotaExceededException"
_LONGEST_POLLS = 10


class _FullError(Exception):
    pass


def raise_quotas(sessions: Sessions, action: RaiseQuotas) -> QuotaStatuses:
    """Raises Pending until a status has changed."""
    member = sessions.member(action.account_id, action.partition, settle=attempt.SETTLING)
    client = member.service_quotas(action.region)
    history = [
        QuotaRequest(r.get("QuotaCode", ""), r.get("ServiceCode", ""), r["DesiredValue"], r["Status"], r["Created"])
        for page in client.get_paginator("list_requested_service_quota_change_history").paginate()
        for r in page["RequestedQuotas"]
    ]
    counted = outcomes(action.quotas, history, action.since)
    beside = bool(action.region) and VCPUS not in action.quotas
    vcpus_asked = beside and any(each.code == VCPUS and each.outcome == IN_PROGRESS for each in history)
    statuses = {code: quota.status for code, quota in action.quotas.items()}
    try:
        for code, quota in sorted(action.quotas.items()):
            statuses[code] = _requested(client, code, quota, counted.get(code, ""))
    except _FullError:
        pass  # AWS accepts no more open requests: the remaining quotas keep their status
    changed = any(statuses[code] != quota.status for code, quota in action.quotas.items())
    if not changed and vcpus_asked == action.vcpus_asked:
        where = action.region or "the whole account"
        delay = sessions.poll * min(attempt.number(), _LONGEST_POLLS)
        raise Pending(f"AWS is deciding on {len(statuses)} quotas of {where} in {action.account_id}", delay=delay)
    return QuotaStatuses(statuses=statuses, vcpus_asked=vcpus_asked)


def ask_for_vcpus(client: ServiceQuotasClient, wanted: int) -> bool:
    """Returns whether a request is open. A failure is only logged."""
    try:
        service = SERVICE_OF[VCPUS]
        value = client.get_service_quota(ServiceCode=service, QuotaCode=VCPUS)["Quota"]["Value"]
        if value >= wanted:
            return False
        client.request_service_quota_increase(ServiceCode=service, QuotaCode=VCPUS, DesiredValue=wanted)
    except Conflict:
        return True  # a request is open already
    except ApiError as error:
        log.warning("the request for %d vCPUs failed; the region is initialised without it: %s", wanted, error.message)
        return False
    return True


def _requested(client: ServiceQuotasClient, code: str, quota: ServiceQuota, outcome: str) -> str:
    if outcome in {IN_PROGRESS, COMPLETED}:
        return outcome
    service = SERVICE_OF.get(code)
    if service is None:
        return MANUAL_ACTION
    attempt.checkpoint()
    try:
        value = client.get_service_quota(ServiceCode=service, QuotaCode=code)["Quota"]["Value"]
    except Absent:
        return MANUAL_ACTION
    if value >= quota.value:
        return COMPLETED
    return outcome or _ask(client, service, code, quota.value)


def _ask(client: ServiceQuotasClient, service: str, code: str, value: int) -> str:
    try:
        client.request_service_quota_increase(ServiceCode=service, QuotaCode=code, DesiredValue=value)
    except Conflict:
        return IN_PROGRESS  # a request is open; if it is for another value, ours is made after it has ended
    except Absent:
        return MANUAL_ACTION
    except Invalid as error:
        if error.code == _FULL:
            raise _FullError from error
        return MANUAL_ACTION  # the quota is not adjustable, or cannot have this value
    return IN_PROGRESS
