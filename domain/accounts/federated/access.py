r"""The lifecycle of an AWSFederatedAccountAccess.

    "" --account asked, labels--> policy --> role --> policies attached --> Ready
         \________________________\_________\____________\__> Failed (tried again: it heals)
    Ready --its role or its spec changes--> the same steps, changing only what differs --> Ready
    deleted --> role and policies deleted --> gone

The names end with the label `uid`; it and the account's id are written before anything is made, so that whatever was
made is found again. An access that works and cannot be renewed stays Ready, and says so in the condition `Synced`.
What is refused is tried again with a growing delay, and at once when the access or its role changes.

A deletion that AWS refuses (the customer has taken its keys back, and the payer may not enter) is tried for a day; then
the object goes, and what is left in the customer's account is the customer's to delete. A person may end it sooner.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.accounts.constants import FINALIZER
from domain.accounts.federated import ACCOUNT_LABEL, ROLE_LABEL, UID_LABEL
from domain.accounts.federated.access_status import FAILED_TO, failed, faulty, ready
from domain.accounts.federated.actions import (
    AttachAccessPolicies,
    EnsureAccessPolicy,
    EnsureAccessRole,
    IdentifyCustomer,
    RevokeAccess,
)
from domain.accounts.federated.policies import document, named, role_name_fault, uid_of, wanted_digest
from domain.accounts.federated.resources import AccessState, AWSFederatedRole, FederatedAccessStatus
from domain.accounts.federated.worlds import FederatedAccessWorld
from domain.accounts.finalizers import dropped, given_up
from domain.decision import Action, Decision, Outcome
from domain.levers import RETRIED, retry_wanted
from domain.refusal import ErrorType, Refusal
from domain.resource import SecretReference
from domain.writes import JsonPatch, Patch

GIVE_UP_AFTER = timedelta(hours=24)
NAMESPACE_MISMATCH = "AWSCustomerCredentialSecretNamespaceMismatch"
ANEW = "anew"  # in the place of a digest, which it never equals: a person wants all steps taken once more
NO_ROLE = "Requested role does not exist"
# What a failed access says that knew its account.
_BEYOND = frozenset(message for step, message in FAILED_TO.items() if step != IdentifyCustomer.activity)


def decide(world: FederatedAccessWorld, now: datetime) -> Decision:
    """What an access needs now."""
    access, role = world.access, world.role
    if not world.exists:
        return Decision(phase="Gone", outcome=Outcome.GONE, why="the AWSFederatedAccountAccess does not exist any more")
    if world.config.missing("fedramp"):
        why = f"ConfigMap key fedramp: {world.config.problems['fedramp']}"
        return _decision(world, Outcome.WAITING, why, waits_for=("ConfigMap",))
    if access.metadata.deleting:
        return _ending(world, now)
    if fault := spec_fault(world):
        return _faulty(world, f"Invalid spec: {fault}", "a corrected spec", now)
    if role is None or role.metadata.deleting:
        return _faulty(world, NO_ROLE, str(access.owner), now)
    if fault := role_name_fault(role.metadata.name):
        return _faulty(world, FAILED_TO[EnsureAccessRole.activity], "an AWSFederatedRole of another name", now, fault)
    if patch := _marks(world, role):
        return _working(world, "set the finalizer and labels", _patch(world, patch, note="finalizer and labels"))
    if token := retry_wanted(access.metadata):
        if is_granted(world, role):  # what was granted may have been changed in AWS since
            anew = access.status.model_copy(update={"granted": ANEW})
            return _working(world, "compare it with AWS again", _status(world, anew))
        patch = {"metadata": {"annotations": {RETRIED: token}}}
        return _working(world, "record the retry", _patch(world, patch, note="retry honoured"))
    if is_granted(world, role):
        return _decision(
            world, Outcome.SETTLED, f"role {role_name(world, role)} exists in account {access.place.account_id}"
        )
    return _granting(world, role, now)


def spec_fault(world: FederatedAccessWorld) -> str:
    """What is wrong with the access's own spec, empty if nothing is."""
    access = world.access
    secret = access.spec.aws_customer_credential_secret
    if secret.namespace and secret.namespace != access.metadata.namespace:
        return NAMESPACE_MISMATCH
    return "" if secret.name else "awsCustomerCredentialSecret does not name a Secret"


def is_granted(world: FederatedAccessWorld, role: AWSFederatedRole) -> bool:
    """Whether the status says that all is as the role and the access want it now."""
    status = world.access.status
    wanted = wanted_digest(world.access, role, world.config.partition)
    return status.state == AccessState.READY and status.granted == wanted


