"""Clusters that the AWS provider set up: the queue and rule of each cluster, under the provider's names.

The names derive from the Cluster's name. In the queue's name dots become dashes, so `a.b` and `a-b` share a queue.
After the takeover the rule has no list of instances (and no limit of 86) and matches all six states; its shape stays
one that the provider can read and extend if it is switched on again. Notices of Spot, Auto Scaling and Health arrive by
the region's own rules (`event_topology.py`).
"""

from __future__ import annotations

import json

from domain.instances.constants import EC2_SOURCE, STATE_CHANGE
from domain.instances.event_topology import Queue, Rule, Target, all_states, queue_arn_of, rule_arn_of, rule_name
from domain.model import Model
from domain.schema import Document

_LONGEST_QUEUE_NAME = 80
_QUEUE_SUFFIX = "-queue"
_SID_PREFIX = "CAPAEvents_"


class ClusterTopology(Model):
    queue: Queue
    rule: Rule


def cluster_queue_name(cluster: str) -> str:
    return f"{cluster.replace('.', '-')}{_QUEUE_SUFFIX}"


def cluster_rule_name(cluster: str) -> str:
    return f"{cluster}-ec2-rule"


def cluster_of_queue(queue: str) -> str:
    """The name of the Cluster that may have this queue, with dashes in place of dots; empty if the provider gives no
    queue such a name.
    """
    cluster = queue.removesuffix(_QUEUE_SUFFIX)
    return cluster if cluster_queue_name(cluster) == queue else ""


def rules_of_policy(queue: str, policy: str) -> tuple[str, ...]:
    try:
        statements = json.loads(policy)["Statement"]
        named = [str(each.get("Sid", "")) for each in statements]
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()
    rules = (each.removeprefix(_SID_PREFIX).removesuffix(f"_{queue}") for each in named)
    return tuple(rule for rule, sid in zip(rules, named, strict=True) if sid == _sid(rule, queue))


def _sid(rule: str, queue: str) -> str:
    return f"{_SID_PREFIX}{rule}_{queue}"


def cluster_topology(account: str, region: str, cluster: str) -> ClusterTopology:
    """The provider's queue and rule of a Cluster. Raises ValueError if its name is longer than 55 characters."""
    queue_name, name = cluster_queue_name(cluster), rule_name(cluster_rule_name(cluster))
    if len(queue_name) > _LONGEST_QUEUE_NAME:
        raise ValueError(f"the queue's name {queue_name!r} is longer than SQS allows ({_LONGEST_QUEUE_NAME})")
    queue_arn, rule_arn = queue_arn_of(account, region, queue_name), rule_arn_of(account, region, name)
    rule = Rule(
        name=name,
        arn=rule_arn,
        pattern=state_pattern(),
        targets=(Target(id=queue_name, arn=queue_arn),),
    )
    policy = json.dumps(cluster_queue_policy(queue_name, queue_arn, name, rule_arn), separators=(",", ":"))
    attributes = {"ReceiveMessageWaitTimeSeconds": "20", "Policy": policy}
    return ClusterTopology(queue=Queue(name=queue_name, arn=queue_arn, attributes=attributes), rule=rule)


def state_pattern() -> Document:
    return {"source": [EC2_SOURCE], "detail-type": [STATE_CHANGE], "detail": {"state": all_states()}}


def cluster_queue_policy(queue_name: str, queue_arn: str, name: str, rule_arn: str) -> Document:
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": _sid(name, queue_name),
                "Principal": {"Service": ["events.amazonaws.com"]},
                "Effect": "Allow",
                "Action": ["sqs:SendMessage"],
                "Resource": [queue_arn],
                "Condition": {"ArnEquals": {"aws:SourceArn": rule_arn}},
            }
        ],
        "Id": queue_arn,
    }
