"""Validation of a claim's spec, in the replaced operator's order and with its reasons. Perdure's own checks follow.

Only the first fault is reported. Secrets must be in the claim's namespace, because the claim's authors may lack the
right to read Secrets elsewhere.
"""

from __future__ import annotations

import re
from datetime import datetime

from domain.accounts.constants import NAME_PREFIX, OPERATOR_NAMESPACE, PAYER_SECRET
from domain.accounts.observed import ClaimWorld
from domain.accounts.resources import AccountClaim, ClaimState
from domain.accounts.state_conditions import with_reason
from domain.decision import Decision

Fault = tuple[str, str]

_ROLE = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role/\S+")
_ACCOUNT = re.compile(r"\d{12}")

# The limit of AWS Organizations (CreateOrganizationalUnit).
LONGEST_UNIT_NAME = 128


def invalid(world: ClaimWorld, now: datetime) -> Decision | None:
    claim, fault = world.claim, spec_fault(world.claim)
    if fault is None:
        return None
    reason, explanation = fault
    conditions = with_reason(claim.status.conditions, "InvalidAccountClaim", reason, "Invalid AccountClaim", now)
    writes = world.status_change(claim.status.model_copy(update={"state": ClaimState.ERROR, "conditions": conditions}))
    return world.waiting(explanation, "a corrected spec", *writes, phase=ClaimState.ERROR)


def spec_fault(claim: AccountClaim) -> Fault | None:
    if claim.spec.manual_sts_mode:
        return _sts_fault(claim)
    if claim.spec.byoc:
        return _byoc_fault(claim) or _operators_secret(claim)
    return _secret_elsewhere(claim) or _pool_fault(claim)


def is_operators_secret(namespace: str, name: str) -> bool:
    generated = name.startswith(f"{NAME_PREFIX}-") and name.endswith("-secret")
    return namespace == OPERATOR_NAMESPACE and (name == PAYER_SECRET or generated)


def sts_account(claim: AccountClaim) -> str:
    match = _ROLE.fullmatch(claim.spec.sts_role_arn)
    return match.group(1) if match else ""


def customers_account(claim: AccountClaim) -> str:
    return claim.spec.byoc_aws_account_id or (sts_account(claim) if claim.spec.manual_sts_mode else "")


def _sts_fault(claim: AccountClaim) -> Fault | None:
    spec = claim.spec
    if not spec.sts_role_arn:
        return "STSRoleARNMissing", "spec.stsRoleARN is empty: STS mode needs the role to assume"
    if fault := _secret_elsewhere(claim):
        return fault
    account = sts_account(claim)
    if not account:
        return "STSRoleARNInvalid", f"spec.stsRoleARN {spec.sts_role_arn!r} is not the ARN of an IAM role"
    if spec.byoc and spec.byoc_aws_account_id not in {"", account}:
        return (
            "STSRoleARNInvalid",
            f"spec.stsRoleARN is in account {account}, not in {spec.byoc_aws_account_id}",
        )
    return None if spec.byoc else _pool_fault(claim)


def _byoc_fault(claim: AccountClaim) -> Fault | None:
    spec = claim.spec
    if not spec.byoc_aws_account_id:
        return "BYOCAccountIDMissing", "spec.byocAWSAccountID is empty"
    if not spec.byoc_secret_ref.name or not spec.byoc_secret_ref.namespace:
        return "BYOCSecretRefMissing", "spec.byocSecretRef needs a name and a namespace"
    if not spec.aws_credential_secret.name or not spec.aws_credential_secret.namespace:
        return "AWSSecretRefMissing", "spec.awsCredentialSecret needs a name and a namespace"
    if spec.byoc_secret_ref.namespace != claim.metadata.namespace:
        where = f"{spec.byoc_secret_ref.namespace!r}, but the claim is in {claim.metadata.namespace!r}"
        return "BYOCSecretRefNamespaceMismatch", f"spec.byocSecretRef names namespace {where}"
    if fault := _secret_elsewhere(claim):
        return fault
    if not _ACCOUNT.fullmatch(spec.byoc_aws_account_id):
        return "BYOCAccountIDInvalid", f"spec.byocAWSAccountID {spec.byoc_aws_account_id!r} does not have twelve digits"
    return None


def _secret_elsewhere(claim: AccountClaim) -> Fault | None:
    secret = claim.spec.aws_credential_secret
    if not secret.namespace or secret.namespace == claim.metadata.namespace:
        return None
    where = f"{secret.namespace!r}, but the claim is in {claim.metadata.namespace!r}"
    return "AWSSecretRefNamespaceMismatch", f"spec.awsCredentialSecret names namespace {where}"


def _operators_secret(claim: AccountClaim) -> Fault | None:
    if not is_operators_secret(claim.metadata.namespace, claim.secret_name):
        return None
    what = f"spec.awsCredentialSecret names {claim.secret_name}, which holds the payer's or an Account's own key"
    return "AWSSecretRefReserved", f"{what}: name another Secret"


def _pool_fault(claim: AccountClaim) -> Fault | None:
    if not claim.secret_name:
        return "AWSSecretRefMissing", "spec.awsCredentialSecret.name is empty"
    if fault := _operators_secret(claim):
        return fault
    if not claim.spec.legal_entity.id.strip() and not claim.fake:
        return "LegalEntityIDMissing", "spec.legalEntity.id is empty, but the account's OU is named after it"
    if len(claim.spec.legal_entity.id) > LONGEST_UNIT_NAME:
        why = f"spec.legalEntity.id names the account's OU, so it may have at most {LONGEST_UNIT_NAME} characters"
        return "LegalEntityIDTooLong", why
    return None
