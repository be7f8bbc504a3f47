"""Quotas that AccountPools can raise (moto has only VPC's), and requests to raise them (docs/emulator.md).

A second open request for a quota is refused with ResourceAlreadyExistsException
(https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_RequestServiceQuotaIncrease.html). If too many
are open, a new one is refused with QuotaExceededException
(https://docs.aws.amazon.com/servicequotas/latest/userguide/reference_limits.html).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast
from uuid import uuid4

import moto.servicequotas.urls as urls
from moto.servicequotas.models import ServiceQuotasBackend, servicequotas_backends
from moto.servicequotas.resources.default_quotas.vpc import VPC_DEFAULT_QUOTAS
from moto.servicequotas.responses import ServiceQuotasResponse

from localcloud.aws import runtime
from localcloud.aws.contract import QuotaOutcome
from localcloud.aws.json_api import page_of, parameters_of
from localcloud.aws.wire import ErrorAnswer, Refusal

_OPEN = ("PENDING", "CASE_OPENED")
_MAX_PAGE = 100


class Quota(NamedTuple):
    service: str
    service_name: str
    code: str
    name: str
    value: float
    is_global: bool = False


# The quotas that AccountPools can raise, with the defaults that AWS documents for a new account.
# https://docs.aws.amazon.com/general/latest/gr/aws-service-information.html
_VPC = "Amazon Virtual Private Cloud (Amazon VPC)"
_EC2 = "Amazon Elastic Compute Cloud (Amazon EC2)"
_ELB = "Elastic Load Balancing"
_EBS = "Amazon Elastic Block Store (Amazon EBS)"
_IAM = "AWS Identity and Access Management (IAM)"
QUOTAS = {
    (quota.service, quota.code): quota
    for quota in (
        Quota("vpc", _VPC, "L-0EA8095F", "Inbound or outbound rules per security group", 60),
        Quota("vpc", _VPC, "L-2AEEBF1A", "Rules per network ACL", 20),
        Quota("ec2", _EC2, "L-1216C47A", "Running On-Demand Standard instances", 5),
        Quota("ec2", _EC2, "L-0263D0A3", "EC2-VPC Elastic IPs", 5),
        Quota("elasticloadbalancing", _ELB, "L-69A177A2", "Network Load Balancers per Region", 50),
        Quota("ebs", _EBS, "L-7A658B76", "Storage for gp3 volumes, in TiB", 50),
        Quota("vpc", _VPC, "L-F678F1CE", "VPCs per Region", 5),
        Quota("vpc", _VPC, "L-A4707A72", "Internet gateways per Region", 5),
        Quota("vpc", _VPC, "L-FE5A380F", "NAT gateways per Availability Zone", 5),
        Quota("vpc", _VPC, "L-DF5E4CA3", "Network interfaces per Region", 5000),
        Quota("vpc", _VPC, "L-E79EC296", "VPC security groups per Region", 2500),
        Quota("vpc", _VPC, "L-407747CB", "Subnets per VPC", 200),
        Quota("vpc", _VPC, "L-29B6F2EB", "Interface VPC endpoints per VPC", 50),
        Quota("vpc", _VPC, "L-1B52E74A", "Gateway VPC endpoints per Region", 20),
        Quota("elasticloadbalancing", _ELB, "L-53DA6B97", "Application Load Balancers per Region", 50),
        Quota("elasticloadbalancing", _ELB, "L-E9E9831D", "Classic Load Balancers per Region", 20),
        Quota("ebs", _EBS, "L-D18FCD1D", "Storage for gp2 volumes, in TiB", 50),
        Quota("iam", _IAM, "L-FE177D64", "Roles per account", 1000, is_global=True),
    )
}


def install() -> None:
    servicequotas_backends.backend = PerdureServiceQuotas
    urls.url_paths = {"{0}/$": PerdureServiceQuotasResponse.dispatch}


@dataclass
class QuotaRequest:
    """Times are those of the emulator's clock, except `created`, which is real time."""

    id: str
    quota: Quota
    desired: float
    created: float
    case_from: float
    done_at: float
    outcome: QuotaOutcome
    opened_at: float = 0

    @property
    def is_open(self) -> bool:
        return runtime.clock.now() < self.done_at

    @property
    def status(self) -> str:
        now = runtime.clock.now()
        if now >= self.done_at:
            return self.outcome.value
        return "CASE_OPENED" if now >= self.case_from else "PENDING"


