"""Accounts, claims and pools as the tables of decisions need them: each a valid object with one thing set apart.

`settle` simulates the world: it carries out the actions of a decision as a faithful Kubernetes and AWS would, folds
the results, and decides again, so that a table can start from any state and look at where a lifecycle ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from domain.accounts.account_lifecycle import decide as decide_account
from domain.accounts.actions.account_cleanup import Cleaned
from domain.accounts.actions.account_creation import CreatedAccount, CreateRequest
from domain.accounts.actions.handover import Fulfilled, MadeAccount
from domain.accounts.actions.iam_identities import AdminSecret
from domain.accounts.actions.region_initialization import Regions
from domain.accounts.actions.support_cases import SupportCase
from domain.accounts.claim_lifecycle import decide as decide_claim
from domain.accounts.config import OperatorConfig, parse_config
from domain.accounts.constants import CLAIM_UID_ANNOTATION, FINALIZER, OPERATOR_NAMESPACE
from domain.accounts.observed import (
    AccountMemory,
    AccountWorld,
    ClaimMemory,
    ClaimWorld,
    Permit,
    RegionOutcome,
    Verdict,
)
from domain.accounts.resources import Account, AccountClaim, AccountPool
from domain.accounts.state_conditions import release_failed, released
from domain.decision import Action, Decision, World
from domain.model import Model
from domain.refusal import ErrorType, Refusal
from domain.resource import Condition, condition_of, timestamp
from domain.writes import Delete, Patch, Written

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
BORN = NOW - timedelta(minutes=1)
AWS_ID = "123456789012"
SUFFIX = "bcd456"
NAME = f"osd-creds-mgmt-{SUFFIX}"
POOL = "pool"
REGIONS = ("eu-west-1", "us-east-1")

DATA = {
    "account-limit": "100",
    "root": "r-root",
    "base": "ou-base",
    "ami-owner": "309956199498",
    "support-jump-role": "arn:aws:iam::999999999999:role/jump",
    "shard-name": "shard-1",
    "accountpool": "pool:\n  default: true\n",
}
CONFIG = parse_config(DATA)
POOL_COUNTS = {
    "poolSize",
    "unclaimedAccounts",
    "claimedAccounts",
    "availableAccounts",
    "accountsProgressing",
    "accountsPending",
    "awsLimitDelta",
}

W = TypeVar("W", bound=World)


def config(**data: str | None) -> OperatorConfig:
    """The operator's ConfigMap, some keys set otherwise (`_` means `-` in names without a dot), None removing one."""
    changed = {name if "." in name else name.replace("_", "-"): value for name, value in data.items()}
    return parse_config({name: value for name, value in {**DATA, **changed}.items() if value is not None})


def ago(**duration: float) -> str:
    return timestamp(NOW - timedelta(**duration))


def condition(type_: str, *, entered: str = "", status: str = "True", **fields: str) -> dict[str, str]:
    moment = entered or timestamp(NOW)
    return {
        "type": type_,
        "status": status,
        "reason": type_,
        "message": type_,
        "lastProbeTime": moment,
        "lastTransitionTime": moment,
        **fields,
    }


def account(name: str = NAME, **fields: Any) -> Account:
    """A pool's Account; `fields` by their place: meta, spec, status.

    An account that names a claim has the claim's uid, unless `recorded` is False.
    """
    spec = {"accountPool": POOL, **fields.get("spec", {})}
    holder = spec.get("claimLink") if fields.get("recorded", True) else None
    uid = {CLAIM_UID_ANNOTATION: f"uid-{holder}"} if holder else {}
    meta = {
        "name": name,
        "namespace": OPERATOR_NAMESPACE,
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "creationTimestamp": timestamp(BORN),
        "labels": {"iamUserId": name.rsplit("-", 1)[-1]},
        "finalizers": [FINALIZER],
        "ownerReferences": [
            {"apiVersion": "aws.managed.openshift.io/v1alpha1", "kind": "AccountPool", "name": POOL, "controller": True}
        ],
        **fields.get("meta", {}),
    }
    meta["annotations"] = {**uid, **meta.get("annotations", {})}
    return Account.model_validate({"metadata": meta, "spec": spec, "status": fields.get("status", {})})


