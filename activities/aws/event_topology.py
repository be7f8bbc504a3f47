"""Compares the wanted queues and rules of an account and region with AWS, and corrects one difference at a time.

AWS's two codes for a missing queue become Absent (`error_codes.py`). A deleted queue cannot be created again for a
minute. PutTargets may fail for some targets only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, cast

from activities.aws.session import Services
from domain.instances.cluster_queue_names import cluster_of_queue, cluster_rule_name, provider_clusters
from domain.instances.event_topology import LONGEST_RULE_NAME, TAGS, Queue, Rule, queue_arn_of
from domain.instances.event_topology_upkeep import differing_attributes, missing_targets, rule_differs, wanted
from domain.instances.provider_queue_takeover import rules_of_policy
from domain.instances.served_queues import Place
from engine.errors import Absent, Denied, Invalid
from engine.kube.json import mapping, sequence, text

Answer = Mapping[str, object]


class Change(NamedTuple):
    what: str
    mend: Callable[[], object]


class _Sqs(Protocol):
    def get_queue_url(self, **parameters: object) -> Answer: ...
    def create_queue(self, **parameters: object) -> Answer: ...
    def get_queue_attributes(self, **parameters: object) -> Answer: ...
    def set_queue_attributes(self, **parameters: object) -> Answer: ...


class _Events(Protocol):
    def list_rule_names_by_target(self, **parameters: object) -> Answer: ...
    def describe_rule(self, **parameters: object) -> Answer: ...
    def put_rule(self, **parameters: object) -> Answer: ...
    def list_targets_by_rule(self, **parameters: object) -> Answer: ...
    def put_targets(self, **parameters: object) -> Answer: ...


class EventTopology:
    def __init__(self, place: Place, caller: Services, group_prefix: str = "") -> None:
        self._place = place
        self._group_prefix = group_prefix
        self._sqs = cast(_Sqs, caller.client("sqs", place.region))
        self._events = cast(_Events, caller.client("events", place.region))

    def changes(self) -> Iterator[Change]:
        """The differences between AWS and the wanted state. Each is found after the earlier ones were corrected or
        skipped. Raises ValueError if a name is too long.
        """
        should = wanted(self._place, self._rules_of_queue(), self._group_prefix)
        for queue in should.queues:
            yield from self._queue_changes(queue)
        for rule in should.rules:
            yield from self._rule_changes(rule)

    def _rules_of_queue(self) -> list[str]:
        """The rules that deliver to the queue. They are few: AWS's first page, of up to a hundred rules, is enough."""
        arn = queue_arn_of(self._place.account, self._place.region, self._place.queue)
        answer = self._events.list_rule_names_by_target(TargetArn=arn, Limit=100)
        named = [text(name) for name in sequence(answer.get("RuleNames"))]
        return named if provider_clusters(self._place.queue, named) else [*named, *self._lost_rules()]

    def _lost_rules(self) -> Sequence[str]:
        queue = self._place.queue
        cluster = cluster_of_queue(queue)
        if not cluster:
            return ()
        try:
            _, found = self._queue(queue)
        except Absent:
            found = {}
        if allowed := rules_of_policy(queue, found.get("Policy", "")):
            return allowed
        rule = cluster_rule_name(cluster)
        if len(rule) > LONGEST_RULE_NAME:  # the provider cannot have created such a rule
            return ()
        try:
            self._events.describe_rule(Name=rule)
        except (Absent, Denied):
            return ()
        return (rule,)

    def _queue(self, name: str) -> tuple[str, Mapping[str, str]]:
        url = text(self._sqs.get_queue_url(QueueName=name).get("QueueUrl"))
        answer = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        return url, {name: text(value) for name, value in mapping(answer.get("Attributes")).items()}

    def _queue_changes(self, queue: Queue) -> Iterator[Change]:
        try:
            url, found = self._queue(queue.name)
        except Absent:
            yield Change(f"create the queue {queue.name}", lambda: self._make_queue(queue))
            return
        differing = differing_attributes(queue, found)
        if differing:
            names = ", ".join(sorted(differing))
            yield Change(
                f"set {names} of the queue {queue.name}",
                lambda: self._sqs.set_queue_attributes(QueueUrl=url, Attributes=differing),
            )

    def _make_queue(self, queue: Queue) -> None:
        self._sqs.create_queue(QueueName=queue.name, Attributes=queue.attributes, tags=TAGS)

    def _rule_changes(self, rule: Rule) -> Iterator[Change]:
        targets: Sequence[Mapping[str, object]] = ()
        try:
            found = self._events.describe_rule(Name=rule.name)
        except Absent:
            yield Change(f"create the rule {rule.name}", lambda: self._put_rule(rule, new=True))
        else:
            if rule_differs(rule, found):
                yield Change(f"set the pattern and state of the rule {rule.name}", lambda: self._put_rule(rule))
            answer = self._events.list_targets_by_rule(Rule=rule.name)
            targets = [mapping(each) for each in sequence(answer.get("Targets"))]
        missing = missing_targets(rule, targets)
        if missing:
            names = ", ".join(target.id for target in missing)
            documents = [target.document for target in missing]
            yield Change(
                f"set the targets of the rule {rule.name} to {names}", lambda: self._put_targets(rule.name, documents)
            )

    def _put_rule(self, rule: Rule, *, new: bool = False) -> None:
        # PutRule takes tags for new rules only.
        tagged = {"Tags": [{"Key": name, "Value": value} for name, value in TAGS.items()]} if new else {}
        self._events.put_rule(Name=rule.name, EventPattern=json.dumps(rule.pattern), State=rule.state, **tagged)

    def _put_targets(self, rule: str, documents: Sequence[Mapping[str, object]]) -> None:
        answer = self._events.put_targets(Rule=rule, Targets=list(documents))
        failed = [mapping(each) for each in sequence(answer.get("FailedEntries"))]
        if failed:
            message = "; ".join(f"{text(each.get('ErrorCode'))}: {text(each.get('ErrorMessage'))}" for each in failed)
            raise Invalid(f"events PutTargets of {rule}: {message}", code=text(failed[0].get("ErrorCode")))