class PerdureServiceQuotas(ServiceQuotasBackend):
    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.requests: dict[str, QuotaRequest] = {}

    @property
    def _url_module(self) -> Any:
        return urls

    def value_of(self, quota: Quota) -> float:
        approved = [r.desired for r in self._requests_for(quota) if r.status == "APPROVED"]
        return max([quota.value, *approved])

    def request(self, quota: Quota, desired: float) -> QuotaRequest:
        if any(r.status in _OPEN for r in self._requests_for(quota)):
            message = "Only one open service quota increase request is allowed per quota."
            raise _refusal("ResourceAlreadyExistsException", message)
        if desired <= self.value_of(quota):
            raise _refusal("IllegalArgumentException", "You must provide a quota value greater than the current value.")
        self._refuse_too_many()
        settings, now = runtime.config(), runtime.clock.now()
        case_from = now + settings.quota_pending_seconds
        request = QuotaRequest(
            id=uuid4().hex + uuid4().hex[:8],
            quota=quota,
            desired=desired,
            created=time.time(),
            case_from=case_from,
            done_at=case_from + settings.quota_case_seconds,
            outcome=settings.quota_outcomes.get(quota.code, settings.quota_outcome),
            opened_at=now,
        )
        self.requests[request.id] = request
        self._recent().append(request)
        return request

    def open_requests(self) -> int:
        recent = self._recent()
        recent[:] = [each for each in recent if each.is_open]
        return len(recent)

    def _recent(self) -> list[QuotaRequest]:
        return cast(list[QuotaRequest], self.__dict__.setdefault("recent", list(self.requests.values())))

    def _refuse_too_many(self) -> None:
        settings = runtime.config()
        everywhere = dict.values(servicequotas_backends[self.account_id])
        most, here = settings.quota_requests_open, settings.quota_requests_open_in_opt_in_region
        if most is not None and sum(cast(PerdureServiceQuotas, each).open_requests() for each in everywhere) >= most:
            raise _refusal("QuotaExceededException", f"An account may have {most} open requests.")
        opt_in = self.region_name not in settings.regions
        if opt_in and here is not None and self.open_requests() >= here:
            raise _refusal("QuotaExceededException", f"An opt-in Region may have {here} open requests.")

    def history(self, parameters: dict[str, Any]) -> list[QuotaRequest]:
        return [
            r
            for r in self.requests.values()
            if parameters.get("ServiceCode") in (None, r.quota.service)
            and parameters.get("QuotaCode") in (None, r.quota.code)
            and parameters.get("Status") in (None, r.status)
        ]

    def _requests_for(self, quota: Quota) -> Iterable[QuotaRequest]:
        return (r for r in self.requests.values() if r.quota.service == quota.service and r.quota.code == quota.code)


