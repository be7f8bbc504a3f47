"""IAM and STS that refuse unknown keys and missing roles; moto takes every unknown key for the payer's.

- `authenticate` refuses unknown, deleted or inactive keys, expired sessions, wrong session tokens, closed accounts and
  disabled regions with the service's own error. A session is valid only as long as its role exists.
- AssumeRole needs a role of an open account whose trust policy names the caller, else AccessDenied
  (https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html).
- DeleteUser is refused while the user has access keys, DeletePolicy while the policy is attached or has several
  versions (https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeletePolicy.html).
- Only the managed policies that provisioning attaches exist; loading all costs seconds per account.

The payer's key belongs to an IAM user: AWS lets no root user assume roles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, cast

import moto.iam.aws_managed_policies as managed_policies_source
import moto.iam.urls as iam_urls
import moto.sts.urls as sts_urls
from moto.core.utils import utcnow
from moto.iam.exceptions import DeleteConflictException
from moto.iam.models import AccessKey, AWSManagedPolicy, IAMBackend, ManagedPolicy, Role, iam_backends
from moto.sts.models import AssumedRole, STSBackend, sts_backends

from localcloud.aws import call, organizations, regions, runtime
from localcloud.aws.wire import (
    ErrorAnswer,
    Refusal,
    SignedRequest,
    closed_account,
    denied,
    expired_session,
    unknown_key,
)

PAYER_USER = "aws-account-operator"
PARTITION = "aws"
MANAGED_POLICIES = (
    "AdministratorAccess",
    "PowerUserAccess",
    "ReadOnlyAccess",
    "SecurityAudit",
    "ViewOnlyAccess",
    "IAMFullAccess",
    "IAMReadOnlyAccess",
    "IAMUserChangePassword",
    "AmazonEC2FullAccess",
    "AmazonEC2ReadOnlyAccess",
    "AmazonS3FullAccess",
    "AmazonS3ReadOnlyAccess",
    "AmazonRoute53FullAccess",
    "AmazonVPCFullAccess",
    "ElasticLoadBalancingFullAccess",
    "AWSSupportAccess",
    "Billing",
    "ServiceQuotasFullAccess",
)
_ROLE_ARN = re.compile(r"^arn:[^:]+:iam::(\d{12}):role/(.+)$")
_SESSIONS_BETWEEN_PRUNINGS = 64
_ANONYMOUS = frozenset({"AssumeRoleWithWebIdentity", "AssumeRoleWithSAML"})

_account_of_key: dict[str, str] = {}
_policies: dict[str, dict[str, Any]] = {}


def install() -> None:
    every = json.loads(managed_policies_source.aws_managed_policies_data)
    _policies.update({name: every[name] for name in MANAGED_POLICIES})
    # moto's module keeps megabytes of policies that are not read any more.
    managed_policies_source.aws_managed_policies_data = "{}"
    iam_backends.backend = PerdureIAM
    sts_backends.backend = PerdureSTS


def index_keys() -> None:
    """Index all keys; call it after state was loaded."""
    _account_of_key.clear()
    for account_id, regional in iam_backends.items():
        for backend in regional.values():
            for key_id in backend.access_keys:
                _account_of_key[key_id] = account_id


def ensure_payer_user() -> None:
    iam = _iam(runtime.payer_account)
    user = iam.users.get(PAYER_USER)
    if user is None:
        user = iam.create_user(region_name="us-east-1", user_name=PAYER_USER, path="/", tags=[])
        iam.attach_user_policy("arn:aws:iam::aws:policy/AdministratorAccess", PAYER_USER)
    for key in list(user.access_keys):
        if key.access_key_id != runtime.payer_access_key_id:
            iam.delete_access_key_by_name(key.access_key_id)
    if not user.access_keys:
        key = user.create_access_key(prefix="AKIA")
        key.access_key_id = runtime.payer_access_key_id
        iam.register_key(key)
    user.access_keys[0].secret_access_key = runtime.payer_secret_access_key
    user.access_keys[0].status = "Active"


def authenticate(request: SignedRequest) -> tuple[str, ErrorAnswer | None]:
    """The account that a request acts for (empty without a known key), and the error if the request is refused.

    Unsigned calls that AWS accepts act for the payer.
    """
    if not request.access_key_id:
        if request.action in _ANONYMOUS:
            return runtime.payer_account, None
        code = "MissingAuthenticationToken" if request.service != "s3" else "AccessDenied"
        return "", ErrorAnswer(code, "Request is missing Authentication Token", 403)
    account_id = _account_of_key.get(request.access_key_id, "")
    if not account_id:
        return "", unknown_key(request.service)
    return account_id, _reason_to_refuse(request, account_id)


def caller_arn(account_id: str, access_key_id: str) -> str:
    session = _sts(account_id).get_assumed_role_from_access_key(access_key_id)
    if session is not None:
        return session.arn
    key = _iam(account_id).access_keys.get(access_key_id)
    name = key.user_name if key is not None else "unknown"
    return f"arn:aws:iam::{account_id}:user/{name}"


class ManagedDocument(str):
    __slots__ = ("name",)
    name: str

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the name only, since the longest document has a hundred kilobytes."""
        return _document_of, (self.name,)


