"""The JSON objects within an SQS message's body, whichever service wrapped them.

EventBridge sends its envelope, or what an input transformer leaves of it; SNS wraps the envelope as text in `Message`;
Lambda and Pipes put several envelopes in `Records`; a JSON array may hold several. The body is untrusted: invalid JSON,
100,000 levels of nesting, huge integers, NaN and lone surrogates raise nothing here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import SkipValidation

from domain.model import Model

# SQS and EventBridge carry 1 MiB (since January 2026; 256 KiB before).
_LARGEST_BODY = 1 << 20
# An SNS notification may hold another notification; no real notification holds a third.
_DEEPEST_WRAP = 2
# Pipes and Lambda get batches of at most ten by default; one envelope holds all entities of a Health event.
_MOST_PARTS = 1000
SNS_CONFIRMATION = "sns-confirmation"
_CONFIRMATIONS = ("SubscriptionConfirmation", "UnsubscribeConfirmation")


class Message(Model):
    body: Annotated[str, SkipValidation]  # untrusted
    message_id: str = ""  # empty only if SQS gives none
    sent_at: datetime | None = None
    received_at: datetime
    receives: int = 1  # how often it was received, this time included
    receipt_handle: str = ""
    attributes: dict[str, str] = {}  # the string attributes; a dead letter of EventBridge has its reason in them
    # The account and region of the queue.
    account: str
    region: str
    others: frozenset[str] = frozenset()  # other accounts whose events may arrive in the queue, from the settings

    @property
    def taken_at(self) -> datetime:
        return self.sent_at or self.received_at

    @property
    def fallback_id(self) -> str:
        return self.message_id or hashlib.sha256(self.body.encode("utf-8", "replace")).hexdigest()[:32]


def message_of(
    received: Mapping[str, object], account: str, region: str, now: datetime, others: frozenset[str] = frozenset()
) -> Message:
    system = _mapping(received.get("Attributes"))
    attributes = {
        name: _mapping(each).get("StringValue") for name, each in _mapping(received.get("MessageAttributes")).items()
    }
    sent, count = str(system.get("SentTimestamp", "")), str(system.get("ApproximateReceiveCount", ""))
    return Message(
        body=str(received.get("Body", "")),
        message_id=str(received.get("MessageId", "")),
        sent_at=datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(sent)) if sent.isdigit() else None,
        received_at=now,
        receives=int(count) if count.isdigit() else 1,
        receipt_handle=str(received.get("ReceiptHandle", "")),
        attributes={name: value for name, value in attributes.items() if isinstance(value, str)},
        account=account,
        region=region,
        others=others,
    )


class Part(Model):
    content: Annotated[dict[str, object], SkipValidation]
    place: str = ""
    topic: str = ""


class Ignored(Model):
    """A message or part that is deleted without an effect. `reason` is one of a few words, because it is a metric's
    label; `what` is for logs.
    """

    reason: str
    what: str = ""


class Invalid(Model):
    reason: str


Unwrapped = Part | Ignored | Invalid


class NotJsonError(ValueError):
    """The text is no JSON, or JSON that is refused: nested too deep, with a number that is too long, or with NaN."""


def decoded(text: str) -> object:
    """Raises NotJsonError, and nothing else, whatever the text."""
    try:
        return json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse_constant)
    except NotJsonError:
        raise
    except RecursionError:
        raise NotJsonError("nested too deep") from None
    except json.JSONDecodeError:
        raise NotJsonError("not JSON") from None
    except ValueError:
        raise NotJsonError("a number too long") from None


def unwrap(message: Message) -> tuple[Unwrapped, ...]:
    if len(message.body) > _LARGEST_BODY or len(message.body.encode("utf-8", "surrogatepass")) > _LARGEST_BODY:
        return (Invalid(reason="too large"),)
    return _decoded_parts(message.body, "", "", _DEEPEST_WRAP)


def _decoded_parts(text: str, place: str, topic: str, depth: int) -> tuple[Unwrapped, ...]:
    try:
        value = decoded(text)
    except NotJsonError as error:
        return (Invalid(reason=str(error)),)
    return _parts(value, place, topic, depth)


def _parts(value: object, place: str, topic: str, depth: int) -> tuple[Unwrapped, ...]:
    batch = _batch(value)
    if batch is not None:
        return _exploded(batch, place, topic, depth)
    if not isinstance(value, dict):
        return (Invalid(reason="not an object"),)
    if value.get("Type") in _CONFIRMATIONS:
        return (Ignored(reason=SNS_CONFIRMATION),)
    if value.get("Type") == "Notification" and "Message" in value:
        return _from_sns(value, place, depth)
    return (Part(content=value, place=place, topic=topic),)


def _batch(value: object) -> list[object] | None:
    if isinstance(value, dict) and isinstance(value.get("Records"), list):
        return [each.get("body", each) if isinstance(each, dict) else each for each in value["Records"]]
    return value if isinstance(value, list) else None


def _exploded(batch: list[object], place: str, topic: str, depth: int) -> tuple[Unwrapped, ...]:
    if not batch:
        return (Invalid(reason="an empty batch"),)
    if len(batch) > _MOST_PARTS:
        return (Invalid(reason="a batch too large"),)
    if depth == 0:
        return (Invalid(reason="wrapped too often"),)
    found: list[Unwrapped] = []
    for index, member in enumerate(batch):
        inner = f"{place}.{index}" if place else str(index)
        if isinstance(member, str):
            found.extend(_decoded_parts(member, inner, topic, depth - 1))
        else:
            found.extend(_parts(member, inner, topic, depth - 1))
        if len(found) > _MOST_PARTS:
            return (Invalid(reason="a batch too large"),)
    return tuple(found)


def _from_sns(value: dict[str, object], place: str, depth: int) -> tuple[Unwrapped, ...]:
    text, topic = value["Message"], value.get("TopicArn")
    if depth == 0:
        return (Invalid(reason="wrapped too often"),)
    if not isinstance(text, str):
        return (Invalid(reason="an SNS message that is not text"),)
    return _decoded_parts(text, place, topic if isinstance(topic, str) else "", depth - 1)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _refuse_constant(name: str) -> object:
    raise NotJsonError(f"{name} is not a number")
