"""The names and values that the replaced aws-account-operator uses, too."""

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
# Refusals to write a claim's Secret: it exists and is not the claim's; it is the payer's or an Account's.
SECRET_NOT_OURS = "SecretNotOurs"  # noqa: S105
SECRET_OF_THE_OPERATOR = "SecretOfTheOperator"  # noqa: S105
# On an Account that was released without a clean-up: why.
UNCLEANED = "perdure.dev/uncleaned"
# On an Account, since a later claim may have the same name.
CLAIM_UID_ANNOTATION = "perdure.dev/claim-uid"
# On a claim's Secret, since another claim may name the same Secret.
HOLDER_ANNOTATION = "perdure.dev/account-claim"
IAM_USER_ID_LABEL = "iamUserId"
PAUSE_ANNOTATION = "aws.managed.openshift.com/pause-reconciliation"  # .com, unlike the group
FAKE_ANNOTATION = "managed.openshift.com/fake"

SUFFIX_LENGTH = 6
NAME_PREFIX = "osd-creds-mgmt"
DEFAULT_EMAIL_DOMAIN = "redhat.com"

ACCESS_ROLE = "OrganizationAccountAccessRole"
SUPPORT_ROLE_PREFIX = "ManagedOpenShift-Support-"
ADMIN_USER_PREFIX = "osdManagedAdmin-"
ROLE_SESSION_NAME = "awsAccountOperator"
CCS_ACCESS_ROLE = "RH-SRE-CCS-Access"  # the payer's; its ARN is in this key of the ConfigMap
CCS_ACCESS_KEY = "CCS-Access-Arn"
STS_SESSION_NAME = "RH-Account-Initialization"  # for the customer's role in STS mode
# For fleet managers' claims.
FLEET_ROLE = "managed-sts-role"
FLEET_POLICY = "AAO-CustomPolicy"
ADMINISTRATOR_POLICY = "AdministratorAccess"

REGION_INIT_TAG_NAME = "red-hat-region-init"
# On an AWS account: the installation that created it, by its `shard-name`.
OWNER_TAG = "owner"

# On an Account: until when closing is postponed by AWS's limit (.io, unlike the pause).
CLOSE_LIMITED_UNTIL = "aws.managed.openshift.io/close-rate-limited-until"
# On an Account: the uid of the claim for whose release it is being closed, for a workflow without memory.
CLOSING_FOR = "perdure.dev/closing-for"
CLOSE_BACKOFF_SECONDS = "aws.managed.openshift.io/close-backoff-seconds"

# Of an Account.
AT_LIMIT_CONDITION = "Pending"
AT_LIMIT_REASON = "AWSAccountLimitReached"

CREATION_TIMEOUT = timedelta(minutes=25)
REGION_INITIALIZATION_TIMEOUT = timedelta(seconds=3060)
# The most accounts that opt in at once, and the most pending regions of one account.
OPTING_IN_ACCOUNTS = 9
OPTING_IN_REGIONS = 6
# The most open requests of an account, and in an opt-in region.
# https://docs.aws.amazon.com/servicequotas/latest/userguide/reference_limits.html
QUOTA_REQUESTS = 20
QUOTA_REQUESTS_OF_OPT_IN_REGION = 2
FIRST_CLOSE_BACKOFF = timedelta(hours=1)
LONGEST_CLOSE_BACKOFF = timedelta(hours=24)

# Refused before any call to AWS: nothing of ours can be in such an account.
PROTECTED = "ProtectedAccount"
NO_ACCOUNT_ID = "InvalidAccountId"

SUPPORT_CASE_SUBJECT = "Add account {account_id} to Enterprise Support"

# Of the replaced operator's development mode, which creates neither.
DEVELOPMENT_ACCOUNT = "123456789012"
DEVELOPMENT_CASE = "11111111"