class PerdureServiceQuotasResponse(ServiceQuotasResponse):
    @property
    def _ours(self) -> PerdureServiceQuotas:
        return cast(PerdureServiceQuotas, self.backend)

    def get_service_quota(self) -> str:
        quota = self._quota()
        return json.dumps({"Quota": self._describe_quota(quota, self._ours.value_of(quota))})

    def get_aws_default_service_quota(self) -> str:
        quota = self._quota()
        return json.dumps({"Quota": self._describe_quota(quota, quota.value)})

    def list_service_quotas(self) -> str:
        service = self._parameters().get("ServiceCode")
        quotas = [quota for quota in QUOTAS.values() if quota.service == service and self._serves(quota)]
        if not quotas:
            raise _no_such()
        return self._page("Quotas", [self._describe_quota(q, self._ours.value_of(q)) for q in quotas])

    def request_service_quota_increase(self) -> str:
        request = self._ours.request(self._quota(), float(self._parameters().get("DesiredValue", 0)))
        return json.dumps({"RequestedQuota": self._describe_request(request, opened=True)})

    def get_requested_service_quota_change(self) -> str:
        request = self._ours.requests.get(self._parameters().get("RequestId", ""))
        if request is None:
            raise _no_such()
        return json.dumps({"RequestedQuota": self._describe_request(request)})

    def list_requested_service_quota_change_history(self) -> str:
        found = self._ours.history(self._parameters())
        return self._page("RequestedQuotas", [self._describe_request(r) for r in found])

    def list_requested_service_quota_change_history_by_quota(self) -> str:
        self._quota()
        return self.list_requested_service_quota_change_history()

    def _parameters(self) -> dict[str, Any]:
        return parameters_of(self.body)

    def _quota(self) -> Quota:
        parameters = self._parameters()
        service, code = parameters.get("ServiceCode", ""), parameters.get("QuotaCode", "")
        quota = QUOTAS.get((service, code)) or _from_moto(service, code)
        if quota is None or not self._serves(quota):
            raise _no_such()
        return quota

    def _serves(self, quota: Quota) -> bool:
        return not quota.is_global or self.region == "us-east-1"

    def _describe_quota(self, quota: Quota, value: float) -> dict[str, Any]:
        return {
            "ServiceCode": quota.service,
            "ServiceName": quota.service_name,
            "QuotaArn": self._arn(quota),
            "QuotaCode": quota.code,
            "QuotaName": quota.name,
            "Value": value,
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": quota.is_global,
        }

    def _describe_request(self, request: QuotaRequest, *, opened: bool = False) -> dict[str, Any]:
        quota = request.quota
        status = "PENDING" if opened else request.status
        described: dict[str, Any] = {
            "Id": request.id,
            "ServiceCode": quota.service,
            "ServiceName": quota.service_name,
            "QuotaCode": quota.code,
            "QuotaName": quota.name,
            "DesiredValue": request.desired,
            "Status": status,
            "Created": request.created,
            "LastUpdated": request.created,
            "QuotaArn": self._arn(quota),
            "GlobalQuota": quota.is_global,
            "Unit": "None",
        }
        if status != "PENDING":
            described["CaseId"] = str(int(request.id[:9], 16))
        return described

    def _arn(self, quota: Quota) -> str:
        region = "" if quota.is_global else self.region
        return f"arn:aws:servicequotas:{region}:{self.current_account}:{quota.service}/{quota.code}"

    def _page(self, name: str, entries: list[dict[str, Any]]) -> str:
        parameters = self._parameters()
        size = int(parameters.get("MaxResults") or _MAX_PAGE)
        if not 1 <= size <= _MAX_PAGE:
            raise _refusal("IllegalArgumentException", f"MaxResults must be between 1 and {_MAX_PAGE}.")
        unreadable = _refusal("InvalidPaginationTokenException", "Invalid input was provided.")
        page, following = page_of(entries, size, parameters.get("NextToken"), unreadable)
        return json.dumps({name: page, **({"NextToken": following} if following else {})})


def _from_moto(service: str, code: str) -> Quota | None:
    if service == "vpc":
        for entry in cast(list[dict[str, Any]], VPC_DEFAULT_QUOTAS):
            if entry["QuotaCode"] == code:
                return Quota(service, entry["ServiceName"], code, entry["QuotaName"], float(entry["Value"]))
    return None


def _no_such() -> Refusal:
    return _refusal("NoSuchResourceException", "The specified resource does not exist.")


def _refusal(code: str, message: str) -> Refusal:
    return Refusal("servicequotas", ErrorAnswer(code, message))
