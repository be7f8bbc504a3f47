"""The event consumer: hands EC2's events from SQS to the workflows of their instances.

A message is deleted once its events are recorded in their workflows and the labels written or unnecessary
(`domain/instances/message_acknowledgement.py`). Until then SQS redelivers it, and workflows recognise duplicates. So
several consumers can run without a leader, and any can be killed.
"""
