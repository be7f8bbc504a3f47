"""Callers of AWS: the payer, with the keys of its Secret, and member accounts, which the payer enters by AssumeRole.

The payer's own account, the ConfigMap's `payer-account-ids` and the accounts that the settings protect are never
entered.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

from botocore.credentials import ReadOnlyCredentials

from activities import attempt
from activities.aws.call_limits import Guard
from activities.aws.clients import Caller, Clients, held
from domain.accounts import arns
from domain.accounts.config import OperatorConfig, parse_config
from domain.accounts.constants import (
    ACCESS_ROLE,
    CONFIG_MAP,
    NO_ACCOUNT_ID,
    OPERATOR_NAMESPACE,
    PAYER_SECRET,
    PROTECTED,
    ROLE_SESSION_NAME,
)
from domain.model import Model
from engine import worker_slots
from engine.errors import Absent, Denied, Invalid
from engine.kube import CONFIG_MAP as CONFIG_MAP_KIND
from engine.kube import SECRET, BlockingKube
from engine.kube.secrets import secret_content
from engine.settings import Settings

if TYPE_CHECKING:
    from mypy_boto3_account.client import AccountClient
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_iam.client import IAMClient
    from mypy_boto3_iam.type_defs import TagTypeDef
    from mypy_boto3_organizations.client import OrganizationsClient
    from mypy_boto3_route53.client import Route53Client
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_service_quotas.client import ServiceQuotasClient
    from mypy_boto3_sts.client import STSClient
    from mypy_boto3_sts.type_defs import AssumeRoleRequestTypeDef
    from mypy_boto3_support.client import SupportClient

T = TypeVar("T")

NO_CREDENTIALS = "NoCredentials"

# The regions of the endpoints used for global services (IAM, Organizations, Route 53, Support) and for STS. Sessions of
# a regional STS endpoint are valid in every region, unlike those of the global one.
DEFAULT_REGIONS = {
    "aws": "us-east-1",
    "aws-us-gov": "us-gov-east-1",
    "aws-cn": "cn-north-1",
    "aws-eusc": "eusc-de-east-1",
    "aws-iso": "us-iso-east-1",
    "aws-iso-b": "us-isob-east-1",
    "aws-iso-e": "eu-isoe-west-1",
    "aws-iso-f": "us-isof-south-1",
}

SESSION_SECONDS = 3600
# Far fewer than the concurrent AWS activities, so that one account cannot block all of them.
CALLS_PER_ACCOUNT = 24
_RENEWED_BEFORE_SECONDS = 300
_REREAD_SECONDS = 60.0
_ACCOUNT_ID = re.compile(r"\d{12}")


class Identity(Model):
    account_id: str
    arn: str


class Services(Caller):
    """A caller's typed clients. Clients of global services are in the partition's default region."""

    @property
    def default_region(self) -> str:
        return DEFAULT_REGIONS.get(self.partition, "us-east-1")

    def ec2(self, region: str) -> EC2Client:
        return cast("EC2Client", self.client("ec2", region))

    def s3(self, region: str = "") -> S3Client:
        return cast("S3Client", self.client("s3", region or self.default_region))

    def service_quotas(self, region: str = "") -> ServiceQuotasClient:
        """Account-wide quotas are in the default region."""
        return cast("ServiceQuotasClient", self.client("service-quotas", region or self.default_region))

    def account(self) -> AccountClient:
        return cast("AccountClient", self.client("account", self.default_region))

    def iam(self) -> IAMClient:
        return cast("IAMClient", self.client("iam", self.default_region))

    def route53(self) -> Route53Client:
        return cast("Route53Client", self.client("route53", self.default_region))

    def organizations(self) -> OrganizationsClient:
        return cast("OrganizationsClient", self.client("organizations", self.default_region))

    def support(self) -> SupportClient:
        return cast("SupportClient", self.client("support", self.default_region))

    def sts(self) -> STSClient:
        return cast("STSClient", self.client("sts", self.default_region))

    def assume_role(self, role: str, session: str, external_id: str = "") -> tuple[str, ReadOnlyCredentials]:
        """Returns the session's ARN and keys, which are valid for an hour."""
        request: AssumeRoleRequestTypeDef = {
            "RoleArn": role,
            "RoleSessionName": session,
            "DurationSeconds": SESSION_SECONDS,
        }
        if external_id:
            request["ExternalId"] = external_id
        answer = self.sts().assume_role(**request)
        keys = answer["Credentials"]
        credential = ReadOnlyCredentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        return answer["AssumedRoleUser"]["Arn"], credential

    def ask_identity(self) -> Identity:
        answer = self.sts().get_caller_identity()
        return Identity(account_id=answer["Account"], arn=answer["Arn"])


