"""Federated access: an outside identity may assume a role that Perdure creates in the customer's account.

| kind | is | written by |
|---|---|---|
| AWSFederatedRole | permissions: a custom policy and AWS's managed ones | its own workflow; people |
| AWSFederatedAccountAccess | an IAM role in one account, for one outside identity | its own workflow; people |
| annotation `lastRoleUpdate` of an access | when its AWSFederatedRole was last validated | that role's workflow |

Objects in the customer's account are found by their names, `<role>-<uid>` and `<custom policy>-<uid>`, where `uid` is a
label of the access, written before anything is created. Names, texts and conditions are the aws-account-operator's.
"""

LAST_ROLE_UPDATE = "lastRoleUpdate"
UID_LABEL = "uid"
ACCOUNT_LABEL = "awsAccountID"
ROLE_LABEL = "awsFederatedRoleName"

# Tag of the role and policy in the customer's account: the uid of the access that owns them.
ACCESS_TAG = "perdure.dev/access-uid"
# Path and name of a custom policy in the payer's account, while IAM validates it.
VALIDATION_PATH = "/perdure/validation/"
VALIDATION_PREFIX = "perdure-validation-"
CLEANUP_SESSION = "FederatedRoleCleanup"
