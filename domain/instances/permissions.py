"""The IAM documents: what the consumer, the activities and whoever sets up the queues may do, and no more.

EC2's and Auto Scaling's Describe calls take no resources, so they stand with `*`; so do the provider's own actions in
the compatibility mode, as in the document that its clusterawsadm makes.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.instances.names import partition_of
from domain.instances.topology import Topology
from domain.schema import Document

CONSUME = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
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
# Which rules deliver to a queue is asked of all of an account's rules.
FIND_RULES = ("events:ListRuleNamesByTarget",)
# What the provider's own document grants for events, in its order.
PROVIDER_ACTIONS = (
    "events:DeleteRule",
    "events:DescribeRule",
    "events:ListTargetsByRule",
    "events:PutRule",
    "events:PutTargets",
    "events:RemoveTargets",
    "sqs:CreateQueue",
    "sqs:DeleteMessage",
    "sqs:DeleteQueue",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
    "sqs:SetQueueAttributes",
)


def running_document(places: Sequence[Topology]) -> Document:
    """What worker and consumer need while they run.

    The dead letters can be read as well as written: a re-drive takes them out and sends them again.
    """
    queues = [place.queue.arn for place in places]
    dead = [place.dead_letters.arn for place in places]
    return _document(
        _statement("Consume", CONSUME, [*queues, *dead]),
        _statement("BuryAndRedrive", BURY, [*queues, *dead]),
        _statement("Describe", DESCRIBE, ["*"]),
        _statement("AnswerHooks", ANSWER_HOOKS, [_groups(place) for place in places]),
    )


def setup_document(places: Sequence[Topology]) -> Document:
    """What setting up queues and rules needs."""
    queues = [arn for place in places for arn in (place.queue.arn, place.dead_letters.arn)]
    rules = [rule.arn for place in places for rule in place.rules]
    return _document(
        _statement("SetUpQueues", SET_UP_QUEUES, queues),
        _statement("SetUpRules", SET_UP_RULES, rules),
        _statement("FindRules", FIND_RULES, ["*"] if rules else []),
    )


def compatibility_document() -> Document:
    """The provider's own actions for events, and what goes beyond them here."""
    needed = (*ANSWER_HOOKS, *DESCRIBE, *FIND_RULES, *CONSUME, *BURY, *SET_UP_QUEUES, *SET_UP_RULES)
    beyond = tuple(action for action in dict.fromkeys(needed) if action not in PROVIDER_ACTIONS)
    return _document(_statement("ProviderEvents", PROVIDER_ACTIONS, ["*"]), _statement("Beyond", beyond, ["*"]))


def _groups(place: Topology) -> str:
    _, _, _, region, account, _ = place.queue.arn.split(":", 5)
    return f"arn:{partition_of(region)}:autoscaling:{region}:{account}:autoScalingGroup:*:autoScalingGroupName/*"


def _statement(sid: str, actions: Sequence[str], resources: Sequence[str]) -> Document:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": sorted(set(resources))}


def _document(*statements: Document) -> Document:
    return {"Version": "2012-10-17", "Statement": [each for each in statements if each["Resource"]]}
