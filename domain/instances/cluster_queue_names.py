"""The names of a Cluster's own queue and rule, as the AWS provider gives them.

In the queue's name dots become dashes, so the Clusters `a.b` and `a-b` share a queue.
"""

from __future__ import annotations

from collections.abc import Iterable

_QUEUE_SUFFIX = "-queue"
_RULE_SUFFIX = "-ec2-rule"


def cluster_queue_name(cluster: str) -> str:
    return f"{cluster.replace('.', '-')}{_QUEUE_SUFFIX}"


def cluster_rule_name(cluster: str) -> str:
    return f"{cluster}{_RULE_SUFFIX}"


def cluster_of_queue(queue: str) -> str:
    """The name of the queue's Cluster, with dashes in place of dots; empty if the queue is not a Cluster's."""
    cluster = queue.removesuffix(_QUEUE_SUFFIX)
    return cluster if cluster_queue_name(cluster) == queue else ""


def provider_clusters(queue: str, rules: Iterable[str]) -> tuple[str, ...]:
    named = (rule.removesuffix(_RULE_SUFFIX) for rule in rules if rule.endswith(_RULE_SUFFIX))
    return tuple(sorted({cluster for cluster in named if cluster_queue_name(cluster) == queue}))
