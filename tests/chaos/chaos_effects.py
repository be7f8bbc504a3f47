"""Every effect of the account, claim and release lifecycles, and how to stop time at the moment that it happens.

An effect is one call of one activity with an external effect; activities that only observe are listed with one of
their looks. `tests/chaos/test_kills.py` kills the worker at each, `test_calls.py` breaks each call of AWS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from chaos_proxy import Request


class Lifecycle(StrEnum):
    """Whose effect it is; the words of the report."""

    ACCOUNT = "account"
    CLAIM = "claim"
    RELEASE = "release"
    DELETION = "deletion"
    POOL = "pool"
    ORGANIZATION = "organization"
    FEDERATED = "federated"
    CUSTOMER = "customer"


@dataclass(frozen=True)
class AwsCall:
    """A call of AWS; `containing` is text that its body must hold, `region` where it acts."""

    service: str
    action: str
    region: str | None = None
    containing: str | None = None


@dataclass(frozen=True)
class KubeCall:
    """A request to the Kubernetes API."""

    name: str
    matches: Callable[[Request], bool]


@dataclass(frozen=True)
class Message:
    """What an activity only sends to Temporal, which nothing here can hold: the worker dies soon after its start."""

    name: str


@dataclass(frozen=True)
class Effect:
    """One effect of one activity."""

    lifecycle: Lifecycle
    activity: str
    call: AwsCall | KubeCall | Message

    @property
    def name(self) -> str:
        """As the report and test ids name it."""
        call = self.call
        what = f"{call.service}.{call.action}" if isinstance(call, AwsCall) else call.name
        return f"{self.lifecycle}.{what}"


def _spec(request: Request) -> dict[str, Any]:
    found = request.body.get("spec")
    return found if isinstance(found, dict) else {}


def _status(request: Request) -> dict[str, Any]:
    found = request.body.get("status")
    return found if isinstance(found, dict) else {}


def _named(name: str, matches: Callable[[Request], bool]) -> KubeCall:
    return KubeCall(name, matches)


def _state(plural: str, state: str) -> KubeCall:
    def matches(request: Request) -> bool:
        return request.of("PATCH", plural, "status") and _status(request).get("state") == state

    return KubeCall(f"PATCH-{plural}-status-{state}", matches)


def _without_finalizer(plural: str) -> KubeCall:
    def matches(request: Request) -> bool:
        return request.of("PATCH", plural) and request.body.get("metadata", {}).get("finalizers") == []

    return KubeCall(f"PATCH-{plural}-finalizer-dropped", matches)


_A, _C, _R, _D = Lifecycle.ACCOUNT, Lifecycle.CLAIM, Lifecycle.RELEASE, Lifecycle.DELETION
_P, _O = Lifecycle.POOL, Lifecycle.ORGANIZATION


def account(call: AwsCall | KubeCall, activity: str = "kube.patch") -> Effect:
    """An effect on the way from nothing to Ready."""
    return Effect(_A, activity, call)


def pool(call: AwsCall | KubeCall) -> Effect:
    """An effect of a pool's pass, which serves a claim from binding to Ready."""
    return Effect(_P, "accounts.pass_pool", call)


def claim(call: AwsCall | KubeCall, activity: str = "kube.patch") -> Effect:
    """An effect on the way from a claim to its Secret."""
    return Effect(_C, activity, call)


def release(call: AwsCall | KubeCall, activity: str = "kube.patch") -> Effect:
    """An effect on the way back to a clean account."""
    return Effect(_R, activity, call)


def deletion(call: AwsCall | KubeCall, activity: str = "kube.patch") -> Effect:
    """An effect of an Account's deletion."""
    return Effect(_D, activity, call)


_LINK = _named(
    "PATCH-accountclaims-accountLink", lambda r: r.of("PATCH", "accountclaims") and "accountLink" in _spec(r)
)
_CLAIM_LINK = _named(
    "PATCH-accounts-claimLink", lambda r: r.of("PATCH", "accounts") and bool(_spec(r).get("claimLink"))
)
_UNIT = AwsCall("organizations", "CreateOrganizationalUnit")
_MOVE = AwsCall("organizations", "MoveAccount")
_SECRET = _named("POST-claim-secret", lambda r: r.of("POST", "secrets") and "/tenant-" in r.path)
_PLACED = _named("PATCH-accountclaims-accountOU", lambda r: r.of("PATCH", "accountclaims") and "accountOU" in _spec(r))

