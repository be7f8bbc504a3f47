"""Clusters that the AWS provider set up: the queue and rule of each cluster, under the provider's names.

After the takeover the rule lists no instances, so it has no limit of 86 instances, and it matches all six states. A
provider that is switched on again can read and extend the rule. Notices of Spot, Auto Scaling and Health arrive by the
region's own rules (`event_topology.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from domain.instances.cluster_queue_names import cluster_queue_name, cluster_rule_name
from domain.instances.constants import EC2_SOURCE, STATE_CHANGE
from domain.instances.event_topology import (
    Queue,
    Rule,
    Target,
    Topology,
    compact,
    queue_arn_of,
    rule_arn_of,
    rule_name,
    topology,
)
from domain.instances.events import InstanceState
from domain.schema import Document

_SID_PREFIX = "CAPAEvents_"
_PATTERN: Document = {
    "source": [EC2_SOURCE],
    "detail-type": [STATE_CHANGE],
    "detail": {"state": [state.value for state in InstanceState]},
}


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


def provider_topology(account: str, region: str, clusters: Sequence[str]) -> Topology:
    """The queue that the Clusters share, and their rules, as Cluster API's AWS provider creates them. The provider
    creates no dead-letter queue, so Perdure's regional dead-letter queue is used.

    Raises ValueError if a Cluster's name is longer than 55 characters.
    """
    queue_name = cluster_queue_name(clusters[0])
    queue_arn = queue_arn_of(account, region, queue_name)
    names = [rule_name(cluster_rule_name(cluster)) for cluster in clusters]
    target = Target(id=queue_name, arn=queue_arn)
    rules = tuple(
        Rule(name=name, arn=rule_arn_of(account, region, name), pattern=_PATTERN, targets=(target,)) for name in names
    )
    policy: Document = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": _sid(rule.name, queue_name),
                "Principal": {"Service": ["events.amazonaws.com"]},
                "Effect": "Allow",
                "Action": ["sqs:SendMessage"],
                "Resource": [queue_arn],
                "Condition": {"ArnEquals": {"aws:SourceArn": rule.arn}},
            }
            for rule in rules
        ],
        "Id": queue_arn,
    }
    attributes = {"ReceiveMessageWaitTimeSeconds": "20", "Policy": compact(policy)}
    return Topology(
        queue=Queue(name=queue_name, arn=queue_arn, attributes=attributes),
        dead_letters=topology(account, region).dead_letters,
        rules=rules,
    )
