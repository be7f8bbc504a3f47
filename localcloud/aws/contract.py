"""The shapes of the control API under `/perdure/`: settings, faults, ledger, world, health.

Both sides import them: the server to answer, `control.Emulator` to ask. Nothing here knows moto, so that a test or a
benchmark that only steers the emulator does not pay for importing it.

Durations named `*_seconds` run on the emulator's clock, which `speed` makes faster; `latency_ms` and the delay of a
fault are real time, because they imitate a network.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from localcloud.faults import Disturbance

PAYER_ACCOUNT_ID = "123456789012"
# The owner of Red Hat's images, as the replaced operator's own ConfigMap has it; the only ones that there are.
IMAGE_OWNER = "309956199498"
DEFAULT_ACCESS_KEY_ID = "AKIAPERDURELOCAL0000"
DEFAULT_SECRET_ACCESS_KEY = "perdure/local/deployment/secret/key/0000"  # noqa: S105 - opens nothing but the emulator

# The regions that are enabled in every AWS account without being asked for.
# https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html
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
# The regions of the same page that an account has to opt in to.
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
    """A frozen shape that refuses names it does not know: a misspelt setting must not pass silently."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class QuotaOutcome(StrEnum):
    """How a request for a higher quota ends."""

    APPROVED = "APPROVED"
    CASE_CLOSED = "CASE_CLOSED"
    DENIED = "DENIED"
    NOT_APPROVED = "NOT_APPROVED"
    INVALID_REQUEST = "INVALID_REQUEST"


class AccountLimitAnswer(StrEnum):
    """How AWS says that the organization is full: at once, or as the outcome of an accepted request."""

    CONSTRAINT = "constraint"
    FAILURE = "failure"


class Config(Model):
    """Everything about the emulated AWS that a test may want otherwise; the defaults are quick and friendly."""

    latency_ms: float = Field(default=0, ge=0, description="added to every call")
    create_account_seconds: Seconds = Field(default=0, description="how long CreateAccount stays IN_PROGRESS")
    account_limit: int | None = Field(default=None, description="most accounts in the organization, the payer included")
    account_limit_answer: AccountLimitAnswer = AccountLimitAnswer.CONSTRAINT
    create_account_concurrency: int | None = Field(default=None, description="most CreateAccount requests in progress")
    create_account_concurrency_error: str = "TooManyRequestsException"
    close_account_seconds: Seconds = Field(default=0, description="how long a closed account is PENDING_CLOSURE")
    close_account_quota: int | None = Field(default=None, description="closures within 30 days")
    close_account_requests: int | None = Field(default=None, description="closures in progress at once")
    case_seconds: Seconds = Field(default=0, description="age at which a support case is resolved")
    case_limit: int | None = Field(default=None, description="open cases beyond which CreateCase is refused")
    quota_pending_seconds: Seconds = Field(default=0, description="how long a quota request is PENDING")
    quota_case_seconds: Seconds = Field(default=0, description="how long it is CASE_OPENED after that")
    quota_outcome: QuotaOutcome = QuotaOutcome.APPROVED
    quota_outcomes: dict[str, QuotaOutcome] = Field(default_factory=dict, description="by quota code")
    quota_requests_open: int | None = Field(default=20, description="most open quota requests of an account")
    quota_requests_open_in_opt_in_region: int | None = Field(default=2, description="the same in an opt-in region")
    regions: tuple[str, ...] = Field(default=DEFAULT_REGIONS, description="enabled in every account")
    opt_in_regions: tuple[str, ...] = Field(default=DEFAULT_OPT_IN_REGIONS, description="exist, have to be enabled")
    region_enable_seconds: Seconds = Field(default=0, description="how long a region is ENABLING or DISABLING")
    activation_seconds: Seconds = Field(default=0, description="age below which EC2 answers OptInRequired to all calls")
    verification_seconds: Seconds = Field(default=0, description="age below which RunInstances is refused")
    verification_error: str = "PendingVerification"
    run_instances_seconds: Seconds = Field(default=0, description="how long an instance is pending")
    stop_instances_seconds: Seconds = Field(default=0, description="how long an instance is stopping")
    terminate_instances_seconds: Seconds = Field(default=0, description="how long an instance is shutting-down")
    spot_lead_seconds: Seconds = Field(default=120, description="how long after Spot's warning the instance is taken")
    event_seconds: Seconds = Field(default=0, description="how long an event is on its way to the queues")
    enforce_queue_policies: bool = Field(default=True, description="events reach only queues that let their rule send")
    regions_without_t3_micro: tuple[str, ...] = ()
    key_propagation_seconds: Seconds = Field(default=0, description="age below which a new access key is unknown")
    role_propagation_seconds: Seconds = Field(default=0, description="age below which a new role cannot be assumed")
    recent_calls: int = Field(default=500, ge=0, description="how many single calls the ledger keeps")


