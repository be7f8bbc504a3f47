"""The shapes of the control API under `/perdure/`; imports no moto, so that the client starts fast.

`*_propagation_seconds`, `latency_ms` and the delay of a `Fault` are real time. All other durations run on the
emulator's clock.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from localcloud.faults import Disturbance
from localcloud.ledger import Counter, SingleCall, most_frequent

PAYER_ACCOUNT_ID = "123456789012"
# The owner of Red Hat's images, from the replaced operator's ConfigMap; no other images exist here.
IMAGE_OWNER = "309956199498"
DEFAULT_ACCESS_KEY_ID = "AKIAPERDURELOCAL0000"
DEFAULT_SECRET_ACCESS_KEY = "perdure/local/deployment/secret/key/0000"  # noqa: S105 - opens nothing but the emulator

# Enabled in every account by default. https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html
DEFAULT_REGIONS = (
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "ca-central-1",
    "eu-central-1",
    "eu-north-1",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
)
# The opt-in regions of the same page.
DEFAULT_OPT_IN_REGIONS = (
    "af-south-1",
    "ap-east-1",
    "ap-south-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-7",
    "ca-west-1",
    "eu-central-2",
    "eu-south-1",
    "eu-south-2",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
)

Seconds = Annotated[float, Field(ge=0)]


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class QuotaOutcome(StrEnum):
    APPROVED = "APPROVED"
    CASE_CLOSED = "CASE_CLOSED"
    DENIED = "DENIED"
    NOT_APPROVED = "NOT_APPROVED"
    INVALID_REQUEST = "INVALID_REQUEST"


class AccountLimitAnswer(StrEnum):
    CONSTRAINT = "constraint"
    FAILURE = "failure"


class Config(Model):
    latency_ms: float = Field(default=0, ge=0, description="delay of every call in milliseconds")
    create_account_seconds: Seconds = Field(default=0, description="how long CreateAccount stays IN_PROGRESS")
    account_limit: int | None = Field(default=None, description="highest number of accounts, including the payer's")
    account_limit_answer: AccountLimitAnswer = AccountLimitAnswer.CONSTRAINT
    create_account_concurrency: int | None = Field(default=None, description="limit on pending CreateAccount requests")
    create_account_concurrency_error: str = "TooManyRequestsException"
    close_account_seconds: Seconds = Field(default=0, description="how long a closed account is PENDING_CLOSURE")
    close_account_quota: int | None = Field(default=None, description="limit on closures within 30 days")
    close_account_requests: int | None = Field(default=None, description="limit on pending closures")
    case_seconds: Seconds = Field(default=0, description="age at which a support case is resolved")
    case_limit: int | None = Field(default=None, description="open cases at which CreateCase is refused")
    quota_pending_seconds: Seconds = Field(default=0, description="how long a quota request is PENDING")
    quota_case_seconds: Seconds = Field(default=0, description="how long a quota request is CASE_OPENED")
    quota_outcome: QuotaOutcome = QuotaOutcome.APPROVED
    quota_outcomes: dict[str, QuotaOutcome] = Field(default_factory=dict, description="other outcomes, by quota code")
    quota_requests_open: int | None = Field(default=20, description="limit on an account's open quota requests")
    quota_requests_open_in_opt_in_region: int | None = Field(
        default=2, description="limit on an account's open quota requests in an opt-in region"
    )
    regions: tuple[str, ...] = Field(default=DEFAULT_REGIONS, description="regions enabled in every account")
    opt_in_regions: tuple[str, ...] = Field(default=DEFAULT_OPT_IN_REGIONS, description="regions disabled by default")
    region_enable_seconds: Seconds = Field(default=0, description="how long a region is ENABLING or DISABLING")
    activation_seconds: Seconds = Field(default=0, description="account age below which EC2 answers OptInRequired")
    verification_seconds: Seconds = Field(default=0, description="account age below which RunInstances is refused")
    verification_error: str = "PendingVerification"
    run_instances_seconds: Seconds = Field(default=0, description="how long an instance is pending")
    stop_instances_seconds: Seconds = Field(default=0, description="how long an instance is stopping")
    terminate_instances_seconds: Seconds = Field(default=0, description="how long an instance is shutting-down")
    spot_lead_seconds: Seconds = Field(
        default=120, description="how long after Spot's warning the instance is reclaimed"
    )
    event_seconds: Seconds = Field(default=0, description="how long an event is on its way to the queues")
    enforce_queue_policies: bool = Field(default=True, description="whether rules need the queue policy's permission")
    regions_without_t3_micro: tuple[str, ...] = ()
    key_propagation_seconds: Seconds = Field(default=0, description="real time until AWS knows a new access key")
    role_propagation_seconds: Seconds = Field(default=0, description="real age below which a role cannot be assumed")
    recent_calls: int = Field(default=500, ge=0, description="how many single calls the ledger keeps")


class FaultKind(StrEnum):
    BEFORE = "before"  # the connection is closed before any effect
    AFTER = "after"  # the effect happens, then the connection is closed: the answer is lost
    DELAY = "delay"  # answered late, or when the fault is removed; `late_answer` says whether the effect comes first
    THROTTLE = "throttle"  # the service's throttling error
    DENIED = "denied"  # the service's access-denied error
    ERROR = "error"  # any error code, without effect
    ERROR_AFTER = "error-after"  # any error code, although the effect happened
    ASYNC_FAILURE = "async-failure"  # CreateAccount is accepted and fails later with FailureReason `code`


class Fault(Disturbance):
    kind: FaultKind
    service: str = Field(
        default="*", description="as in the credential scope or boto3: ec2, organizations, servicequotas"
    )
    action: str = Field(default="*", description="a name, or a pattern with * and ?")
    account: str | None = Field(default=None, description="the account whose credentials sign the call")
    region: str | None = None
    containing: str | None = Field(default=None, description="text that the request's body or path has to contain")
    code: str | None = Field(default=None, description="error code, or FailureReason of an async-failure")
    message: str | None = None
    status: int | None = Field(default=None, description="HTTP status of an error")
    delay_seconds: Seconds = 0
    late_answer: bool = Field(default=True, description="True: a delay holds back only the answer, not the effect")


class ClockReading(Model):
    now: float
    speed: float


class ClockChange(Model):
    speed: float | None = Field(default=None, gt=0)
    advance_seconds: Seconds = 0


class CallCount(Counter):
    service: str
    action: str
    account: str
    region: str


class Call(SingleCall):
    """`named` are the instances and Auto Scaling groups that the call's parameters name."""

    service: str
    action: str
    account: str
    region: str
    error: str | None = None
    fault: str | None = None
    user_agent: str = ""
    named: tuple[str, ...] = ()