def role_name(world: FederatedAccessWorld, role: AWSFederatedRole) -> str:
    """The IAM role's name."""
    return named(role.metadata.name, uid_of(world.access))


def _marks(world: FederatedAccessWorld, role: AWSFederatedRole) -> JsonPatch:
    """Finalizer and labels, where they are not as they should be: before the first effect."""
    meta, place = world.access.metadata, world.access.place
    wanted = {UID_LABEL: uid_of(world.access), ROLE_LABEL: role.metadata.name}
    if place.role:  # whoever took the account's label away, or changed it, has not moved the role
        wanted[ACCOUNT_LABEL] = place.account_id
    labels = {name: value for name, value in wanted.items() if meta.labels.get(name) != value}
    patch: dict[str, object] = {"labels": labels} if labels else {}
    if FINALIZER not in meta.finalizers:
        patch["finalizers"] = [*meta.finalizers, FINALIZER]
    return {"metadata": patch} if patch else {}


# --- granting ---


def _granting(world: FederatedAccessWorld, role: AWSFederatedRole, now: datetime) -> Decision:
    """The next step."""
    access, known = world.access, world.known
    digest = wanted_digest(access, role, world.config.partition)
    # The label may have come with a copy of another access, or with a backup of this one.
    written_down = access.place.role or not known.account_id
    account_id = access.place.account_id if written_down and _begun(world) else known.account_id
    if not account_id:
        return _step(world, IdentifyCustomer(secret=_secret(world), partition=world.config.partition), now)
    if account_id != access.place.account_id:
        patch: JsonPatch = {"metadata": {"labels": {ACCOUNT_LABEL: account_id}}}
        return _working(world, f"record that its account is {account_id}", _patch(world, patch, note="account label"))
    if moved := _moved_from(world, role):
        return _moving(world, moved, now)
    steps = _steps(world, role, digest)
    if steps:
        return _step(world, steps[0], now)
    status = ready(access.status, world.config.partition, account_id, role_name(world, role), digest, now)
    return _working(world, "Account Access Ready", _status(world, status))


def _begun(world: FederatedAccessWorld) -> bool:
    """True if something may have been made already, in the account that is written down."""
    access, known = world.access, world.known
    done = access.place.role or known.policy or known.role or known.attached
    told = any(each.type == AccessState.READY or each.message in _BEYOND for each in access.status.conditions)
    return bool(access.place.account_id) and (bool(done) or told)


def _steps(world: FederatedAccessWorld, role: AWSFederatedRole, digest: str) -> tuple[Action, ...]:
    """What is not known to be done for what is wanted now, in order."""
    access, known, spec = world.access, world.known, role.spec
    custom, uid, name = spec.aws_custom_policy, uid_of(access), role_name(world, role)
    common = {
        "secret": _secret(world),
        "partition": world.config.partition,
        "account_id": access.place.account_id,
        "uid": uid,
        "access_uid": access.metadata.uid,
        "digest": digest,
    }
    custom_name = named(custom.name, uid) if custom.name else ""
    steps: list[Action] = []
    if custom_name and known.policy != digest:
        text = document(custom)
        steps.append(
            EnsureAccessPolicy(**common, name=custom_name, description=custom.description, document=text),
        )
    if known.role != digest:
        principal = access.spec.external_customer_aws_iam_arn
        steps.append(EnsureAccessRole(**common, name=name, description=spec.role_description, principal=principal))
    if known.attached != digest:
        managed = tuple(dict.fromkeys(spec.aws_managed_policies))
        exact = bool(access.status.granted) or access.status.state != AccessState.READY
        steps.append(AttachAccessPolicies(**common, role=name, custom=custom_name, managed=managed, exact=exact))
    return tuple(steps)


def _moving(world: FederatedAccessWorld, before: str, now: datetime) -> Decision:
    """Remove what it had under another AWSFederatedRole; then it is written down nowhere any more."""
    if world.known.moved_from != before:
        return _step(world, _revoke(world, before, moving=True), now)
    status = world.access.status.model_copy(update={"state": AccessState.NEW, "console_url": "", "granted": ""})
    return _working(world, f"role {before} is deleted", _status(world, status))


def _moved_from(world: FederatedAccessWorld, role: AWSFederatedRole) -> str:
    """The role that it had under another AWSFederatedRole."""
    recorded = world.access.place.role
    return recorded if recorded and recorded != role_name(world, role) else ""


