"""AWS: Organizations, STS, IAM, EC2, S3, Route 53 and Support, as the lifecycles use them.

`activities.py` has the activities. `session.py` has the callers, which are identities that call AWS. `permissions.py`
lists every AWS action that the code calls.
"""