def ready_account(name: str = NAME, **fields: Any) -> Account:
    """An Account that can be claimed."""
    spec = {"awsAccountID": AWS_ID, "iamUserSecret": f"{name}-secret", **fields.pop("spec", {})}
    status = {"state": "Ready", "conditions": [condition("Ready")], **fields.pop("status", {})}
    return account(name, spec=spec, status=status, **fields)


def claim(name: str = "claim", namespace: str = "tenant", **fields: Any) -> AccountClaim:
    meta = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "resourceVersion": "3",
        "creationTimestamp": timestamp(BORN),
        "finalizers": [FINALIZER],
        **fields.get("meta", {}),
    }
    spec = {
        "legalEntity": {"id": "entity-1", "name": "Entity One"},
        "awsCredentialSecret": {"name": "aws", "namespace": namespace},
        "aws": {"regions": [{"name": "us-east-1"}]},
        "accountLink": "",
        **fields.get("spec", {}),
    }
    return AccountClaim.model_validate({"metadata": meta, "spec": spec, "status": fields.get("status", {})})


def pool(name: str = POOL, size: int = 3, **fields: Any) -> AccountPool:
    meta = {"name": name, "namespace": OPERATOR_NAMESPACE, "uid": f"uid-{name}", **fields.get("meta", {})}
    body: dict[str, Any] = {"metadata": meta, "spec": {"poolSize": size}}
    if "status" in fields:
        body["status"] = fields["status"]
    return AccountPool.model_validate(body)


def world(of: Account | None = None, **fields: Any) -> AccountWorld:
    """What an Account's decision sees."""
    of = of or account()
    known = {"inherited": False, **fields.pop("known", {})}
    return AccountWorld(
        key=of.key,
        account=of,
        config=fields.pop("config", CONFIG),
        email_domain="redhat.com",
        known=AccountMemory(**known),
        **fields,
    )


def claim_world(of: AccountClaim | None = None, **fields: Any) -> ClaimWorld:
    """What a claim's decision sees."""
    of = of or claim()
    return ClaimWorld(
        key=of.key,
        claim=of,
        config=fields.pop("config", CONFIG),
        known=ClaimMemory(**fields.pop("known", {})),
        **fields,
    )


def refusal(type_: ErrorType, message: str = "refused", *, code: str = "", attempts: int = 1) -> Refusal:
    return Refusal(type=type_, message=message, code=code, at=NOW, attempts=attempts)


def granted(minutes: float = 2) -> Permit:
    return Permit(verdict=Verdict.GRANTED, until=NOW + timedelta(minutes=minutes))


# --- reading decisions ---


def status_of(decision: Decision) -> dict[str, Any]:
    """The status that the decision writes; fails if it writes none."""
    patch = next(a for a in decision.actions if isinstance(a, Patch) and a.subresource == "status")
    return dict(patch.patch["status"])  # type: ignore[call-overload]


def written_condition(decision: Decision, type_: str) -> dict[str, str]:
    """One condition of the status that the decision writes."""
    return next(c for c in status_of(decision)["conditions"] if c["type"] == type_)


def activities(decision: Decision) -> list[str]:
    return [action.activity for action in decision.actions]


def present(conditions: tuple[Condition, ...], type_: str) -> Condition:
    found = condition_of(conditions, type_)
    assert found is not None, f"no condition {type_}"
    return found


# --- a faithful world ---

Answer = Callable[[Any], Model | Refusal | None]

