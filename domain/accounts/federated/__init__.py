"""Federated access: an outside identity of a customer may assume a role that Perdure makes in the customer's account.

| kind | is | written by |
|---|---|---|
| AWSFederatedRole | what such a role may do: a custom policy, AWS's managed ones | its own workflow; people |
| AWSFederatedAccountAccess | that role in one account for one outside identity | its own workflow; people |
| its annotation `lastRoleUpdate` | that the role it names was validated anew | the AWSFederatedRole's workflow |

What is made in the customer's account is named so that it is found again: `<role>-<uid>` and `<custom policy>-<uid>`,
where `uid` is a label of the access. The label, and the account's id, are written before anything is made there. What
Perdure makes also carries the tag `perdure.dev/access-uid`, the uid of the object.

The names, strings and conditions are those of the aws-account-operator.
"""

LAST_ROLE_UPDATE = "lastRoleUpdate"
UID_LABEL = "uid"
ACCOUNT_LABEL = "awsAccountID"
ROLE_LABEL = "awsFederatedRoleName"

# On the role and policy in the customer's account: whose they are.
ACCESS_TAG = "perdure.dev/access-uid"
# In the payer's account, for the seconds in which IAM judges a custom policy.
VALIDATION_PATH = "/perdure/validation/"
VALIDATION_PREFIX = "perdure-validation-"
CLEANUP_SESSION = "FederatedRoleCleanup"