class FaultKind(StrEnum):
    """What happens to a call that a fault matches."""

    BEFORE = "before"  # the connection is closed, nothing was done
    AFTER = "after"  # done, then the connection is closed: the answer is lost
    DELAY = "delay"  # answered late, or when the fault is lifted; `late_answer`: the effect comes before the wait
    THROTTLE = "throttle"  # the service's own throttling error
    DENIED = "denied"  # the service's own access-denied error
    ERROR = "error"  # any error code, before the effect
    ERROR_AFTER = "error-after"  # done, and answered with an error all the same
    ASYNC_FAILURE = "async-failure"  # CreateAccount is accepted and fails later with FailureReason `code`


class Fault(Disturbance):
    """A disturbance of some calls. Empty matchers match everything."""

    kind: FaultKind
    service: str = Field(
        default="*", description="as in the credential scope or boto3: ec2, organizations, servicequotas"
    )
    action: str = Field(default="*", description="a name, or a pattern with * and ?")
    account: str | None = Field(default=None, description="the account whose credentials sign the call")
    region: str | None = None
    containing: str | None = Field(default=None, description="text the request's body or path has to contain")
    code: str | None = Field(default=None, description="error code, or FailureReason of an async-failure")
    message: str | None = None
    status: int | None = Field(default=None, description="HTTP status of an error")
    delay_seconds: Seconds = 0
    late_answer: bool = Field(default=True, description="a delay holds back the answer, the effect has happened")


class ClockReading(Model):
    """The emulator's clock, which decides when accounts, cases, quotas and regions are done."""

    now: float
    speed: float


class ClockChange(Model):
    """A change of the clock: another speed from now on, or a leap ahead."""

    speed: float | None = Field(default=None, gt=0)
    advance_seconds: Seconds = 0


class CallCount(Model):
    """How often one account made one call in one region."""

    service: str
    action: str
    account: str
    region: str
    mutating: bool
    count: int
    errors: int
    lost: int


class Call(Model):
    """One call as the ledger remembers it. `status` is 0 where no answer was sent."""

    at: float
    seconds: float
    service: str
    action: str
    account: str
    region: str
    mutating: bool
    status: int
    error: str | None = None
    fault: str | None = None


