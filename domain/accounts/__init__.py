"""AWS account pools and federated access: the kinds of aws.managed.openshift.io, as in aws-account-operator.

Each object is written by its own workflow, except:

| object | moment | writer |
|---|---|---|
| Account | created for a pool | the AccountPool's workflow |
| Account `spec.claimLink`, `claimLinkNamespace`, `legalEntity` | binding | the AccountPool's workflow |
| Account `spec.claimLink` and status | release of its claim | the AccountClaim's workflow, then waking the Account |
| AccountClaim `spec.accountLink` | binding | the AccountPool's workflow |
| Account quotas in the spec, and blanking their status | they differ from the ConfigMap's | the validation's workflow |
"""

from domain.accounts.constants import FINALIZER, GROUP, OPERATOR_NAMESPACE, VERSION
from domain.identity import Key, Kind


def _kind(name: str, finalizer: str = FINALIZER) -> Kind:
    plural = f"{name.lower()}es" if name.endswith("s") else f"{name.lower()}s"
    return Kind(name=name, group=GROUP, version=VERSION, plural=plural, area="accounts", finalizer=finalizer)


def _standing(name: str) -> tuple[Kind, Key]:
    kind = Kind(name=name, group="", version="", plural="", area="accounts")
    return kind, Key(kind=name, namespace=OPERATOR_NAMESPACE, name="aws", uid="0")


ACCOUNT_POOL = _kind("AccountPool", finalizer="")
ACCOUNT = _kind("Account")
ACCOUNT_CLAIM = _kind("AccountClaim")
AWS_FEDERATED_ROLE = _kind("AWSFederatedRole")
AWS_FEDERATED_ACCOUNT_ACCESS = _kind("AWSFederatedAccountAccess")

# Hands out scarce resources of the organization, and validates existing accounts.
ORGANIZATION, THE_ORGANIZATION = _standing("Organization")
ACCOUNT_VALIDATION, THE_VALIDATION = _standing("AccountValidation")

STANDING = (THE_ORGANIZATION, THE_VALIDATION)
KINDS = (
    ACCOUNT_POOL,
    ACCOUNT,
    ACCOUNT_CLAIM,
    AWS_FEDERATED_ROLE,
    AWS_FEDERATED_ACCOUNT_ACCESS,
    ORGANIZATION,
    ACCOUNT_VALIDATION,
)
