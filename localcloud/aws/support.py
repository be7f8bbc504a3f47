"""AWS Support: cases stay open until they are resolved. In moto each DescribeCases changes their status.

Without `includeResolvedCases` the answer omits resolved cases, even those requested by id. An unknown id fails the
whole call (https://docs.aws.amazon.com/awssupport/latest/APIReference/API_DescribeCases.html).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import moto.support.urls as urls
from moto.moto_api._internal import mock_random
from moto.support.models import SupportBackend, support_backends
from moto.support.responses import SupportResponse

from localcloud.aws import call, runtime
from localcloud.aws.json_api import page_of, parameters_of
from localcloud.aws.wire import ErrorAnswer, Refusal

_REGION = "us-east-1"
_MAX_IDS = 100
_DEFAULT_PAGE = 100


def install() -> None:
    support_backends.backend = PerdureSupport
    urls.url_paths = {"{0}/$": PerdureSupportResponse.dispatch}


@dataclass
class Case:
    """`resolve_at` is a time of the emulator's clock; None if only a call resolves the case."""

    id: str
    display_id: str
    subject: str
    service_code: str
    category_code: str
    severity_code: str
    language: str
    body: str
    cc: list[str]
    created: float
    born_at: float
    resolve_at: float | None
    communications: list[tuple[float, str]] = field(default_factory=list)
    reopened: bool = False

    @property
    def status(self) -> str:
        if self.resolve_at is not None and runtime.clock.now() >= self.resolve_at:
            return "resolved"
        return "reopened" if self.reopened else "opened"

    def describe(self, *, with_communications: bool) -> dict[str, Any]:
        details: dict[str, Any] = {
            "caseId": self.id,
            "displayId": self.display_id,
            "subject": self.subject,
            "status": self.status,
            "serviceCode": self.service_code,
            "categoryCode": self.category_code,
            "severityCode": self.severity_code,
            "submittedBy": "operator@example.com",
            "timeCreated": _iso(self.created),
            "ccEmailAddresses": self.cc,
            "language": self.language,
        }
        if with_communications:
            details["recentCommunications"] = {
                "communications": [
                    {"caseId": self.id, "body": body, "submittedBy": "operator@example.com", "timeCreated": _iso(at)}
                    for at, body in reversed(self.communications[-5:])
                ]
            }
        return details


class PerdureSupport(SupportBackend):
    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.our_cases: dict[str, Case] = {}

    @property
    def _url_module(self) -> Any:
        return urls

    def open_case(self, parameters: dict[str, Any]) -> Case:
        settings = runtime.config()
        opened = sum(1 for case in self.our_cases.values() if case.status != "resolved")
        if settings.case_limit is not None and opened >= settings.case_limit:
            raise _refusal("CaseCreationLimitExceeded", "The case creation limit for the account has been exceeded.")
        now, created = runtime.clock.now(), datetime.now(UTC)
        suffix = "".join(mock_random.choice("0123456789abcdef") for _ in range(16))
        case = Case(
            id=f"case-{self.account_id}-muen-{created.year}-{suffix}",
            display_id=str(mock_random.randint(10**9, 10**10 - 1)),
            subject=parameters.get("subject", ""),
            service_code=parameters.get("serviceCode", "general-info"),
            category_code=parameters.get("categoryCode", "other"),
            severity_code=parameters.get("severityCode", "low"),
            language=parameters.get("language", "en"),
            body=parameters.get("communicationBody", ""),
            cc=parameters.get("ccEmailAddresses", []),
            created=created.timestamp(),
            born_at=now,
            resolve_at=now + settings.case_seconds,
        )
        case.communications.append((case.created, case.body))
        self.our_cases[case.id] = case
        return case

    def case(self, case_id: str) -> Case:
        if case_id not in self.our_cases:
            raise _refusal("CaseIdNotFound", f"Case not found: {case_id}")
        return self.our_cases[case_id]

    def find(self, parameters: dict[str, Any]) -> list[Case]:
        ids = parameters.get("caseIdList") or []
        if len(ids) > _MAX_IDS:
            raise _refusal("ValidationException", f"caseIdList must have at most {_MAX_IDS} entries.")
        found = [self.case(case_id) for case_id in ids] if ids else list(reversed(self.our_cases.values()))
        if parameters.get("displayId"):
            found = [case for case in found if case.display_id == parameters["displayId"]]
        after, before = _instant(parameters.get("afterTime")), _instant(parameters.get("beforeTime"))
        found = [c for c in found if (after is None or c.created >= after) and (before is None or c.created <= before)]
        if not parameters.get("includeResolvedCases", False):
            found = [case for case in found if case.status != "resolved"]
        return found


