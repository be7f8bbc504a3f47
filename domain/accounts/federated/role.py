"""The lifecycle of an AWSFederatedRole.

    "" --IAM validates the policies--> Valid | Invalid --spec changes--> validated again, its accesses woken
    deleted --> its accesses deleted --> all gone --> finalizer removed

A Valid status of the replaced operator is trusted. A deleted role waits for its accesses, which need the role to find
their objects in AWS. With `fedramp`, roles are ignored.
"""

from __future__ import annotations

from datetime import UTC, datetime

from domain.accounts.constants import FINALIZER
from domain.accounts.federated.actions import ClearValidation, DeleteAccesses, StampAccesses, ValidatePolicies
from domain.accounts.federated.iam_names import LONGEST_POLICY, name_fault
from domain.accounts.federated.observed import FederatedRoleWorld, Verdict
from domain.accounts.federated.resources import AWSFederatedRole, FederatedRoleStatus, RoleState
from domain.accounts.state_conditions import with_reason
from domain.control_annotations import retry_wanted
from domain.decision import Decision
from domain.identity import Key
from domain.resource import condition_of
from domain.writes import JsonPatch

NOTHING = "NoAWSCustomPolicyOrAWSManagedPolicies"
BAD_CUSTOM = "InvalidCustomerPolicy"
BAD_MANAGED = "InvalidManagedPolicy"
ALL_VALID = "AllPoliciesValid"
MESSAGES = {
    NOTHING: "AWSCustomPolicy and/or AWSManagedPolicies do not exist",
    BAD_CUSTOM: "Custom Policy is malformed",
    BAD_MANAGED: "Managed policy does not exist",
    ALL_VALID: "All managed and custom policies are validated",
}
# Go's RFC 850 format, which the annotation has always had.
_RFC850 = "%A, %d-%b-%y %H:%M:%S UTC"


def decide(world: FederatedRoleWorld, now: datetime) -> Decision:
    role = world.role
    if not world.exists:
        return world.gone()
    if role.metadata.deleting:
        return _ending(world)
    if unknown := world.partition_unknown():
        return unknown
    if world.config.fedramp:
        return world.settled("the ConfigMap says fedramp: federated roles are not reconciled", phase="Skipped")
    if FINALIZER not in role.metadata.finalizers:
        patch: JsonPatch = {"metadata": {"finalizers": [*role.metadata.finalizers, FINALIZER]}}
        return world.working("set the finalizer", world.write(patch, note="finalizer"))
    if token := retry_wanted(role.metadata):
        return _retried(world, token)
    if is_validated(role):
        return _all_stamped(world)
    verdict = _verdict(world)
    if verdict is None:
        return _judging(world)
    living = _living(world)
    if verdict.valid and living and world.known.stamped != verdict.generation:
        stamp = now.astimezone(UTC).strftime(_RFC850)
        stamping = StampAccesses(accesses=living, stamp=stamp, generation=verdict.generation)
        return world.working("wake its accesses", stamping)
    return world.working(verdict.detail or verdict.message, world.write_status(status_of(role, verdict, now)))


def is_validated(role: AWSFederatedRole) -> bool:
    """Whether the status, which people may edit, shows a validation of the current spec."""
    generation, state = role.metadata.generation, role.status.state
    fault = _fault(role, generation)
    empty = fault is not None and fault.reason == NOTHING
    given = state in {RoleState.VALID, RoleState.INVALID} or (empty and state == RoleState.NEW)
    validated = condition_of(role.status.conditions, state or RoleState.INVALID) is not None
    return given and validated and role.status.observed_generation == generation


def _all_stamped(world: FederatedRoleWorld) -> Decision:
    role = world.role
    if role.status.state == RoleState.VALID:
        return world.settled(MESSAGES[ALL_VALID])
    faults = [c for c in role.status.conditions if c.type == RoleState.INVALID]
    why = (faults[-1].message or "") if faults else MESSAGES[NOTHING]
    if fault := _fault(role, role.metadata.generation):
        why = fault.detail or why
    return world.waiting(why, "a corrected spec", phase=RoleState.INVALID)


def _retried(world: FederatedRoleWorld, token: str) -> Decision:
    if is_validated(world.role):
        status = world.role.status.model_copy(update={"observed_generation": 0, "state": RoleState.NEW})
        return world.working("validate the policies again", world.write_status(status))
    return world.retried(token)


def _verdict(world: FederatedRoleWorld) -> Verdict | None:
    role, generation = world.role, world.role.metadata.generation
    if world.known.verdict is not None and world.known.verdict.generation == generation:
        return world.known.verdict
    if role.status.state == RoleState.VALID and not role.status.observed_generation:
        return verdict_of(generation, ALL_VALID, "the replaced operator has validated the role")
    return _fault(role, generation)


def _fault(role: AWSFederatedRole, generation: int) -> Verdict | None:
    custom, managed = role.spec.aws_custom_policy, role.spec.aws_managed_policies
    if not custom.name and not managed:
        return verdict_of(generation, NOTHING)
    if custom.name and (fault := name_fault(custom.name, LONGEST_POLICY)):
        return verdict_of(generation, BAD_CUSTOM, f"the custom policy's name {fault}")
    return None


def verdict_of(generation: int, reason: str, detail: str = "") -> Verdict:
    valid, message = reason == ALL_VALID, MESSAGES[reason]
    return Verdict(generation=generation, valid=valid, reason=reason, message=message, detail=detail)


def _judging(world: FederatedRoleWorld) -> Decision:
    role, spec = world.role, world.role.spec
    custom = spec.aws_custom_policy
    action = ValidatePolicies(
        uid=role.metadata.uid,
        generation=role.metadata.generation,
        custom=custom,
        managed=tuple(dict.fromkeys(spec.aws_managed_policies)),
    )
    if refusal := world.refused(action.slot):
        why = f"its policies cannot be validated: {refusal.message}"
        return world.waiting(why, "AWS IAM of the payer's account", action)
    return world.working("validate the policies with IAM", action)


def status_of(role: AWSFederatedRole, verdict: Verdict, now: datetime) -> FederatedRoleStatus:
    type_ = RoleState.VALID if verdict.valid else RoleState.INVALID
    state = RoleState.NEW if verdict.reason == NOTHING else type_
    conditions = with_reason(role.status.conditions, type_, verdict.reason, verdict.message, now)
    return FederatedRoleStatus(state=state, conditions=conditions, observed_generation=verdict.generation)


def _living(world: FederatedRoleWorld) -> tuple[Key, ...]:
    return tuple(seen.key for seen in world.accesses if not seen.deleting)


def _ending(world: FederatedRoleWorld) -> Decision:
    role = world.role
    if waits := world.given_up():
        return waits
    if living := _living(world):
        return world.working(f"delete its accesses ({len(living)})", DeleteAccesses(accesses=living))
    if world.accesses:
        names = ", ".join(f"{seen.key.namespace}/{seen.key.name}" for seen in world.accesses[:5])
        why = f"{len(world.accesses)} accesses are still being cleaned up: {names}"
        return world.waiting(why, tuple(str(seen.key) for seen in world.accesses[:5]))
    clear = ClearValidation(uid=role.metadata.uid)
    # Remains of an interrupted validation do not block the deletion: the audit finds them.
    if role.spec.aws_custom_policy.name and not world.known.cleared and world.refused(clear.slot) is None:
        return world.working(clear.summary, clear)
    return world.working("nothing that Perdure created for it is left", world.drop_finalizer())
