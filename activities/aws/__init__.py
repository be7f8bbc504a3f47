"""AWS: Organizations, STS, IAM, EC2, S3, Route 53 and Support, as the account lifecycles use them.

| file | contents |
|---|---|
| `errors.py` | maps botocore's errors to `engine.errors` |
| `clients.py` | one boto3 client per service and region, shared by all accounts, signing as the caller |
| `session.py` | callers: the payer and the member accounts; protected accounts |
| `entering.py`, `customers.py` | callers in customers' accounts |
| `creation.py`, `closing.py` | CreateAccount and its outcome; CloseAccount |
| `organization.py` | accounts, organizational units, moves, tags |
| `identities.py`, `keys.py` | the support role, the admin user; the Secret with its key |
| `region_initialization.py`, `boot_times.py` | listing regions, and the launch that initialises one |
| `opt_in.py`, `quotas.py`, `cases.py` | opt-in regions, service quotas, support cases |
| `account_cleanup.py` | deleting the content of a released account |
| `federated*.py`, `fleet.py` | roles for federated accesses and fleet managers |
| `permissions.py` | every AWS action that the code calls, by caller |
| `activities.py` | the activities, by the names that `domain.accounts.actions` gives them |
"""
