"""The IAM documents with the least permissions that the consumer, the activities and the setup of queues need.

EC2's and Auto Scaling's Describe calls cannot be limited to resources, so they are allowed for `*`.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.instances.arns import partition_of
from domain.instances.cluster_queue_names import cluster_of_queue, cluster_queue_name, cluster_rule_name
from domain.instances.event_topology import Topology, rule_arn_of, topology
from domain.instances.served_queues import Place
from domain.schema import Document

CONSUME = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
)
BURY = ("sqs:SendMessage",)
DESCRIBE = (
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeAutoScalingInstances",
    "autoscaling:DescribeLifecycleHooks",
    "autoscaling:DescribeScalingActivities",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstances",
    "ec2:DescribeSpotInstanceRequests",
)
ANSWER_HOOKS = ("autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat")
TERMINATE = ("ec2:TerminateInstances",)
SET_UP_QUEUES = (
    "sqs:CreateQueue",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
    "sqs:SetQueueAttributes",
    "sqs:TagQueue",
)
SET_UP_RULES = (
    "events:DescribeRule",
    "events:ListTargetsByRule",
    "events:PutRule",
    "events:PutTargets",
    "events:TagResource",
)
# The rules of a queue are found among all rules of an account.
FIND_RULES = ("events:ListRuleNamesByTarget",)
ASSUME = ("sts:AssumeRole",)


def topologies(place: Place) -> tuple[Topology, ...]:
    """The queue and rules of a place. If Cluster API's AWS provider may have created the queue, the provider's rule is
    added. The rule's name has `?` for each dash of the queue's name, as the Cluster's name may have a dot there.
    """
    own = topology(place.account, place.region, place.queue)
    cluster = cluster_of_queue(place.queue)
    if not cluster:
        return (own,)
    name = cluster_rule_name(cluster.replace("-", "?"))
    rule = own.rules[0].model_copy(update={"name": name, "arn": rule_arn_of(place.account, place.region, name)})
    regions = topology(place.account, place.region).dead_letters
    return (own, own.model_copy(update={"dead_letters": regions, "rules": (rule,)}))


def running_document(places: Sequence[Topology], roles: Sequence[str] = (), sharing: Sequence[Place] = ()) -> Document:
    """The permissions of the running worker and event consumer, and those to re-drive dead letters.

    Args:
        places: the queues and rules that are accessed with these permissions.
        roles: the ARNs of the roles that are assumed for other queues, rules and instances.
        sharing: accessed accounts and regions whose events arrive in a queue elsewhere.
    """
    return _document(*_running(places, sharing), _statement("AssumeRoles", ASSUME, roles))


def setup_document(places: Sequence[Topology]) -> Document:
    return _document(*_setting_up(places))


def terminating_document(places: Sequence[tuple[str, str]]) -> Document:
    """The permissions that terminate-instance needs beside `running_document`, in these accounts and regions."""
    return _document(_statement("Terminate", TERMINATE, [_instances(*place) for place in places]))


def compatibility_document(place: Topology) -> Document:
    """Permissions for running and setup, also for the AWS provider's queues and rules, but none to delete."""
    queue = place.queue.model_copy(update={"arn": place.queue.arn.replace(place.queue.name, cluster_queue_name("*"))})
    rule = place.rules[0]
    provider = rule.model_copy(update={"arn": rule.arn.replace(rule.name, cluster_rule_name("*"))})
    both = [place, place.model_copy(update={"queue": queue, "rules": (provider,)})]
    return _document(*_running(both), *_setting_up(both))


def _running(places: Sequence[Topology], sharing: Sequence[Place] = ()) -> tuple[Document, ...]:
    queues = [arn for place in places for arn in (place.queue.arn, place.dead_letters.arn)]
    groups = [*(_groups(*_where(place)) for place in places), *(_groups(*place.where) for place in sharing)]
    return (
        _statement("Consume", CONSUME, queues),
        _statement("BuryAndRedrive", BURY, queues),
        _statement("Describe", DESCRIBE, ["*"] if groups else []),
        _statement("AnswerHooks", ANSWER_HOOKS, groups),
    )


def _setting_up(places: Sequence[Topology]) -> tuple[Document, ...]:
    queues = [arn for place in places for arn in (place.queue.arn, place.dead_letters.arn)]
    rules = [rule.arn for place in places for rule in place.rules]
    return (
        _statement("SetUpQueues", SET_UP_QUEUES, queues),
        _statement("SetUpRules", SET_UP_RULES, rules),
        # The rules of a queue are found among all rules of an account.
        _statement("FindRules", FIND_RULES, ["*"] if rules else []),
    )


def _where(place: Topology) -> tuple[str, str]:
    _, _, _, region, account, _ = place.queue.arn.split(":", 5)
    return account, region


def _groups(account: str, region: str) -> str:
    return f"arn:{partition_of(region)}:autoscaling:{region}:{account}:autoScalingGroup:*:autoScalingGroupName/*"


def _instances(account: str, region: str) -> str:
    return f"arn:{partition_of(region)}:ec2:{region}:{account}:instance/*"


def _statement(sid: str, actions: Sequence[str], resources: Sequence[str]) -> Document:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": sorted(set(resources))}


def _document(*statements: Document) -> Document:
    return {"Version": "2012-10-17", "Statement": [each for each in statements if each["Resource"]]}
