"""Names and values of the area; most are the replaced aws-account-operator's."""

from __future__ import annotations

from datetime import timedelta

GROUP = "aws.managed.openshift.io"
VERSION = "v1alpha1"

OPERATOR_NAMESPACE = "aws-account-operator"
CONFIG_MAP = "aws-account-operator-configmap"
PAYER_SECRET = "aws-account-operator-credentials"  # noqa: S105 - a name
LEADER_LOCK = "aws-account-operator-lock"

FINALIZER = "finalizer.aws.managed.openshift.io"
# Finalizer of the Secret with a customer's key, while a claim needs that key.
INPUT_SECRET_FINALIZER = "finalizer.aws.managed.openshift.io/byoc"  # noqa: S105 - a name
# Codes of two refusals to write a claim's Secret: it belongs to another owner, or to the payer or an Account.
SECRET_NOT_OURS = "SecretNotOurs"  # noqa: S105
SECRET_OF_THE_OPERATOR = "SecretOfTheOperator"  # noqa: S105
# Annotation of an Account that was released without a clean-up: the reason.
UNCLEANED = "perdure.dev/uncleaned"
# Annotation of an Account: the uid of its claim, since a later claim may have the same name.
CLAIM_UID_ANNOTATION = "perdure.dev/claim-uid"
# Annotation of a claim's Secret: the claim's uid, since another claim may name the same Secret.
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
CCS_ACCESS_ROLE = "RH-SRE-CCS-Access"  # a role of the payer; the ConfigMap has its ARN under CCS_ACCESS_KEY
CCS_ACCESS_KEY = "CCS-Access-Arn"
STS_SESSION_NAME = "RH-Account-Initialization"  # session name when the customer's role is assumed in STS mode
# The role of a fleet manager's claim, and its policies.
FLEET_ROLE = "managed-sts-role"
FLEET_POLICY = "AAO-CustomPolicy"
ADMINISTRATOR_POLICY = "AdministratorAccess"

# Tag of an AWS account: the `shard-name` of the installation that created it.
OWNER_TAG = "owner"

# Annotation of an Account: until when AWS's limit postpones its closing. The prefix is .io, unlike PAUSE_ANNOTATION's.
CLOSE_LIMITED_UNTIL = "aws.managed.openshift.io/close-rate-limited-until"
# Annotation of an Account that is being closed: the uid of its claim. It also tells a workflow without memory that
# the closing has begun.
CLOSING_FOR = "perdure.dev/closing-for"
CLOSE_BACKOFF_SECONDS = "aws.managed.openshift.io/close-backoff-seconds"

# The condition of an Account that waits for room under the account limit.
AT_LIMIT_CONDITION = "Pending"
AT_LIMIT_REASON = "AWSAccountLimitReached"

CREATION_TIMEOUT = timedelta(minutes=25)
REGION_INITIALIZATION_TIMEOUT = timedelta(seconds=3060)
# How many accounts AWS creates at the same time.
CREATED_AT_ONCE = 5
# How many accounts may opt in at the same time, and how many regions of one account may be pending.
# https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html
OPTING_IN_ACCOUNTS = 9
OPTING_IN_REGIONS = 6
# How many quota requests may be open in one account, and how many of these in one opt-in region.
# https://docs.aws.amazon.com/servicequotas/latest/userguide/reference_limits.html
QUOTA_REQUESTS = 20
QUOTA_REQUESTS_OF_OPT_IN_REGION = 2
FIRST_CLOSE_BACKOFF = timedelta(hours=1)
LONGEST_CLOSE_BACKOFF = timedelta(hours=24)

# Codes of refusals before any call to AWS: nothing of ours can be in such an account.
PROTECTED = "ProtectedAccount"
NO_ACCOUNT_ID = "InvalidAccountId"
# Code of a refusal on the way into an account: the payer's key is missing or refused, or AWS refuses the role.
NOT_ENTERED = "NotEntered"

SUPPORT_CASE_SUBJECT = "Add account {account_id} to Enterprise Support"

# The dummy account and support case of the replaced operator's development mode, which creates neither.
DEVELOPMENT_ACCOUNT = "123456789012"
DEVELOPMENT_CASE = "11111111"
