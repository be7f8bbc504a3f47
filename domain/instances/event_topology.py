"""The AWS resources that deliver events in an account and region: a queue, its dead-letter queue, and three rules.

AWS Health has a separate rule, because an organization may have the Health events of its accounts delivered to a
single account and region ("organizational view").
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Literal

from domain.instances import constants as c
from domain.instances.arns import partition_of
from domain.instances.scheduled_event_types import SCHEDULED_CATEGORIES
from domain.model import Model
from domain.schema import Document

PREFIX = "perdure-instance-events"
DEAD = "-dead"
# A region's own dead letters, which also serve queues without their own, such as the AWS provider's.
REGION_DEAD = f"{PREFIX}{DEAD}"
_VISIBILITY_S = 60
_RETENTION_S = 4 * 24 * 3600
_DEAD_RETENTION_S = 14 * 24 * 3600
_WAIT_S = 20
# The consumer sends unreadable messages to the dead letters at once; the limit is for messages that always fail. In an
# outage of ten minutes a message is received about ten times; while its AWSMachine may appear, about twenty times.
_MOST_RECEIVES = 50
# The periodic resync reads states again, so an event older than this is worthless.
_DELIVERY_AGE_S = 3600
LONGEST_RULE_NAME = 64
_LONGEST_QUEUE_NAME = 80
TAGS = {"owned-by": "perdure"}

Attributes = dict[str, str]


class Queue(Model):
    name: str
    arn: str
    attributes: Attributes


class Target(Model):
    """A rule's target. Events that cannot be delivered go to the queue whose ARN is `dead_letters`; without an ARN they
    are dropped.
    """

    id: str
    arn: str
    dead_letters: str = ""
    oldest_s: int = 0
    group: str = ""  # the message group, which a FIFO queue requires

    @property
    def document(self) -> Document:
        retries: Document = {"RetryPolicy": {"MaximumEventAgeInSeconds": self.oldest_s}} if self.oldest_s else {}
        dead: Document = {"DeadLetterConfig": {"Arn": self.dead_letters}} if self.dead_letters else {}
        group: Document = {"SqsParameters": {"MessageGroupId": self.group}} if self.group else {}
        return {"Id": self.id, "Arn": self.arn, **dead, **retries, **group}


class Rule(Model):
    name: str
    arn: str
    pattern: Document
    targets: tuple[Target, ...]
    state: Literal["ENABLED", "DISABLED"] = "ENABLED"


class Topology(Model):
    queue: Queue
    dead_letters: Queue
    rules: tuple[Rule, ...]

    @property
    def queues(self) -> tuple[Queue, ...]:
        """The queues in the order in which they can be created."""
        return self.dead_letters, self.queue


def dead_letters_of(queue: str) -> str:
    # No queue may be called NAME.fifo-dead.
    return REGION_DEAD if is_fifo(queue) else f"{queue}{DEAD}"


def is_fifo(queue: str) -> bool:
    return queue.endswith(".fifo")


def topology(account: str, region: str, name: str = PREFIX, group_prefix: str = "") -> Topology:
    """The queues and rules of an account and region. `name` is the queue's name and the prefix of all other names,
    shortened in rules. The rules match only Auto Scaling groups whose names begin with `group_prefix`.

    Raises ValueError if a name would be longer than AWS allows.
    """
    fifo = is_fifo(name)
    dead_letters = _fitting(dead_letters_of(name), "dead-letter queue", "SQS", _LONGEST_QUEUE_NAME)
    queue_arn, dead_arn = queue_arn_of(account, region, name), queue_arn_of(account, region, dead_letters)
    target = Target(
        id=name[:64],
        arn=queue_arn,
        # The region's dead letters let in only the region's own rules.
        dead_letters="" if fifo else dead_arn,
        oldest_s=_DELIVERY_AGE_S,
        group=PREFIX if fifo else "",
    )
    patterns = {"ec2": _EC2_PATTERN, "autoscaling": auto_scaling_pattern(group_prefix), "health": _HEALTH_PATTERN}
    named = {_own_rule_name(name, source): pattern for source, pattern in patterns.items()}
    rules = tuple(
        Rule(name=each, arn=rule_arn_of(account, region, each), pattern=pattern, targets=(target,))
        for each, pattern in named.items()
    )
    attributes = {
        "ReceiveMessageWaitTimeSeconds": str(_WAIT_S),
        "VisibilityTimeout": str(_VISIBILITY_S),
        "MessageRetentionPeriod": str(_RETENTION_S),
        "SqsManagedSseEnabled": "true",
        "Policy": compact(queue_policy(queue_arn, rules)),
        # SQS moves a FIFO queue's messages only to another FIFO queue.
        **(
            {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
            if fifo
            else {"RedrivePolicy": compact({"deadLetterTargetArn": dead_arn, "maxReceiveCount": _MOST_RECEIVES})}
        ),
    }
    dead = {
        "MessageRetentionPeriod": str(_DEAD_RETENTION_S),
        "SqsManagedSseEnabled": "true",
        "Policy": compact(queue_policy(dead_arn, rules)),
    }
    buried = Queue(name=dead_letters, arn=dead_arn, attributes=dead)
    return Topology(
        queue=Queue(name=name, arn=queue_arn, attributes=attributes),
        dead_letters=topology(account, region).dead_letters if fifo else buried,
        rules=rules,
    )


# --- patterns ---


# The patterns name no instance ids: a pattern has room for only 86 ids, and the events of an instance would be missed
# until its id is added.
_EC2_PATTERN: Document = {
    "source": [c.EC2_SOURCE],
    "detail-type": [c.STATE_CHANGE, c.SPOT_WARNING, c.REBALANCE, c.CAPACITY_WARNING],
}
_HEALTH_PATTERN: Document = {
    "source": [c.HEALTH_SOURCE],
    "detail-type": [c.HEALTH_EVENT],
    "detail": {"service": ["EC2"], "eventTypeCategory": [*SCHEDULED_CATEGORIES, "issue"]},
}


def auto_scaling_pattern(group_prefix: str = "") -> Document:
    types = [c.LAUNCH_ACTION, c.TERMINATE_ACTION, c.LAUNCH_OK, c.LAUNCH_FAILED, c.TERMINATE_OK, c.TERMINATE_FAILED]
    detail: Document = {"detail": {"AutoScalingGroupName": [{"prefix": group_prefix}]}} if group_prefix else {}
    return {"source": [c.AUTO_SCALING_SOURCE], "detail-type": types, **detail}


# --- policies and names ---


def queue_policy(queue_arn: str, rules: Sequence[Rule]) -> Document:
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "".join(letter for letter in rule.name if letter.isalnum()),
                "Effect": "Allow",
                "Principal": {"Service": "events.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": queue_arn,
                "Condition": {"ArnEquals": {"aws:SourceArn": rule.arn}},
            }
            for rule in rules
        ],
    }


def same_document(wanted: object, found_text: str | None) -> bool:
    """Whether a policy or pattern from AWS means the same as `wanted`. The order, `Id` fields, and a list of one
    element instead of the element make no difference.

    An additional statement is a difference: it could let others send to the queue in AWS's name.
    """
    try:
        found = json.loads(found_text or "null")
    except ValueError:
        return False
    return _normal(wanted) == _normal(found)


def _normal(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _normal(item) for name, item in value.items() if name != "Id"}
    if isinstance(value, list):
        items = sorted((_normal(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
        return items[0] if len(items) == 1 else items
    return value


def queue_arn_of(account: str, region: str, name: str) -> str:
    return f"arn:{partition_of(region)}:sqs:{region}:{account}:{name}"


def rule_arn_of(account: str, region: str, name: str) -> str:
    return f"arn:{partition_of(region)}:events:{region}:{account}:rule/{name}"


def _own_rule_name(queue: str, source: str) -> str:
    name = f"{queue}-{source}"
    if len(name) <= LONGEST_RULE_NAME:
        return name
    end = f"-{hashlib.sha256(queue.encode()).hexdigest()[:8]}-{source}"
    return f"{queue[: LONGEST_RULE_NAME - len(end)]}{end}"


def rule_name(name: str) -> str:
    return _fitting(name, "rule", "EventBridge", LONGEST_RULE_NAME)


def _fitting(name: str, what: str, service: str, most: int) -> str:
    """Raises ValueError if the name is too long, because AWS's refusal would not say which name."""
    if len(name) > most:
        raise ValueError(f"the {what}'s name {name!r} has {len(name)} characters; {service} allows {most}")
    return name


def compact(document: Document) -> str:
    return json.dumps(document, separators=(",", ":"))
