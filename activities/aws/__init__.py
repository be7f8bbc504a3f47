"""AWS: Organizations, STS, IAM, EC2, S3, Route 53 and Support, as the account lifecycles use them.

| file | contents |
|---|---|
| `errors.py` | maps botocore's errors to `engine.errors` |
| `clients.py` | one botocore client per service and region, shared by all accounts, signing as the caller |
| `session.py` | callers: the payer (from its Secret) and the member accounts (by AssumeRole); protected accounts |
| `attempt.py` | the attempt of an activity: number, age, delays, cancellation |
| `creation.py` | CreateAccount, its outcome, tags |
| `organization.py` | the organization's pass: census, organizational units, moves; plain functions |
| `identities.py` | the support role, the admin user and its key; their rotation and deletion |
| `keys.py` | the Secret that holds the admin user's key |
| `region_initialization.py` | listing regions, and the launch that initialises one |
| `closing.py` | CloseAccount |
| `opt_in.py` | regions that AWS enables on request only |
| `quotas.py` | requests for higher service quotas |
| `cases.py` | support cases |
| `account_cleanup.py` | deleting the content of a released account |
| `permissions.py` | every AWS action that the code calls, by who calls it |
| `activities.py` | the activities, by the names that `domain.accounts.actions` gives them |
"""