class KeyHolder(Services):
    keys: Remembered[ReadOnlyCredentials]

    def credential(self) -> ReadOnlyCredentials:
        return self.keys.value()

    def refused(self, credential: ReadOnlyCredentials, error: Denied) -> bool:
        self.keys.forget(credential)
        return self.keys.value() != credential


class Payer(KeyHolder):
    def __init__(
        self, clients: Clients, keys: Remembered[ReadOnlyCredentials], *, partition: str, observing: bool
    ) -> None:
        super().__init__(clients, "the payer", partition=partition, observing=observing)
        self.keys = keys
        self._lock = threading.Lock()
        self._identities: dict[str, Identity] = {}

    def identity(self) -> Identity:
        key = str(self.credential().access_key)
        with held(self._lock, "the payer's identity"):
            if key not in self._identities:
                self._identities = {key: self.ask_identity()}
            return self._identities[key]


class Assumed(Services):
    """Clients with the session of a role, which is renewed five minutes before its end."""

    def __init__(self, clients: Clients, name: str, *, partition: str, observing: bool) -> None:
        super().__init__(clients, name, partition=partition, observing=observing)
        self._lock = threading.Lock()
        self._credential: ReadOnlyCredentials | None = None
        self._renew_at = 0.0

    def assume(self) -> ReadOnlyCredentials:
        raise NotImplementedError

    def credential(self) -> ReadOnlyCredentials:
        with held(self._lock, f"entering account {self}"):
            if self._credential is None or time.monotonic() >= self._renew_at:
                self._credential = self.assume()
                self._renew_at = time.monotonic() + SESSION_SECONDS - _RENEWED_BEFORE_SECONDS
            return self._credential

    def refused(self, credential: ReadOnlyCredentials, error: Denied) -> bool:
        with held(self._lock, f"entering account {self}"):
            if self._credential is credential:
                self._credential = None
        return error.code.startswith("Expired") or error.code == "RequestExpired"


def require_account(arn: str, account_id: str, by: str, remedy: str) -> None:
    """Raise `Denied` if the ARN belongs to another account. `by` is the role or key that gave the session."""
    if arn.split(":")[4:5] != [account_id]:
        raise Denied(
            f"{by} gave a session as {arn}, not in account {account_id}: nothing is done with this session. {remedy}",
            code="IdentityMismatch",
        )


class Member(Assumed):
    """A member account, entered by `role`. The default is the role in every account that CreateAccount makes."""

    session_name: ClassVar[str] = ROLE_SESSION_NAME
    role: str = ACCESS_ROLE

    def __init__(
        self, clients: Clients, payer: Payer, account_id: str, *, partition: str, observing: bool, most_calls: int
    ) -> None:
        super().__init__(clients, account_id, partition=partition, observing=observing)
        self.account_id = account_id
        self._guard = Guard(f"account {account_id}", most_calls)
        self._payer = payer
        self._confirmed: ReadOnlyCredentials | None = None

    @property
    def role_arn(self) -> str:
        return arns.role_arn(self.partition, self.account_id, self.role)

    def guarded(self) -> AbstractContextManager[None]:
        return self._guard.calling()

    def enter(self) -> None:
        with self.guarded():
            self.credential()

    def confirm(self) -> None:
        """Check with AWS, once per session, that the session is in this account."""
        credential = self.credential()
        if self._confirmed is credential:
            return
        self._check(self.ask_identity().arn)
        self._confirmed = credential

    def assume(self) -> ReadOnlyCredentials:
        arn, credential = self._payer.assume_role(self.role_arn, self.session_name)
        self._check(arn)
        return credential

    def _check(self, arn: str) -> None:
        require_account(arn, self.account_id, self.role_arn, "Check which endpoint answers requests to AWS.")


M = TypeVar("M", bound=Member)


class Remembered(Generic[T]):
    """A value that is read again after a minute; failures are not remembered."""

    def __init__(self, what: str, read: Callable[[], T]) -> None:
        self._what = what
        self._read = read
        self._lock = threading.Lock()
        self._value: T | None = None
        self._stale_at = 0.0

    def value(self) -> T:
        with held(self._lock, self._what):
            if self._value is None or time.monotonic() >= self._stale_at:
                self._value = self._read()
                self._stale_at = time.monotonic() + _REREAD_SECONDS
            return self._value

    def forget(self, value: T) -> None:
        with held(self._lock, self._what):
            if self._value == value:
                self._value = None