_LIST_POOLS = _named("GET-accountpools", lambda r: r.of("GET", "accountpools") and not r.of_one("GET", "accountpools"))

BINDING = pool(_LINK)
PLACING = claim(_UNIT, "accounts.ensure_units")

# What a claim brings about: an account goes to it, within one pass of the pool, and the next pass makes another.
# Effects of one row can be under way at the same moment, so one kill meets all of them.
TAKING: tuple[tuple[Effect, ...], ...] = (
    (pool(_CLAIM_LINK),),
    (pool(_LINK),),
    (PLACING, pool(_SECRET)),
    (pool(_MOVE),),
    (pool(_PLACED),),
    (pool(_state("accountclaims", "Ready")),),
    (
        pool(_named("POST-accounts", lambda r: r.of("POST", "accounts"))),
        pool(_named("PATCH-accountpools-status", lambda r: r.of("PATCH", "accountpools", "status"))),
        claim(
            _named(
                "PATCH-accounts-status-claimed",
                lambda r: r.of("PATCH", "accounts", "status") and _status(r).get("claimed") is True,
            )
        ),
    ),
    (account(AwsCall("organizations", "CreateAccount"), "aws.create_account"),),
    (account(AwsCall("organizations", "DescribeCreateAccountStatus"), "aws.await_account"),),
    (account(_named("PATCH-accounts-awsAccountID", lambda r: r.method == "PATCH" and "awsAccountID" in _spec(r))),),
    (account(_state("accounts", "Creating")),),
    (
        account(AwsCall("organizations", "TagResource"), "aws.tag_account"),
        account(AwsCall("iam", "CreateRole"), "aws.ensure_support_role"),
        account(AwsCall("iam", "CreateUser"), "aws.ensure_admin_user"),
        account(AwsCall("ec2", "DescribeRegions"), "aws.list_regions"),
    ),
    (
        account(AwsCall("iam", "AttachRolePolicy"), "aws.ensure_support_role"),
        account(AwsCall("iam", "AttachUserPolicy"), "aws.ensure_admin_user"),
    ),
    (account(AwsCall("iam", "CreateAccessKey"), "aws.ensure_admin_user"),),
    (
        account(
            _named("POST-account-secret", lambda r: r.of("POST", "secrets") and "/tenant-" not in r.path),
            "aws.ensure_admin_user",
        ),
    ),
    (account(_state("accounts", "InitializingRegions")),),
    (account(AwsCall("ec2", "RunInstances", region="us-east-1"), "aws.initialize_region"),),
    (
        account(AwsCall("ec2", "TerminateInstances", region="us-east-1"), "aws.initialize_region"),
        account(AwsCall("ec2", "RunInstances", region="eu-west-1"), "aws.initialize_region"),
    ),
    (account(_state("accounts", "PendingVerification")),),
    (account(AwsCall("support", "CreateCase"), "aws.open_support_case"),),
    (
        account(
            _named(
                "PATCH-accounts-supportCaseID",
                lambda r: r.of("PATCH", "accounts", "status") and bool(_status(r).get("supportCaseID")),
            )
        ),
    ),
    (Effect(_O, "accounts.pass_organization", AwsCall("support", "DescribeCases")),),
    (account(_state("accounts", "Ready")),),
    (Effect(_O, "accounts.pass_organization", AwsCall("organizations", "ListCreateAccountStatus")),),
    (Effect(_O, "accounts.tell_pools", _LIST_POOLS),),
)

# What each pass of an Account and of a claim begins with: without it there is none of the above.
OBSERVING: tuple[Effect, ...] = (
    account(_named("GET-account", lambda r: r.of_one("GET", "accounts")), "accounts.observe_account"),
    claim(_named("GET-accountclaim", lambda r: r.of_one("GET", "accountclaims")), "accounts.observe_claim"),
)

