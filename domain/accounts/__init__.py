"""AWS account pools and federated access: the API group aws.managed.openshift.io, as in the aws-account-operator.

Each object is written by its own workflow. The main exceptions:

| what is written | when | by which workflow |
|---|---|---|
| Account | creation for a pool | the AccountPool's |
| Account `spec.claimLink`, `claimLinkNamespace`, `legalEntity` | binding | the AccountPool's |
| Account `spec.claimLink` and status | release of its claim | the AccountClaim's, which wakes the Account |
| AccountClaim `spec.accountLink` | binding | the AccountPool's |
| Account quotas: set in the spec, removed from the status | a change of the ConfigMap | the AccountValidation's |
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

# Two workflows without an object: one grants what AWS limits for the whole organization, one validates accounts.
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