class Sessions:
    def __init__(
        self, kube: BlockingKube, settings: Settings, *, most: int = 4096, most_calls: int = CALLS_PER_ACCOUNT
    ) -> None:
        self.kube = kube
        self.observing = settings.observing
        self.poll = settings.accounts_poll
        self._most_calls = most_calls
        self._protected = frozenset(settings.accounts_protected)
        self._most = most
        self.clients = Clients(connections=worker_slots.AWS + worker_slots.ORGANIZATION)
        self._keys = Remembered(f"Secret {PAYER_SECRET}", self._read_keys)
        self._config = Remembered(f"ConfigMap {CONFIG_MAP}", self._read_config)
        self._lock = threading.Lock()
        self._payers: dict[str, Payer] = {}
        self._members: OrderedDict[tuple[str, Hashable], Member] = OrderedDict()

    def payer(self) -> Payer:
        partition = self._config.value().partition
        with self._lock:
            if partition not in self._payers:
                self._payers[partition] = Payer(self.clients, self._keys, partition=partition, observing=self.observing)
            return self._payers[partition]

    def organizations(self) -> OrganizationsClient:
        return self.payer().organizations()

    def member(self, account_id: str, partition: str = "aws", *, settle: timedelta = timedelta()) -> Member:
        """Enter a member account.

        Raises:
            Unavailable: AWS refuses the role less than `settle` after the action began: the account may be new.
            Denied: the account is protected, or AWS refuses the role later than that.
            Throttled: see `CallGuard`.
        """
        return self.enter(account_id, partition, lambda: self.make(Member, account_id, partition), settle=settle)

    def confirmed(self, account_id: str, partition: str) -> Member:
        """Enter a member account, and check with AWS that the session is in it."""
        member = self.member(account_id, partition)
        member.confirm()
        return member

    def enter(
        self, account_id: str, way: Hashable, make: Callable[[], Member], *, settle: timedelta = timedelta()
    ) -> Member:
        """`way` identifies how the account is entered. Calls with the same account and `way` share one Member."""
        self.refuse_protected(account_id)
        member = self._known((account_id, way), make)
        try:
            member.enter()
        except Denied as error:
            raise attempt.settling(error, settle) if settle else error from error.__cause__
        return member

    def make(self, kind: type[M], account_id: str, partition: str) -> M:
        return kind(
            self.clients,
            self.payer(),
            account_id,
            partition=partition,
            observing=self.observing,
            most_calls=self._most_calls,
        )

    def config(self) -> OperatorConfig:
        return self._config.value()

    def refuse_protected(self, account_id: str) -> None:
        """Raise Denied for payer and protected accounts, Invalid for a malformed id."""
        if not _ACCOUNT_ID.fullmatch(account_id):
            raise Invalid(f"{account_id!r} is not an AWS account id, which has twelve digits", code=NO_ACCOUNT_ID)
        if account_id in self.protected():
            raise Denied(
                f"account {account_id} is protected (the payer itself, payer-account-ids of ConfigMap {CONFIG_MAP}, or "
                "PERDURE_ACCOUNTS_PROTECTED): nothing is done in it",
                code=PROTECTED,
            )

    def protected(self) -> frozenset[str]:
        return self._protected | {*self._config.value().payer_account_ids, self.payer().identity().account_id}

    def _known(self, key: tuple[str, Hashable], make: Callable[[], Member]) -> Member:
        with self._lock:
            known = self._members.get(key)
        made = known or make()
        with self._lock:
            member = self._members.setdefault(key, made)
            self._members.move_to_end(key)
            while len(self._members) > self._most:
                self._members.popitem(last=False)
        return member

    def _read_config(self) -> OperatorConfig:
        try:
            found = self.kube.get(CONFIG_MAP_KIND, OPERATOR_NAMESPACE, CONFIG_MAP)
        except Absent:
            return parse_config(None)
        content = found.get("data")
        return parse_config(content if isinstance(content, dict) else {})

    def _read_keys(self) -> ReadOnlyCredentials:
        return keys_in(self.kube, OPERATOR_NAMESPACE, PAYER_SECRET, "the payer's keys")


def keys_in(kube: BlockingKube, namespace: str, name: str, whose: str) -> ReadOnlyCredentials:
    where = f"Secret {namespace}/{name}"
    try:
        found = kube.get(SECRET, namespace, name)
    except Absent as error:
        raise Denied(f"{where} with {whose} does not exist: create it", code=NO_CREDENTIALS) from error
    content = secret_content(found)
    key, secret = content.get("aws_access_key_id", ""), content.get("aws_secret_access_key", "")
    if not key or not secret:
        raise Denied(f"{where} needs aws_access_key_id and aws_secret_access_key", code=NO_CREDENTIALS)
    token = content.get("aws_session_token", "")
    # These two are sent in headers. Without this check the failure would look like a lost answer.
    for name, value in (("aws_access_key_id", key), ("aws_session_token", token)):
        if not (value.isascii() and value.isprintable()):
            raise Denied(f"{where}: {name} has characters that no key of AWS has: correct it", code=NO_CREDENTIALS)
    return ReadOnlyCredentials(key, secret, token or None)


def tag_list(tags: Mapping[str, str]) -> list[TagTypeDef]:
    return [{"Key": name, "Value": value} for name, value in sorted(tags.items())]