@cache
def _document_of(name: str) -> ManagedDocument:
    document = ManagedDocument(json.dumps(_policies[name]["Document"]))
    document.name = name
    return document


class PerdureIAM(IAMBackend):
    @property
    def _url_module(self) -> Any:
        return iam_urls

    def _init_aws_policies(self) -> list[ManagedPolicy]:
        policies: list[ManagedPolicy] = []
        for name, data in _policies.items():
            policy = AWSManagedPolicy.from_data(name, self.account_id, self.region_name, {**data, "Document": None})
            policy.versions[0].document = _document_of(name)
            policies.append(policy)
        return policies

    def attach_role_policy(self, policy_arn: str, role_name: str) -> None:
        """Attach the policy; idempotent, as on AWS, while moto counts a second attachment."""
        policy = self.managed_policies.get(policy_arn)
        if policy is not None and policy_arn in self.get_role(role_name).managed_policies:
            return
        super().attach_role_policy(policy_arn, role_name)

    def register_key(self, key: AccessKey) -> None:
        self.access_keys[key.access_key_id] = key
        _account_of_key[key.access_key_id] = self.account_id

    def create_access_key(self, user_name: str, prefix: str = "AKIA", status: str = "Active") -> AccessKey:
        key = super().create_access_key(user_name, prefix, status)
        _account_of_key[key.access_key_id] = self.account_id
        return key

    def create_temp_access_key(self) -> AccessKey:
        key = super().create_temp_access_key()
        _account_of_key[key.access_key_id] = self.account_id
        call.touch(self.account_id, PARTITION)
        call.mark_changed()
        return key

    def delete_access_key_by_name(self, name: str) -> None:
        super().delete_access_key_by_name(name)
        _account_of_key.pop(name, None)

    def delete_policy(self, policy_arn: str) -> None:
        policy = self.get_policy(policy_arn)
        if policy.attachment_count > 0:
            raise DeleteConflictException("Cannot delete a policy attached to entities.")
        if len(policy.versions) > 1:
            raise DeleteConflictException("This policy has more than one version. Delete the others first.")
        super().delete_policy(policy_arn)

    def forget_session_key(self, key_id: str) -> None:
        self.access_keys.pop(key_id, None)
        _account_of_key.pop(key_id, None)

    def delete_user(self, user_name: str) -> None:
        if self.get_user(user_name).access_keys:
            raise DeleteConflictException("Cannot delete entity, must delete access keys first.")
        super().delete_user(user_name)


class PerdureSTS(STSBackend):
    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.sessions_by_key: dict[str, AssumedRole] = {}
        self.opened = 0

    @property
    def _url_module(self) -> Any:
        return sts_urls

    def assume_role(
        self,
        region_name: str,
        role_session_name: str,
        role_arn: str,
        policy: str,
        duration: int,
        external_id: str,
    ) -> AssumedRole:
        in_hand = call.current()
        caller = caller_arn(self.account_id, in_hand.access_key_id if in_hand else "")
        role = _role_to_assume(role_arn)
        if role is None or not _trusts(role, caller, self.account_id, external_id):
            answer = denied("sts", "AssumeRole", caller)
            raise Refusal("sts", ErrorAnswer(answer.code, f"{answer.message} on resource: {role_arn}", answer.status))
        session = super().assume_role(region_name, role_session_name, role_arn, policy, duration, external_id)
        _sts(session.account_id).remember(session)
        return session

    def get_assumed_role_from_access_key(self, access_key_id: str) -> AssumedRole | None:
        return self.sessions_by_key.get(access_key_id)

    def remember(self, session: AssumedRole) -> None:
        self.sessions_by_key[session.access_key_id] = session
        self.opened += 1
        if self.opened % _SESSIONS_BETWEEN_PRUNINGS == 0:
            now = utcnow()
            for key_id, old in list(self.sessions_by_key.items()):
                if old.expiration < now:
                    del self.sessions_by_key[key_id]
                    _iam(self.account_id).forget_session_key(key_id)
            self.assumed_roles = list(self.sessions_by_key.values())