class Ledger(Model):
    """The calls since the start or the last reset. Calls of the control API are not counted."""

    since: float
    counts: tuple[CallCount, ...]
    recent: tuple[Call, ...] = ()

    def calls(self, service: str = "*", action: str = "*", account: str | None = None) -> int:
        """How often `action` of `service` was called, by `account` if given."""
        return sum(c.count for c in self._matching(service, action, account))

    def errors(self, service: str = "*", action: str = "*", account: str | None = None) -> int:
        """How many of these calls were answered with an error."""
        return sum(c.errors for c in self._matching(service, action, account))

    def total(self) -> int:
        """All calls."""
        return self.calls()

    def mutating(self) -> int:
        """The calls that are made to change something, whether they did or not; AssumeRole and dry runs are none."""
        return sum(c.count for c in self.counts if c.mutating)

    def by_action(self) -> dict[str, int]:
        """Counts by `service:Action`, most frequent first."""
        totals: dict[str, int] = {}
        for count in self.counts:
            name = f"{count.service}:{count.action}"
            totals[name] = totals.get(name, 0) + count.count
        return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))

    def _matching(self, service: str, action: str, account: str | None) -> list[CallCount]:
        service = canonical_service(service)
        return [
            c
            for c in self.counts
            if service in ("*", c.service) and action in ("*", c.action) and account in (None, c.account)
        ]


class AccountRecord(Model):
    """An account of the organization."""

    id: str
    name: str
    email: str
    status: str
    state: str
    parent: str
    created: float
    tags: dict[str, str]


class CreationRecord(Model):
    """A CreateAccount request."""

    id: str
    name: str
    email: str
    state: str
    failure_reason: str | None
    account: str | None
    requested: float


class UnitRecord(Model):
    """An organizational unit, or the root."""

    id: str
    name: str
    parent: str | None


class InstanceRecord(Model):
    """An EC2 instance that exists: pending, running, stopping or stopped."""

    account: str
    region: str
    id: str
    type: str
    image: str
    state: str
    tags: dict[str, str]


class ResourceRecord(Model):
    """A volume, snapshot, bucket, hosted zone or endpoint service."""

    account: str
    region: str
    id: str


class KeyRecord(Model):
    """An access key of an IAM user; never its secret."""

    account: str
    user: str
    id: str
    active: bool


class RoleRecord(Model):
    """An IAM role, user, or policy of the account's own."""

    account: str
    name: str


class CustomerRequest(Model):
    """An account outside the organization: twelve digits, or "" for a new one."""

    account: str = Field(default="", pattern=r"^(\d{12})?$")


class CustomerAccount(Model):
    """An account outside the organization, with the key of its own administrator."""

    account: str
    user: str
    access_key_id: str
    secret_access_key: str


class CaseRecord(Model):
    """A support case."""

    account: str
    id: str
    subject: str
    status: str
    created: float


class QuotaRequestRecord(Model):
    """A request for a higher quota."""

    account: str
    region: str
    id: str
    service: str
    code: str
    desired: float
    status: str
    opened_at: float  # this and its end are instants of the emulator's clock
    done_at: float


class RegionRecord(Model):
    """The last change of an opt-in region of an account: asked for and done at instants of the emulator's clock."""

    account: str
    region: str
    enable: bool
    asked_at: float
    done_at: float


class World(Model):
    """What exists in the emulated cloud, told without a single counted call."""

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
        """The organization's accounts without the payer."""
        return tuple(a for a in self.accounts if a.id != PAYER_ACCOUNT_ID)

    def account(self, account_id: str) -> AccountRecord:
        """The account of that id.

        Raises:
            KeyError: there is none.
        """
        for record in self.accounts:
            if record.id == account_id:
                return record
        raise KeyError(account_id)


class Health(Model):
    """Whether the emulator serves, and what somebody who found it needs to use it."""

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
    """What becomes of a support case: resolved now, never, or as its age decides."""

    resolve: str = Field(pattern="^(now|never|auto)$")


class ConfigFile(Model):
    """The file of `--config`: settings, and faults that hold while the file names them."""

    config: dict[str, object] = Field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    clock: ClockChange | None = None


# boto3's name on the left, the name in the credential scope (which the ledger uses) on the right.
_SERVICE_ALIASES = {"service-quotas": "servicequotas", "elb": "elasticloadbalancing", "elbv2": "elasticloadbalancing"}


def canonical_service(name: str) -> str:
    """The name that ledger and faults use for a service, whichever of its names was given."""
    return _SERVICE_ALIASES.get(name, name)
