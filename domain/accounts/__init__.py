"""AWS account pools and federated access: the kinds of aws.managed.openshift.io, as aws-account-operator has them.

Who writes an object at each moment of its life:

| object | moment | writer |
|---|---|---|
| Account | created for a pool | the AccountPool's workflow |
| Account | from "" to Ready, Failed, deletion, `status.claimed` | the Account's workflow |
| Account `spec.claimLink`, `claimLinkNamespace`, `legalEntity` | binding | the AccountPool's workflow |
| Account `spec.claimLink` and status | release of its claim | the AccountClaim's workflow, then waking the Account |
| AccountClaim `spec.accountLink` | binding | the AccountPool's workflow |
| AccountClaim everything else | always | the AccountClaim's workflow |
| AccountPool `status` | always | the AccountPool's workflow |
| Account quotas in the spec, and blanking their status | they differ from the ConfigMap's | the validation's workflow |
| AWSFederatedRole, AWSFederatedAccountAccess | always | their own workflows; see `federated/` |
"""

from domain.accounts.constants import FINALIZER, GROUP, OPERATOR_NAMESPACE, VERSION
from domain.identity import Key, Kind

ACCOUNT_POOL = Kind(name="AccountPool", group=GROUP, version=VERSION, plural="accountpools", area="accounts")
ACCOUNT = Kind(name="Account", group=GROUP, version=VERSION, plural="accounts", area="accounts", finalizer=FINALIZER)
ACCOUNT_CLAIM = Kind(
    name="AccountClaim", group=GROUP, version=VERSION, plural="accountclaims", area="accounts", finalizer=FINALIZER
)

AWS_FEDERATED_ROLE = Kind(
    name="AWSFederatedRole",
    group=GROUP,
    version=VERSION,
    plural="awsfederatedroles",
    area="accounts",
    finalizer=FINALIZER,
)
AWS_FEDERATED_ACCOUNT_ACCESS = Kind(
    name="AWSFederatedAccountAccess",
    group=GROUP,
    version=VERSION,
    plural="awsfederatedaccountaccesses",
    area="accounts",
    finalizer=FINALIZER,
)

# No custom resource: the one workflow that hands out what is scarce in the organization.
ORGANIZATION = Kind(name="Organization", group="", version="", plural="", area="accounts")

THE_ORGANIZATION = Key(kind=ORGANIZATION.name, namespace=OPERATOR_NAMESPACE, name="aws", uid="0")

# The one that validates what stands already.
ACCOUNT_VALIDATION = Kind(name="AccountValidation", group="", version="", plural="", area="accounts")

THE_VALIDATION = Key(kind=ACCOUNT_VALIDATION.name, namespace=OPERATOR_NAMESPACE, name="aws", uid="0")

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