# What is left to a claim's own workflow when the pool's pass was cut short after the binding.
FINISHING: tuple[tuple[Effect, ...], ...] = (
    (PLACING, claim(_SECRET, "accounts.fulfil")),
    (claim(_MOVE, "accounts.fulfil"),),
    (claim(_PLACED, "accounts.fulfil"),),
    (claim(_state("accountclaims", "Ready")),),
)

# What a claim's own workflow does if its pool has Accounts, but no AccountPool.
BINDING_ALONE: tuple[tuple[Effect, ...], ...] = (
    (claim(_CLAIM_LINK, "accounts.bind_without_pool"),),
    (claim(_LINK, "accounts.bind_without_pool"),),
)

# What a claim says that finds no account.
QUEUEING = claim(_state("accountclaims", "Pending"))

# What giving back brings about: the account is cleaned and free again; and an Account is deleted, beside it.
RETURNING: tuple[tuple[Effect, ...], ...] = (
    (
        release(AwsCall("iam", "CreateAccessKey"), "aws.rotate_keys"),
        deletion(AwsCall("iam", "DeleteAccessKey"), "aws.delete_identities"),
    ),
    (
        release(
            _named("PATCH-account-secret", lambda r: r.of("PATCH", "secrets") and "/tenant-" not in r.path),
            "aws.rotate_keys",
        ),
        deletion(AwsCall("iam", "DeleteUser"), "aws.delete_identities"),
    ),
    (
        release(AwsCall("iam", "DeleteAccessKey"), "aws.rotate_keys"),
        deletion(AwsCall("iam", "DeleteRole"), "aws.delete_identities"),
    ),
    (
        release(AwsCall("ec2", "TerminateInstances"), "aws.clean_region"),
        release(AwsCall("ec2", "DeleteVolume", region="eu-west-1"), "aws.clean_region"),
        release(AwsCall("s3", "DeleteObjects"), "aws.clean_global"),
        deletion(_without_finalizer("accounts")),
    ),
    (
        release(AwsCall("ec2", "DeleteSnapshot"), "aws.clean_region"),
        release(AwsCall("s3", "DeleteBucket"), "aws.clean_global"),
    ),
    (
        release(AwsCall("ec2", "DeleteVolume", region="us-east-1"), "aws.clean_region"),
        release(AwsCall("route53", "ChangeResourceRecordSets"), "aws.clean_global"),
    ),
    (
        release(AwsCall("ec2", "DeleteVpcEndpointServiceConfigurations"), "aws.clean_region"),
        release(AwsCall("route53", "DeleteHostedZone"), "aws.clean_global"),
    ),
    (
        release(
            _named("DELETE-claim-secret", lambda r: r.of("DELETE", "secrets") and "/tenant-" in r.path),
            "accounts.release",
        ),
    ),
    (
        release(
            _named("PATCH-accounts-released", lambda r: r.of("PATCH", "accounts") and _spec(r).get("claimLink") == ""),
            "accounts.release",
        ),
    ),
    (
        release(
            _named(
                "PATCH-accounts-status-released",
                lambda r: r.of("PATCH", "accounts", "status") and _status(r).get("claimed") is False,
            ),
            "accounts.release",
        ),
    ),
    (release(_without_finalizer("accountclaims")),),
)

# Where an Account that never got an AWS account gives way: only reached when AWS refuses to make one.
DISCARDING = account(_named("DELETE-accounts", lambda r: r.of("DELETE", "accounts")), "kube.delete")

# The question to AWS Support about an Account that is deleted before the answer: the call is the payer's.
# Only the first instance of a worker is described until it runs.
BOOTING = account(AwsCall("ec2", "DescribeInstances"), "aws.initialize_region")
ENDING = account(AwsCall("ec2", "TerminateInstances"), "aws.initialize_region")
FORGETTING = account(AwsCall("support", "ResolveCase"), "aws.resolve_support_case")


def effects() -> tuple[Effect, ...]:
    """All of them."""
    rows = (*TAKING, OBSERVING, *FINISHING, *BINDING_ALONE, *RETURNING)
    return (*(effect for row in rows for effect in row), QUEUEING, DISCARDING, FORGETTING)
