"""The default event bus of each account and region: rules route services' events to queues whose policies allow it.

Events of services reach queues only; moto delivers events sent with PutEvents to other targets as well.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any
from uuid import uuid4

from moto.events.models import Rule, events_backends
from moto.events.utils import EventTemplateParser
from moto.sqs.models import sqs_backends

from localcloud.aws import call, pump, runtime
from localcloud.aws.events_contract import EventFault, EventFaultKind, EventRecord
from localcloud.aws.happenings import Detail, Happening

_DELIVER = "deliver"
_SENDER = "events.amazonaws.com"

_recent: deque[EventRecord] = deque(maxlen=2000)
# Events held back by reordering faults, by account and region, and the ids of those released before their delay.
_held_back: dict[tuple[str, str], list[tuple[Detail, str]]] = {}
_let_go: set[str] = set()


def install() -> None:
    theirs = Rule.send_to_targets

    def send(self: Rule, original_event: Any, transform_input: bool = True) -> None:
        if self.state != "ENABLED" or not self.event_pattern.matches_event(original_event):
            return
        envelope = _of_moto(original_event)
        for target in self.targets:
            if ":sqs:" in target["Arn"] and not target.get("InputTransformer"):
                _send_to_queue(self, target, envelope)
        others = [target for target in self.targets if ":sqs:" not in target["Arn"] or target.get("InputTransformer")]
        if others:
            everything, self.targets = self.targets, others
            try:
                theirs(self, original_event, transform_input)
            finally:
                self.targets = everything

    setattr(Rule, "send_to_targets", send)  # noqa: B010 - mypy takes methods for constants
    pump.deed(_DELIVER, _deliver)


def publish(happening: Happening) -> str:
    """Deliver an event, disturbed by the first matching fault; returns the event's id. Requires moto's lock."""
    event_id = str(uuid4())
    envelope = happening.envelope(event_id, time.time())
    place = (happening.account, happening.region)
    fault = runtime.event_faults.first_taking(lambda each: _matches(each, happening))
    wait = runtime.config().event_seconds
    overtaken = _held_back.pop(place, [])
    match fault.kind if fault else None:
        case EventFaultKind.DROP:
            _remember(envelope, 0, fault)
        case EventFaultKind.DOUBLE:
            pump.later(*place, wait, _DELIVER, envelope, _id_of(fault))
            pump.later(*place, wait + (fault.delay_seconds if fault else 0), _DELIVER, envelope, _id_of(fault))
        case EventFaultKind.DELAY:
            pump.later(*place, wait + (fault.delay_seconds if fault else 0), _DELIVER, envelope, _id_of(fault))
        case EventFaultKind.REORDER:
            _held_back.setdefault(place, []).append((envelope, _id_of(fault)))
            pump.later(*place, max(0.001, fault.delay_seconds if fault else 0), _DELIVER, envelope, _id_of(fault))
        case _:
            pump.later(*place, wait, _DELIVER, envelope, "")
    for earlier, name in overtaken:
        _deliver(*place, earlier, name)
        _let_go.add(str(earlier["id"]))
    return event_id


def recent() -> list[EventRecord]:
    return list(_recent)


def forget() -> None:
    _recent.clear()


def _deliver(account: str, region: str, envelope: Detail, fault: str) -> None:
    if str(envelope["id"]) in _let_go:
        _let_go.discard(str(envelope["id"]))
        return
    held_back = _held_back.get((account, region), [])
    if (envelope, fault) in held_back:  # its delay has passed before the next event
        held_back.remove((envelope, fault))
    regional = dict.get(events_backends, account)
    backend = dict.get(regional, region) if regional is not None else None
    rules: list[Rule] = list(backend.event_buses["default"].rules.values()) if backend is not None else []
    taken = 0
    for rule in rules:
        if rule.state == "ENABLED" and rule.event_pattern.matches_event(envelope):  # type: ignore[arg-type]
            taken += sum(_send_to_queue(rule, target, envelope) for target in rule.targets)
    _remember(envelope, taken, fault)


def _send_to_queue(rule: Rule, target: dict[str, Any], envelope: Detail) -> bool:
    body = _body(target, envelope)
    if _send(rule, target["Arn"], body):
        return True
    dead = (target.get("DeadLetterConfig") or {}).get("Arn", "")
    attributes = {
        "RULE_ARN": rule.arn,
        "TARGET_ARN": target["Arn"],
        "ERROR_CODE": "NO_PERMISSIONS",
        "ERROR_MESSAGE": "The queue does not exist, or its policy does not let the rule send.",
        "RETRY_ATTEMPTS": "0",
    }
    typed = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
    if dead:
        _send(rule, dead, body, typed)
    return False


def _send(rule: Rule, queue_arn: str, body: str, attributes: dict[str, Any] | None = None) -> bool:
    _, _, service, region, account, name = queue_arn.split(":", 5)
    if service != "sqs":
        return False
    regional = dict.get(sqs_backends, account)
    backend = dict.get(regional, region) if regional is not None else None
    queue = backend.queues.get(name) if backend is not None else None
    if backend is None or queue is None or not _lets(queue.policy, rule.arn):
        return False
    backend.send_message(queue_name=name, message_body=body, message_attributes=attributes)
    call.touch(account, region)
    call.mark_changed()
    return True


def _lets(policy: str | None, rule_arn: str) -> bool:
    if not runtime.config().enforce_queue_policies:
        return True
    statements = json.loads(policy or "{}").get("Statement") or []
    return any(_allows(statement, rule_arn) for statement in _many(statements) if isinstance(statement, dict))


def _allows(statement: dict[str, Any], rule_arn: str) -> bool:
    principal = statement.get("Principal")
    services = ["*"] if principal == "*" else _many((principal or {}).get("Service") or (principal or {}).get("AWS"))
    actions = [str(action).lower() for action in _many(statement.get("Action"))]
    sources = list(_sources(statement.get("Condition") or {}))
    return (
        statement.get("Effect") == "Allow"
        and any(service in ("*", _SENDER) for service in services)
        and any(action in ("sqs:sendmessage", "sqs:*", "*") for action in actions)
        and (not sources or any(fnmatchcase(rule_arn, source) for source in sources))
    )


def _sources(condition: dict[str, Any]) -> Iterator[str]:
    for operator, keys in condition.items():
        if operator.startswith(("Arn", "StringEquals", "StringLike")):
            for name, values in keys.items():
                if name.lower() == "aws:sourcearn":
                    yield from (str(value) for value in _many(values))


def _many(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _body(target: dict[str, Any], envelope: Detail) -> str:
    transformer = target.get("InputTransformer")
    if transformer:
        event = {**envelope, "ingestion-time": 0.0}
        template, paths = transformer.get("InputTemplate"), transformer.get("InputPathsMap", {})
        return json.dumps(EventTemplateParser.parse(input_template=template, input_paths_map=paths, event=event))  # type: ignore[arg-type]
    if target.get("InputPath") == "$.detail":
        return json.dumps(envelope["detail"])
    return str(target["Input"]) if target.get("Input") else json.dumps(envelope)


def _of_moto(event: Any) -> Detail:
    at = event.get("time") or time.time()
    happening = Happening(
        account=event["account"],
        region=event["region"],
        source=event["source"],
        detail_type=event["detail-type"],
        detail={},
        resources=tuple(event["resources"]),
    )
    return {**happening.envelope(event["id"], float(at)), "detail": event["detail"]}


def _matches(fault: EventFault, happening: Happening) -> bool:
    return (
        fnmatchcase(happening.source, fault.source)
        and fnmatchcase(happening.detail_type, fault.detail_type)
        and fault.account in (None, happening.account)
        and fault.region in (None, happening.region)
        and (fault.containing is None or fault.containing in json.dumps(happening.detail))
    )


def _remember(envelope: Detail, queues: int, fault: EventFault | str | None) -> None:
    name = fault if isinstance(fault, str) else _id_of(fault)
    _recent.append(EventRecord(event=envelope, queues=queues, fault=name))


def _id_of(fault: EventFault | None) -> str:
    return fault.id if fault is not None else ""
