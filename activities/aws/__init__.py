"""AWS: Organizations, STS, IAM, EC2, S3, Route 53 and Support, as the account lifecycles use them.

| file | contents |
|---|---|
| `errors.py` | maps botocore's errors to `engine.errors` |
| `clients.py` | one boto3 client per service and region, shared by all accounts, signing as the caller |
| `session.py` | callers: the payer and the member accounts; protected accounts |
| `customer_account_access.py`, `customer_credentials.py` | callers in customers' accounts |
| `account_creation.py`, `account_closing.py` | CreateAccount and its outcome; CloseAccount |
| `organization.py`, `account_moves.py` | accounts, tags, organizational units; moves between units |
| `account_drift.py` | accounts in the wrong unit, or with other tags |
| `iam_identities.py`, `admin_key_secret.py` | the support role, the admin user; the Secret with its key |
| `region_initialization.py`, `boot_times.py` | listing regions, and the launch that initialises one |
| `opt_in_regions.py`, `service_quotas.py`, `support_cases.py` | opt-in regions, service quotas, support cases |
| `account_cleanup.py` | deleting the content of a released account |
| `federated_policy_validation.py` | whether IAM accepts a federated role's policies |
| `federated_access.py`, `federated_revocation.py`, `iam_policies.py` | roles and policies of federated accesses |
| `fleet_manager_role.py` | the role of fleet managers |
| `permissions.py` | every AWS action that the code calls, by caller |
| `activities.py` | the activities, by the names that `domain.accounts.actions` gives them |
"""
