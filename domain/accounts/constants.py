"""Names, strings and timings of the AWS account area, as the replaced aws-account-operator has them."""

from __future__ import annotations

from datetime import timedelta

GROUP = "aws.managed.openshift.io"
VERSION = "v1alpha1"

OPERATOR_NAMESPACE = "aws-account-operator"
CONFIG_MAP = "aws-account-operator-configmap"
PAYER_SECRET = "aws-account-operator-credentials"  # noqa: S105 - a name
LEADER_LOCK = "aws-account-operator-lock"

FINALIZER = "finalizer.aws.managed.openshift.io"
# On the Secret with a customer's key, while a claim needs it.
INPUT_SECRET_FINALIZER = "finalizer.aws.managed.openshift.io/byoc"  # noqa: S105 - a name
# On the Secret that a claim gets: the claim (its uid). Another one of the namespace may name the same Secret after it.
# Codes of refusals to write a claim's Secret: it is there and not the claim's; it is the payer's or an Account's.
SECRET_NOT_OURS = "SecretNotOurs"  # noqa: S105
SECRET_OF_THE_OPERATOR = "SecretOfTheOperator"  # noqa: S105
# On an Account, the uid of the claim that it was given to: a claim made later under the same name is another one.
CLAIM_UID_ANNOTATION = "perdure.dev/claim-uid"
# On a claim's Secret, the uid of the claim.
HOLDER_ANNOTATION = "perdure.dev/account-claim"
IAM_USER_ID_LABEL = "iamUserId"
PAUSE_ANNOTATION = "aws.managed.openshift.com/pause-reconciliation"  # .com, unlike the group
FAKE_ANNOTATION = "managed.openshift.com/fake"

# How long the suffix of a generated name is, and what stands before it.
SUFFIX_LENGTH = 6
NAME_PREFIX = "osd-creds-mgmt"
DEFAULT_EMAIL_DOMAIN = "redhat.com"

ACCESS_ROLE = "OrganizationAccountAccessRole"
SUPPORT_ROLE_PREFIX = "ManagedOpenShift-Support-"
ADMIN_USER_PREFIX = "osdManagedAdmin-"
ROLE_SESSION_NAME = "awsAccountOperator"
STS_SESSION_NAME = "RH-Account-Initialization"  # of the customer's role in STS mode
# Of a fleet manager's claim.
FLEET_ROLE = "managed-sts-role"
FLEET_POLICY = "AAO-CustomPolicy"
ADMINISTRATOR_POLICY = "AdministratorAccess"

REGION_INIT_TAG_NAME = "red-hat-region-init"
# Of an AWS account: the installation that made it, by its `shard-name`.
OWNER_TAG = "owner"

# How far AWS's limit on closing accounts has pushed back the next try; on the Account (.io, unlike the pause).
CLOSE_LIMITED_UNTIL = "aws.managed.openshift.io/close-rate-limited-until"
# The claim (its uid) for whose release a clean account is being closed: a new life of the lifecycle goes on with that.
CLOSING_FOR = "perdure.dev/closing-for"
CLOSE_BACKOFF_SECONDS = "aws.managed.openshift.io/close-backoff-seconds"

# Condition and reason of an Account that the organization has no room for.
AT_LIMIT_CONDITION = "Pending"
AT_LIMIT_REASON = "AWSAccountLimitReached"

CREATION_TIMEOUT = timedelta(minutes=25)
REGION_INITIALIZATION_TIMEOUT = timedelta(seconds=3060)
# The most accounts that opt in to regions at once, and the most regions that one of them is opting in to.
OPTING_IN_ACCOUNTS = 9
OPTING_IN_REGIONS = 6
# The most requests for a higher quota that an account may have open, and in an opt-in region.
# https://docs.aws.amazon.com/servicequotas/latest/userguide/reference_limits.html
QUOTA_REQUESTS = 20
QUOTA_REQUESTS_OF_OPT_IN_REGION = 2
FIRST_CLOSE_BACKOFF = timedelta(hours=1)
LONGEST_CLOSE_BACKOFF = timedelta(hours=24)

# Codes of what is refused before anything is asked of AWS: nothing of ours can be in such an account.
PROTECTED = "ProtectedAccount"
NO_ACCOUNT_ID = "InvalidAccountId"

SUPPORT_CASE_SUBJECT = "Add account {account_id} to Enterprise Support"

# What stands for an AWS account and its case in the replaced operator's development mode, which asks AWS for neither.
DEVELOPMENT_ACCOUNT = "123456789012"
DEVELOPMENT_CASE = "11111111"