ANSWERS: Mapping[str, Answer] = {
    "kube.patch": lambda a: Written(resource_version=str(int(a.resource_version or "0") + 1)),
    "kube.delete": lambda a: None,
    "aws.create_account": lambda a: CreateRequest(request_id="car-1"),
    "aws.await_account": lambda a: CreatedAccount(created_account_id=AWS_ID),
    "aws.tag_account": lambda a: None,
    "aws.ensure_support_role": lambda a: None,
    "aws.ensure_admin_user": lambda a: AdminSecret(admin_secret=a.secret),
    "aws.list_regions": lambda a: Regions(regions=REGIONS),
    "aws.initialize_region": lambda a: RegionOutcome(region=a.region, ok=True),
    "aws.open_support_case": lambda a: SupportCase(case_id="case-1"),
    "aws.resolve_support_case": lambda a: None,
    "aws.delete_identities": lambda a: None,
    "aws.rotate_keys": lambda a: None,
    "aws.clean_region": lambda a: Cleaned(report="clean"),
    "aws.clean_global": lambda a: Cleaned(report="clean"),
    "accounts.fulfil": lambda a: Fulfilled(account_ou="ou-1", support_role_arn=a.support_role_arn),
    "accounts.release": lambda a: None,
    "accounts.fake_secret": lambda a: None,
    "accounts.make_customer_account": lambda a: MadeAccount(made=f"osd-creds-mgmt-{SUFFIX}"),
    "accounts.hold_input_secret": lambda a: None,
    "accounts.deliver_credentials": lambda a: None,
    "accounts.remove_secret": lambda a: None,
    "accounts.let_secrets_go": lambda a: None,
    "aws.end_launches": lambda a: None,
    "aws.ensure_fleet_role": lambda a: None,
    "aws.delete_fleet_role": lambda a: None,
    "accounts.deliver_role": lambda a: None,
}


def fold(before: W, action: Action, answer: Model | Refusal | None) -> W:
    """What the loop makes of an answer."""
    if isinstance(answer, Refusal):
        earlier = before.refusals.get(action.slot)
        counted = answer.model_copy(update={"attempts": earlier.attempts + 1 if earlier else answer.attempts})
        return action.refuse(before, counted)
    rest = {slot: remaining for slot, remaining in before.refusals.items() if slot != action.slot}
    after = action.fold(before.model_copy(update={"refusals": rest}), answer)
    if isinstance(action, Delete) and isinstance(after, AccountWorld):
        meta = after.account.metadata
        if not meta.finalizers:
            return after.model_copy(update={"exists": False})  # type: ignore[return-value]
        gone = after.account.model_copy(update={"metadata": meta.model_copy(update={"deletion_timestamp": NOW})})
        return after.model_copy(update={"account": gone})  # type: ignore[return-value]
    return _without_last_finalizer(after)


def _without_last_finalizer(after: W) -> W:
    """The API server removes a deleted object with its last finalizer."""
    resource = after.account if isinstance(after, AccountWorld) else getattr(after, "claim", None)
    if resource is not None and resource.metadata.deleting and not resource.metadata.finalizers:
        return after.model_copy(update={"exists": False})
    return after


def settle(start: W, *, answers: Mapping[str, Answer] | None = None, now: datetime = NOW, steps: int = 60) -> W:
    """The world when its decisions ask for nothing any more; fails when they never cease to ask."""
    replies = {**ANSWERS, **(answers or {})}
    current = start
    for _ in range(steps):
        decision = decide_any(current, now)
        if not decision.actions:
            return current
        for action in first_of_each_slot(decision):
            current = fold(current, action, replies[action.activity](action))
    raise AssertionError(f"not settled after {steps} steps: {decision.why}: {activities(decision)}")


def decide_any(current: World, now: datetime) -> Decision:
    if isinstance(current, AccountWorld):
        return decide_account(current, now)
    assert isinstance(current, ClaimWorld)
    return decide_claim(current, now)


def first_of_each_slot(decision: Decision) -> list[Action]:
    wanted: dict[str, Action] = {}
    for action in decision.actions:
        wanted.setdefault(action.slot, action)
    return list(wanted.values())


def free(account_: Account, *, failed: bool = False) -> Account:
    """The Account as a release leaves it."""
    status = release_failed(account_.status, NOW) if failed else released(account_.status, NOW)
    spec = account_.spec.model_copy(update={"claim_link": "", "claim_link_namespace": ""})
    return account_.model_copy(update={"spec": spec, "status": status})
