"""Service quotas: requests for higher quotas, and polling of AWS's decisions, which take minutes to days.

AWS allows 20 open requests per account, two in an opt-in region, and one per quota
(https://docs.aws.amazon.com/servicequotas/latest/userguide/reference_limits.html).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from activities import attempt
from activities.aws.session import Sessions
from domain.accounts.actions.service_quotas import QuotaStatuses, RaiseQuotas
from domain.accounts.quota_codes import SERVICE_OF, VCPUS
from domain.accounts.resources import ServiceQuota
from domain.accounts.service_quotas import COMPLETED, DENIED, IN_PROGRESS, MANUAL_ACTION
from engine.errors import Absent, ApiError, Conflict, Invalid, Pending

if TYPE_CHECKING:
    from mypy_boto3_service_quotas.client import ServiceQuotasClient
    from mypy_boto3_service_quotas.type_defs import RequestedServiceQuotaChangeTypeDef

log = logging.getLogger(__name__)

_ENDS = {
    "APPROVED": COMPLETED,
    "CASE_CLOSED": COMPLETED,
    "DENIED": DENIED,
    "NOT_APPROVED": DENIED,
    "INVALID_REQUEST": MANUAL_ACTION,
}
_OPEN = frozenset({"PENDING", "CASE_OPENED"})
_REFUSALS = frozenset({"DENIED", "NOT_APPROVED", "INVALID_REQUEST"})
_FULL = "QuotaExceededException"
_LONGEST_POLLS = 10


class _FullError(Exception):
    pass


def raise_quotas(sessions: Sessions, action: RaiseQuotas) -> QuotaStatuses:
    """Make the requests that are missing. Raises Pending until a status has changed."""
    member = sessions.member(action.account_id, action.partition, settle=attempt.SETTLING)
    client = member.service_quotas(action.region)
    requests, vcpus_asked = _requests(client, action)
    statuses = {code: quota.status for code, quota in action.quotas.items()}
    try:
        for code, quota in sorted(action.quotas.items()):
            statuses[code] = _requested(client, code, quota, requests.get(code))
    except _FullError:
        pass  # further quotas keep their status
    changed = any(statuses[code] != quota.status for code, quota in action.quotas.items())
    if not changed and vcpus_asked == action.vcpus_asked:
        where = action.region or "the whole account"
        delay = sessions.poll * min(attempt.number(), _LONGEST_POLLS)
        raise Pending(f"AWS decides on {len(statuses)} quotas of {where} in {action.account_id}", delay=delay)
    return QuotaStatuses(statuses=statuses, vcpus_asked=vcpus_asked)


def ask_for_vcpus(client: ServiceQuotasClient, wanted: int) -> bool:
    """Request the vCPUs. Returns whether a request is open. A failure is only logged."""
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


def _requested(client: ServiceQuotasClient, code: str, quota: ServiceQuota, status: str | None) -> str:
    if status in _OPEN:
        return IN_PROGRESS
    ended = _ENDS.get(status or "")
    if ended == COMPLETED:
        return ended
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
    return ended or _ask(client, service, code, quota.value)


def _ask(client: ServiceQuotasClient, service: str, code: str, value: int) -> str:
    try:
        client.request_service_quota_increase(ServiceCode=service, QuotaCode=code, DesiredValue=value)
    except Conflict:
        return IN_PROGRESS  # a request is open; if it is for another value, that is handled when it has ended
    except Absent:
        return MANUAL_ACTION
    except Invalid as error:
        if error.code == _FULL:
            raise _FullError from error
        return MANUAL_ACTION  # not adjustable, or no such value
    return IN_PROGRESS


def _requests(client: ServiceQuotasClient, action: RaiseQuotas) -> tuple[Mapping[str, str], bool]:
    """By quota, the status of the request that counts: an open one, else the newest for the wanted value. Also whether
    a vCPU request is open that `action.quotas` does not contain.
    """
    found: dict[str, RequestedServiceQuotaChangeTypeDef] = {}
    vcpus_asked = False
    for page in client.get_paginator("list_requested_service_quota_change_history").paginate():
        for request in page["RequestedQuotas"]:
            code = request.get("QuotaCode", "")
            quota = action.quotas.get(code)
            if quota is None and code == VCPUS and action.region:
                vcpus_asked = vcpus_asked or request["Status"] in _OPEN
            if quota is None or request.get("ServiceCode") != SERVICE_OF.get(code):
                continue
            if _counts(request, quota, action.since) and _rank(request) > _rank(found.get(code)):
                found[code] = request
    return {code: request["Status"] for code, request in found.items()}, vcpus_asked


def _counts(request: RequestedServiceQuotaChangeTypeDef, quota: ServiceQuota, since: datetime | None) -> bool:
    if request["Status"] in _OPEN:
        return True
    if request["DesiredValue"] != quota.value:
        return False
    old = since is not None and request["Created"] < since
    return not (old and request["Status"] in _REFUSALS)


def _rank(request: RequestedServiceQuotaChangeTypeDef | None) -> tuple[bool, float]:
    if request is None:
        return (False, 0.0)
    return (request["Status"] in _OPEN, request["Created"].timestamp())