def _step(world: FederatedAccessWorld, action: Action, now: datetime) -> Decision:
    """Take the step; what was refused is shown, and tried again when its time has come."""
    refusal = world.refused(action.slot)
    if refusal is None or refusal.type is ErrorType.BUG:
        return _working(world, action.summary, action)
    status = failed(world.access.status, FAILED_TO.get(action.activity, "Failed to remove role"), refusal, now)
    writes = () if status == world.access.status else (_status(world, status),)
    waits_for = _what_lifts(world, refusal)
    return _decision(world, Outcome.WAITING, refusal.message, *writes, action, waits_for=(waits_for,))


def _what_lifts(world: FederatedAccessWorld, refusal: Refusal) -> str:
    secret = _secret(world)
    if refusal.type is ErrorType.DENIED:
        return f"valid credentials in Secret {secret.namespace}/{secret.name}"
    return str(world.access.owner) if refusal.type is ErrorType.INVALID else "AWS IAM"


def _faulty(world: FederatedAccessWorld, message: str, waits_for: str, now: datetime, detail: str = "") -> Decision:
    """A fault that no call of AWS is needed to see."""
    status = faulty(world.access.status, message, now)
    actions = () if status == world.access.status else (_status(world, status),)
    return Decision(
        phase=AccessState.FAILED,
        outcome=Outcome.WAITING,
        why=f"{message}: {detail}" if detail else message,
        actions=actions,
        waits_for=(waits_for,),
        owner=world.access.owner,
    )


# --- deletion ---


def _ending(world: FederatedAccessWorld, now: datetime) -> Decision:
    access = world.access
    place = access.place
    if over := given_up(access.metadata):
        why, waits_for = over
        return _decision(world, Outcome.WAITING, why, waits_for=(waits_for,))
    if not (place.uid and place.account_id):
        return _working(world, "nothing was created for it", dropped(access))
    if world.known.revoked:
        return _working(world, "its role is deleted", dropped(access))
    action = _revoke(world, place.role or named(access.spec.aws_federated_role.name, place.uid))
    refusal = world.refused(action.slot)
    if refusal is None:
        return _working(world, action.summary, action)
    until = (access.metadata.deletion_timestamp or now) + GIVE_UP_AFTER
    if now >= until:
        left = "; ".join(access.outside)
        return _working(world, f"gave up; left in the customer's account: {left} ({refusal.message})", dropped(access))
    decision = _decision(world, Outcome.WAITING, refusal.message, action, waits_for=(_what_lifts(world, refusal),))
    then = "it is released, and its role stays in the customer's account"
    return decision.model_copy(update={"deadline": until, "at_deadline": then})


def _revoke(world: FederatedAccessWorld, role: str, *, moving: bool = False) -> RevokeAccess:
    access, place = world.access, world.access.place
    custom = world.role.spec.aws_custom_policy.name if world.role is not None else ""
    return RevokeAccess(
        secret=_secret(world),
        partition=world.config.partition,
        account_id=place.account_id,
        uid=place.uid,
        access_uid=access.metadata.uid,
        role=role,
        custom=named(custom, place.uid) if custom else "",
        principal=access.spec.external_customer_aws_iam_arn,
        moving=moving,
    )


# --- the words of decisions ---


def _secret(world: FederatedAccessWorld) -> SecretReference:
    """The customer's Secret: of the access's own namespace, whatever it says."""
    name = world.access.spec.aws_customer_credential_secret.name
    return SecretReference(name=name, namespace=world.access.metadata.namespace)


def _decision(
    world: FederatedAccessWorld, outcome: Outcome, why: str, *actions: Action, waits_for: tuple[str, ...] = ()
) -> Decision:
    phase = "Deleting" if world.access.metadata.deleting else world.access.status.state or "New"
    return Decision(
        phase=phase, outcome=outcome, why=why, actions=actions, waits_for=waits_for, owner=world.access.owner
    )


def _working(world: FederatedAccessWorld, why: str, *actions: Action) -> Decision:
    return _decision(world, Outcome.WORKING, why, *actions)


def _patch(world: FederatedAccessWorld, patch: JsonPatch, *, subresource: str = "", note: str) -> Patch:
    version = world.access.metadata.resource_version
    return Patch(key=world.access.key, patch=patch, subresource=subresource, resource_version=version, note=note)


def _status(world: FederatedAccessWorld, status: FederatedAccessStatus) -> Patch:
    # conditions and state are both required once the status is present, so the status is written whole.
    patch: JsonPatch = {"status": status.model_dump(mode="json", exclude_none=True)}
    return _patch(world, patch, subresource="status", note=f"status {status.state}")