def _reason_to_refuse(request: SignedRequest, account_id: str) -> ErrorAnswer | None:
    key = _iam(account_id).access_keys.get(request.access_key_id)
    if key is None or key.status != "Active" or _is_too_young(key):
        return unknown_key(request.service)
    if key.user_name is None:
        session = _sts(account_id).get_assumed_role_from_access_key(request.access_key_id)
        if session is None or session.session_token != request.session_token or _without_role(session):
            return unknown_key(request.service)
        if session.expiration < utcnow():
            return expired_session(request.service)
    if organizations.is_closed(account_id):
        return closed_account(request.service)
    if request.is_regional and not regions.is_enabled(account_id, request.region):
        return unknown_key(request.service)
    return None


def _without_role(session: AssumedRole) -> bool:
    match = _ROLE_ARN.match(session.role_arn)
    name = match.group(2).rsplit("/", 1)[-1] if match else ""
    return not any(role.name == name for role in _iam(session.account_id).roles.values())


def _is_too_young(key: AccessKey) -> bool:
    wait = runtime.config().key_propagation_seconds
    return wait > 0 and key.user_name is not None and utcnow() - key.create_date < timedelta(seconds=wait)


def _role_to_assume(role_arn: str) -> Role | None:
    match = _ROLE_ARN.match(role_arn)
    if match is None:
        return None
    account_id, name = match.group(1), match.group(2).rsplit("/", 1)[-1]
    # A customer's account is outside the organization; an unused one has no roles.
    if not (organizations.exists(account_id) or account_id in iam_backends) or organizations.is_closed(account_id):
        return None
    role = next((r for r in _iam(account_id).roles.values() if r.name == name), None)
    wait = runtime.config().role_propagation_seconds
    if role is None or (wait > 0 and utcnow() - role.create_date < timedelta(seconds=wait)):
        return None
    return role


def _trusts(role: Role, caller: str, caller_account: str, external_id: str | None) -> bool:
    document = role.assume_role_policy_document
    try:
        policy = json.loads(document) if isinstance(document, str) else document
    except ValueError:
        return False
    statements = policy.get("Statement", [])
    granted = False
    for statement in statements if isinstance(statements, list) else [statements]:
        if not any(fnmatchcase("sts:AssumeRole", action) for action in _as_list(statement.get("Action"))):
            continue
        if not _names_caller(statement.get("Principal"), caller, caller_account):
            continue
        wanted = _as_list(statement.get("Condition", {}).get("StringEquals", {}).get("sts:ExternalId"))
        if wanted and external_id not in wanted:
            continue
        if statement.get("Effect") == "Deny":
            return False
        granted = True
    return granted


def _names_caller(principal: Any, caller: str, caller_account: str) -> bool:
    names = set(_as_list(principal.get("AWS")) if isinstance(principal, dict) else _as_list(principal))
    return not names.isdisjoint(_names_of(caller, caller_account))


def _names_of(caller: str, caller_account: str) -> Iterator[str]:
    yield from ("*", caller, caller_account, f"arn:aws:iam::{caller_account}:root")
    match = re.match(r"^arn:([^:]+):sts::(\d+):assumed-role/([^/]+)/", caller)
    if match:
        yield f"arn:{match.group(1)}:iam::{match.group(2)}:role/{match.group(3)}"


def _as_list(value: Any) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def _iam(account_id: str) -> PerdureIAM:
    regional = iam_backends[account_id]
    return cast(PerdureIAM, dict.get(regional, PARTITION) or regional[PARTITION])


def _sts(account_id: str) -> PerdureSTS:
    regional = sts_backends[account_id]
    return cast(PerdureSTS, dict.get(regional, PARTITION) or regional[PARTITION])