class PerdureSupportResponse(SupportResponse):
    @property
    def _ours(self) -> PerdureSupport:
        return cast(PerdureSupport, support_backends[self.current_account][_REGION])

    def create_case(self) -> str:
        parameters = self._parameters()
        for name in ("subject", "communicationBody"):
            if not parameters.get(name):
                raise _refusal("ValidationException", f"{name} is required.")
        return json.dumps({"caseId": self._ours.open_case(parameters).id})

    def describe_cases(self) -> str:
        parameters = self._parameters()
        size = int(parameters.get("maxResults") or _DEFAULT_PAGE)
        if not 10 <= size <= 100:
            raise _refusal("ValidationException", "maxResults must be between 10 and 100.")
        found = self._ours.find(parameters)
        unreadable = _refusal("ValidationException", "The nextToken is invalid.")
        page, following = page_of(found, size, parameters.get("nextToken"), unreadable)
        with_communications = parameters.get("includeCommunications", True)
        cases = [case.describe(with_communications=with_communications) for case in page]
        return json.dumps({"cases": cases, **({"nextToken": following} if following else {})})

    def resolve_case(self) -> str:
        case = self._ours.case(self._parameters().get("caseId", ""))
        initial = case.status
        case.resolve_at = runtime.clock.now()
        return json.dumps({"initialCaseStatus": initial, "finalCaseStatus": case.status})

    def add_communication_to_case(self) -> str:
        parameters = self._parameters()
        case = self._ours.case(parameters.get("caseId", ""))
        case.communications.append((datetime.now(UTC).timestamp(), parameters.get("communicationBody", "")))
        if case.status == "resolved":
            case.reopened = True
            case.resolve_at = runtime.clock.now() + runtime.config().case_seconds
        return json.dumps({"result": True})

    def describe_communications(self) -> str:
        case = self._ours.case(self._parameters().get("caseId", ""))
        details = case.describe(with_communications=True)
        return json.dumps({"communications": details["recentCommunications"]["communications"]})

    def _parameters(self) -> dict[str, Any]:
        return parameters_of(self.body)


def all_cases() -> list[tuple[str, Case]]:
    found: list[tuple[str, Case]] = []
    for account_id, regional in support_backends.items():
        for backend in dict.values(regional):
            found.extend((account_id, case) for case in cast(PerdureSupport, backend).our_cases.values())
    return found


def decide_case(case_id: str, resolve: str) -> Case | None:
    """Choose when a case is resolved: now, never, or auto (by age). Returns None if there is no such case."""
    for account_id, case in all_cases():
        if case.id == case_id:
            instants = {"now": runtime.clock.now(), "never": None, "auto": case.born_at + runtime.config().case_seconds}
            case.resolve_at = instants[resolve]
            call.touch(account_id, _REGION)
            call.mark_changed()
            return case
    return None


def _refusal(code: str, message: str) -> Refusal:
    return Refusal("support", ErrorAnswer(code, message))


def _iso(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _instant(text: str | None) -> float | None:
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise _refusal("ValidationException", f"Not a time: {text}") from None
    return parsed.replace(tzinfo=parsed.tzinfo or UTC).timestamp()
