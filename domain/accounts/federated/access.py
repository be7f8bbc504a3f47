r"""The lifecycle of an AWSFederatedAccountAccess.

    "" --account found, labels--> policy --> role --> policies attached --> Ready
         \________________________\_________\____________\__> Failed (retried)
    Ready --its role or its spec changes--> the same steps, changing only what differs --> Ready
    deleted --> role and policies deleted --> gone

If AWS refuses to update a Ready access, it stays Ready, with the condition `Synced` False. If AWS refuses the deletion
(e.g. the customer has revoked the keys), the deletion is retried for a day, unless a person abandons the access before.
After that, role and policies stay in AWS.
"""

from __future__ import annotations

import hashlib
import json
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
from domain.accounts.federated.custom_policy import document
from domain.accounts.federated.iam_names import LONGEST_ROLE, name_fault, named, uid_of
from domain.accounts.federated.observed import FederatedAccessWorld
from domain.accounts.federated.resources import AccessState, AWSFederatedRole, CustomPolicy
from domain.control_annotations import retry_wanted
from domain.decision import Action, Decision
from domain.refusal import ErrorType, Refusal
from domain.resource import SecretReference
from domain.writes import JsonPatch

GIVE_UP_AFTER = timedelta(hours=24)
NAMESPACE_MISMATCH = "AWSCustomerCredentialSecretNamespaceMismatch"
# Differs from every digest, so all steps are repeated after a person's retry.
NOTHING_GRANTED = "anew"
NO_ROLE = "Requested role does not exist"
# Messages of failures that occur after the account was identified.
_BEYOND = frozenset(message for step, message in FAILED_TO.items() if step != IdentifyCustomer.activity)


def decide(world: FederatedAccessWorld, now: datetime) -> Decision:
    access, role = world.access, world.role
    if not world.exists:
        return world.gone()
    if unknown := world.partition_unknown():
        return unknown
    if access.metadata.deleting:
        return _ending(world, now)
    if fault := spec_fault(world):
        return _faulty(world, f"Invalid spec: {fault}", "a corrected spec", now)
    if role is None or role.metadata.deleting:
        return _faulty(world, NO_ROLE, str(access.owner), now)
    if fault := name_fault(role.metadata.name, LONGEST_ROLE):
        return _faulty(world, FAILED_TO[EnsureAccessRole.activity], "an AWSFederatedRole with a valid name", now, fault)
    if patch := _marks(world, role):
        return world.working("set the finalizer and labels", world.write(patch, note="finalizer and labels"))
    if token := retry_wanted(access.metadata):
        if is_granted(world, role):  # the granted objects may have changed in AWS
            afresh = access.status.model_copy(update={"granted": NOTHING_GRANTED})
            return world.working("compare the role and its policies with AWS again", world.write_status(afresh))
        return world.retried(token)
    if is_granted(world, role):
        return world.settled(f"role {role_name(world, role)} exists in account {access.place.account_id}")
    return _granting(world, role, now)


def spec_fault(world: FederatedAccessWorld) -> str:
    access = world.access
    secret = access.spec.aws_customer_credential_secret
    if secret.namespace and secret.namespace != access.metadata.namespace:
        return NAMESPACE_MISMATCH
    return "" if secret.name else "awsCustomerCredentialSecret does not name a Secret"


def is_granted(world: FederatedAccessWorld, role: AWSFederatedRole) -> bool:
    status = world.access.status
    return status.state == AccessState.READY and status.granted == wanted_digest(world, role)


def wanted_digest(world: FederatedAccessWorld, role: AWSFederatedRole) -> str:
    spec, principal = role.spec, world.access.spec.external_customer_aws_iam_arn
    custom = spec.aws_custom_policy if spec.aws_custom_policy.name else CustomPolicy()
    content = (
        *(role.metadata.name, world.config.partition, principal, spec.role_description),
        *(sorted(set(spec.aws_managed_policies)), custom.name, document(custom)),
    )
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def role_name(world: FederatedAccessWorld, role: AWSFederatedRole) -> str:
    return named(role.metadata.name, uid_of(world.access))


def _marks(world: FederatedAccessWorld, role: AWSFederatedRole) -> JsonPatch:
    """The patch for missing labels and finalizer; empty if nothing is missing. The labels identify the access's objects
    in AWS.
    """
    meta, place = world.access.metadata, world.access.place
    wanted = {UID_LABEL: uid_of(world.access), ROLE_LABEL: role.metadata.name}
    if not place.role and _moved_from(world, role):  # the label leads to the former IAM role until that role is deleted
        del wanted[ROLE_LABEL]
    if place.role:  # a changed label does not change the account of an existing role
        wanted[ACCOUNT_LABEL] = place.account_id
    labels = {name: value for name, value in wanted.items() if meta.labels.get(name) != value}
    patch: dict[str, object] = {"labels": labels} if labels else {}
    if FINALIZER not in meta.finalizers:
        patch["finalizers"] = [*meta.finalizers, FINALIZER]
    return {"metadata": patch} if patch else {}