class Ledger(Model):
    since: float
    counts: tuple[CallCount, ...]
    recent: tuple[Call, ...] = ()

    def calls(self, service: str = "*", action: str = "*", account: str | None = None) -> int:
        return sum(c.count for c in self._matching(service, action, account))

    def errors(self, service: str = "*", action: str = "*", account: str | None = None) -> int:
        return sum(c.errors for c in self._matching(service, action, account))

    def total(self) -> int:
        return self.calls()

    def mutating(self) -> int:
        """The number of calls that may change state, successful or not. AssumeRole and dry runs do not count."""
        return sum(c.count for c in self.counts if c.mutating)

    def by_action(self) -> dict[str, int]:
        return most_frequent((f"{each.service}:{each.action}", each.count) for each in self.counts)

    def _matching(self, service: str, action: str, account: str | None) -> list[CallCount]:
        service = canonical_service(service)
        return [
            c
            for c in self.counts
            if service in ("*", c.service) and action in ("*", c.action) and account in (None, c.account)
        ]


class AccountRecord(Model):
    id: str
    name: str
    email: str
    status: str
    state: str
    parent: str
    created: float
    tags: dict[str, str]


class CreationRecord(Model):
    id: str
    name: str
    email: str
    state: str
    failure_reason: str | None
    account: str | None
    requested: float


class UnitRecord(Model):
    id: str
    name: str
    parent: str | None


class InstanceRecord(Model):
    account: str
    region: str
    id: str
    type: str
    image: str
    state: str
    tags: dict[str, str]


class ResourceRecord(Model):
    account: str
    region: str
    id: str


class KeyRecord(Model):
    account: str
    user: str
    id: str
    active: bool


class RoleRecord(Model):
    account: str
    name: str


class CustomerRequest(Model):
    """`account` has twelve digits; empty for a new account."""

    account: str = Field(default="", pattern=r"^(\d{12})?$")


class CustomerAccount(Model):
    account: str
    user: str
    access_key_id: str
    secret_access_key: str


class CaseRecord(Model):
    account: str
    id: str
    subject: str
    status: str
    created: float


class QuotaRequestRecord(Model):
    account: str
    region: str
    id: str
    service: str
    code: str
    desired: float
    status: str
    opened_at: float  # like `done_at`, an instant of the emulator's clock
    done_at: float


class RegionRecord(Model):
    account: str
    region: str
    enable: bool
    asked_at: float
    done_at: float


class World(Model):
    root: str
    accounts: tuple[AccountRecord, ...]
    creations: tuple[CreationRecord, ...]
    units: tuple[UnitRecord, ...]
    instances: tuple[InstanceRecord, ...]
    keys: tuple[KeyRecord, ...]
    users: tuple[RoleRecord, ...]
    roles: tuple[RoleRecord, ...]
    policies: tuple[RoleRecord, ...] = ()
    cases: tuple[CaseRecord, ...]
    quota_requests: tuple[QuotaRequestRecord, ...]
    opt_in_regions: tuple[RegionRecord, ...]
    buckets: tuple[ResourceRecord, ...]
    volumes: tuple[ResourceRecord, ...]
    snapshots: tuple[ResourceRecord, ...]
    hosted_zones: tuple[ResourceRecord, ...]
    endpoint_services: tuple[ResourceRecord, ...]

    def members(self) -> tuple[AccountRecord, ...]:
        return tuple(a for a in self.accounts if a.id != PAYER_ACCOUNT_ID)

    def account(self, account_id: str) -> AccountRecord:
        for record in self.accounts:
            if record.id == account_id:
                return record
        raise KeyError(account_id)


class Health(Model):
    status: str
    version: str
    payer_account: str
    access_key_id: str
    secret_access_key: str
    organization: str
    root: str
    accounts: int
    uptime_seconds: float
    saved_at: float | None
    warnings: tuple[str, ...]


class CaseChange(Model):
    resolve: str = Field(pattern="^(now|never|auto)$")


class ConfigFile(Model):
    config: dict[str, object] = Field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    clock: ClockChange | None = None


# From boto3's service names to the credential scope's, which the ledger uses.
_SERVICE_ALIASES = {"service-quotas": "servicequotas", "elb": "elasticloadbalancing", "elbv2": "elasticloadbalancing"}


def canonical_service(name: str) -> str:
    return _SERVICE_ALIASES.get(name, name)
