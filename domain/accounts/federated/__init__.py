"""Federated access: an outside identity may assume a role that Perdure creates in the customer's account.

| kind | is | written by |
|---|---|---|
| AWSFederatedRole | permissions: a custom policy and AWS's managed ones | its own workflow; people |
| AWSFederatedAccountAccess | that role in one account for one outside identity | its own workflow; people |
| its annotation `lastRoleUpdate` | the time of its role's last validation | the AWSFederatedRole's workflow |

Objects in the customer's account are found by their names, `<role>-<uid>` and `<custom policy>-<uid>`, where `uid` is a
label of the access, written before the first creation. Names, texts and conditions are aws-account-operator's.
"""

LAST_ROLE_UPDATE = "lastRoleUpdate"
UID_LABEL = "uid"
ACCOUNT_LABEL = "awsAccountID"
ROLE_LABEL = "awsFederatedRoleName"

# On the role and policy in the customer's account: their owner.
ACCESS_TAG = "perdure.dev/access-uid"
# In the payer's account, while IAM validates a custom policy.
VALIDATION_PATH = "/perdure/validation/"
VALIDATION_PREFIX = "perdure-validation-"
CLEANUP_SESSION = "FederatedRoleCleanup"
