"""AWS: Organizations, STS, IAM, EC2, S3, Route 53 and Support, as the lifecycles use them.

`activities.py` has the activities; `session.py` the callers; `permissions.py` every AWS action that the code calls.
"""