def _granting(world: FederatedAccessWorld, role: AWSFederatedRole, now: datetime) -> Decision:
    access, known = world.access, world.known
    digest = wanted_digest(world, role)
    # The label alone proves nothing: it may have been copied from another access or restored from a backup.
    written_down = access.place.role or not known.account_id
    account_id = access.place.account_id if written_down and _begun(world) else known.account_id
    if not account_id:
        return _step(world, IdentifyCustomer(secret=_secret(world), partition=world.config.partition), now)
    if account_id != access.place.account_id:
        patch: JsonPatch = {"metadata": {"labels": {ACCOUNT_LABEL: account_id}}}
        return world.working(f"record that its account is {account_id}", world.write(patch, note="account label"))
    if moved := _moved_from(world, role):
        return _moving(world, moved, now)
    steps = _steps(world, role, digest)
    if steps:
        return _step(world, steps[0], now)
    status = ready(access.status, world.config.partition, account_id, role_name(world, role), digest, now)
    return world.working("Account Access Ready", world.write_status(status))


def _begun(world: FederatedAccessWorld) -> bool:
    access, known = world.access, world.known
    done = access.place.role or known.policy or known.role or known.attached
    created = any(each.type == AccessState.READY or each.message in _BEYOND for each in access.status.conditions)
    return bool(access.place.account_id) and (bool(done) or created)


def _steps(world: FederatedAccessWorld, role: AWSFederatedRole, digest: str) -> tuple[Action, ...]:
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
        steps.append(
            EnsureAccessPolicy(**common, name=custom_name, description=custom.description, document=document(custom))
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
    if world.known.moved_from != before:
        return _step(world, _revoke(world, before, moving=True), now)
    status = world.access.status.model_copy(update={"state": AccessState.NEW, "console_url": "", "granted": ""})
    return world.working(f"role {before} is deleted", world.write_status(status))


def _moved_from(world: FederatedAccessWorld, role: AWSFederatedRole) -> str:
    # The spec may have named another AWSFederatedRole before.
    recorded, place = _recorded_role(world), world.access.place
    deleted = not place.role and recorded == world.known.moved_from
    return "" if deleted or recorded == role_name(world, role) else recorded


def _recorded_role(world: FederatedAccessWorld) -> str:
    access = world.access
    label = access.metadata.labels.get(ROLE_LABEL, "")
    begun = named(label, uid_of(access)) if label and _begun(world) else ""
    return access.place.role or world.known.made or begun


def _step(world: FederatedAccessWorld, action: Action, now: datetime) -> Decision:
    refusal = world.refused(action.slot)
    if refusal is None or refusal.type is ErrorType.BUG:
        return world.working(action.summary, action)
    status = failed(world.access.status, FAILED_TO.get(action.activity, "Failed to remove role"), refusal, now)
    return world.waiting(refusal.message, _what_lifts(world, refusal), *world.status_change(status), action)


def _what_lifts(world: FederatedAccessWorld, refusal: Refusal) -> str:
    secret = _secret(world)
    if refusal.type is ErrorType.DENIED:
        return f"valid credentials in Secret {secret.namespace}/{secret.name}"
    return str(world.access.owner) if refusal.type is ErrorType.INVALID else "AWS IAM"


def _faulty(world: FederatedAccessWorld, message: str, waits_for: str, now: datetime, detail: str = "") -> Decision:
    status = faulty(world.access.status, message, now)
    why = f"{message}: {detail}" if detail else message
    return world.waiting(why, waits_for, *world.status_change(status), phase=AccessState.FAILED)


def _ending(world: FederatedAccessWorld, now: datetime) -> Decision:
    access = world.access
    place = access.place
    if waits := world.given_up():
        return waits
    if not (place.uid and place.account_id):
        return world.working("nothing was created for it", world.drop_finalizer())
    if world.known.revoked:
        return world.working("its role is deleted", world.drop_finalizer())
    action = _revoke(world, _recorded_role(world) or named(access.spec.aws_federated_role.name, place.uid))
    refusal = world.refused(action.slot)
    if refusal is None:
        return world.working(action.summary, action)
    until = (access.metadata.deletion_timestamp or now) + GIVE_UP_AFTER
    if now >= until:
        left = f"these remain in the customer's account: {'; '.join(access.outside)}"
        return world.working(f"gave up; {left} ({refusal.message})", world.drop_finalizer())
    at = "it is released, and its role stays in the customer's account"
    return world.waiting(refusal.message, _what_lifts(world, refusal), action, deadline=until, at=at)


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


def _secret(world: FederatedAccessWorld) -> SecretReference:
    name = world.access.spec.aws_customer_credential_secret.name
    return SecretReference(name=name, namespace=world.access.metadata.namespace)
