"""The emulator's queues by themselves: what a send costs where many messages wait."""

from __future__ import annotations

from uuid import uuid4

import pytest
from moto.sqs.models import Message

from localcloud.aws import runtime
from localcloud.aws.sqs import PerdureQueue


def sent(queue: PerdureQueue, delay_seconds: int = 0) -> Message:
    message = Message(str(uuid4()), "body")
    message.mark_sent(delay_seconds=delay_seconds)
    with runtime.MOTO:
        queue.add_message(message)
    return message


def test_the_counts_of_a_queue_look_at_delayed_messages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """moto reads them at each send: a look at every message would make five thousand sends take minutes."""
    queue = PerdureQueue("q", region="eu-west-1", account_id="123456789012")
    for _ in range(50):
        sent(queue)
    late = sent(queue, delay_seconds=60)
    looked_at = []

    def delayed(message: Message) -> bool:
        looked_at.append(message.id)
        return True

    monkeypatch.setattr(Message, "delayed", property(delayed))
    counts = queue.attributes
    assert set(looked_at) == {late.id}
    assert counts["ApproximateNumberOfMessages"] == 50
    assert counts["ApproximateNumberOfMessagesDelayed"] == 1
    assert counts["ApproximateNumberOfMessagesNotVisible"] == 0


def test_a_message_is_no_longer_counted_as_delayed_once_its_delay_is_over() -> None:
    queue = PerdureQueue("q", region="eu-west-1", account_id="123456789012")
    late = sent(queue, delay_seconds=60)
    assert queue.approximate_number_of_messages_delayed == 1
    late.delayed_until = 0
    assert queue.approximate_number_of_messages_delayed == 0
