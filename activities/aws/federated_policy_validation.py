"""Checks whether IAM accepts a federated role's policies."""

from __future__ import annotations

from activities.aws.iam_policies import made, managed_policies, name_of, remove_policy
from activities.aws.session import Payer, Sessions
from domain.accounts.arns import policy_arn
from domain.accounts.federated import VALIDATION_PATH, VALIDATION_PREFIX
from domain.accounts.federated.actions import ClearValidation, ValidatePolicies
from domain.accounts.federated.custom_policy import document
from domain.accounts.federated.observed import Verdict
from domain.accounts.federated.role import ALL_VALID, BAD_CUSTOM, BAD_MANAGED, verdict_of
from engine.errors import Conflict, Invalid


def validate_policies(sessions: Sessions, action: ValidatePolicies) -> Verdict:
    payer = sessions.payer()
    fault = _custom_fault(payer, action) if action.custom.name else None
    if fault is not None:
        return verdict_of(action.generation, BAD_CUSTOM, fault)
    known = managed_policies(payer.iam()) if action.managed else {}
    missing = [name for name in action.managed if name_of(name) not in known]
    if missing:
        return verdict_of(action.generation, BAD_MANAGED, f"AWS has no managed policy {', '.join(missing)}")
    return verdict_of(action.generation, ALL_VALID)


def clear_validation(sessions: Sessions, action: ClearValidation) -> None:
    payer = sessions.payer()
    remove_policy(payer.iam(), _validation_arn(payer, action.uid))


def _custom_fault(payer: Payer, action: ValidatePolicies) -> str | None:
    """Why IAM refuses the policy; None if IAM accepts it. The policy is deleted again."""
    iam, arn = payer.iam(), _validation_arn(payer, action.uid)

    def make() -> bool:
        return made(
            lambda: iam.create_policy(
                Path=VALIDATION_PATH,
                PolicyName=f"{VALIDATION_PREFIX}{action.uid}",
                Description=action.custom.description,
                PolicyDocument=document(action.custom),
            )
        )

    try:
        if not make():
            remove_policy(iam, arn)  # an interrupted attempt has left the policy behind
            make()
    except Invalid as error:
        return error.message
    except Conflict as error:
        if error.code != "LimitExceeded" or "PolicySize" not in error.message:
            raise
        return error.message
    remove_policy(iam, arn)
    return None


def _validation_arn(payer: Payer, uid: str) -> str:
    path = VALIDATION_PATH.strip("/")
    return policy_arn(payer.partition, payer.identity().account_id, f"{path}/{VALIDATION_PREFIX}{uid}")
