"""The emulator's queues: polls that block no other, receipts, redelivery, dead letters, and all of it over restarts."""

from __future__ import annotations

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from emulator_process import Cloud, EmulatorProcess, error_of
from waiting import until

pytestmark = pytest.mark.integration

REGION = "eu-west-1"


@pytest.fixture
def sqs(payer: Cloud) -> Any:
    return payer.in_account(payer.new_account()).client("sqs", REGION)


def receive(sqs: Any, url: str, **more: Any) -> list[dict[str, Any]]:
    answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], **more)
    messages: list[dict[str, Any]] = answer.get("Messages", [])
    return messages


def test_a_poll_lets_others_through_and_ends_with_the_first_message(sqs: Any, payer: Cloud) -> None:
    url = sqs.create_queue(QueueName="polled")["QueueUrl"]
    with ThreadPoolExecutor(2) as pool:
        polls = [pool.submit(receive, sqs, url, WaitTimeSeconds=15) for _ in range(2)]
        for _ in range(3):
            payer.client("sts").get_caller_identity()
            assert not any(poll.done() for poll in polls)
        for body in ("one", "two"):
            sqs.send_message(QueueUrl=url, MessageBody=body)
        bodies = [message["Body"] for poll in polls for message in poll.result()]
    assert sorted(bodies) == ["one", "two"]


def test_a_poll_sees_the_message_that_becomes_visible_again(sqs: Any) -> None:
    url = sqs.create_queue(QueueName="again", Attributes={"VisibilityTimeout": "2"})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="body")
    first = receive(sqs, url)
    second = receive(sqs, url, WaitTimeSeconds=15)
    assert [m["Attributes"]["ApproximateReceiveCount"] for m in (*first, *second)] == ["1", "2"]
    assert first[0]["MessageId"] == second[0]["MessageId"]


def test_only_the_last_receipt_deletes(sqs: Any) -> None:
    url = sqs.create_queue(QueueName="receipts")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="body")
    (old,) = receive(sqs, url, VisibilityTimeout=0)
    (new,) = receive(sqs, url, VisibilityTimeout=0)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=old["ReceiptHandle"])
    (newest,) = receive(sqs, url, VisibilityTimeout=600)
    assert new["ReceiptHandle"] != newest["ReceiptHandle"]
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=newest["ReceiptHandle"], VisibilityTimeout=0)
    (newest,) = receive(sqs, url, VisibilityTimeout=600)
    answer = sqs.delete_message_batch(
        QueueUrl=url,
        Entries=[{"Id": "good", "ReceiptHandle": newest["ReceiptHandle"]}, {"Id": "bad", "ReceiptHandle": "nonsense"}],
    )
    assert [each["Id"] for each in answer["Successful"]] == ["good"]
    assert [each["Code"] for each in answer["Failed"]] == ["ReceiptHandleIsInvalid"]
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessages"] == counts["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_a_message_received_too_often_is_among_the_dead_letters(sqs: Any) -> None:
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    dead_arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": dead_arn, "maxReceiveCount": 2})
    url = sqs.create_queue(QueueName="alive", Attributes={"RedrivePolicy": policy})["QueueUrl"]
    sent = sqs.send_message(QueueUrl=url, MessageBody="poison")["MessageId"]
    assert len(receive(sqs, url, VisibilityTimeout=0)) == len(receive(sqs, url, VisibilityTimeout=0)) == 1
    assert receive(sqs, url, VisibilityTimeout=0) == []
    assert [m["MessageId"] for m in receive(sqs, dead)] == [sent]


def test_setting_one_attribute_leaves_the_policy(sqs: Any) -> None:
    policy = json.dumps({"Version": "2012-10-17", "Statement": [{"Sid": "one", "Effect": "Allow"}]})
    url = sqs.create_queue(QueueName="kept", Attributes={"Policy": policy})["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "60"})
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert json.loads(found["Policy"]) == json.loads(policy)
    assert found["VisibilityTimeout"] == "60"


def test_a_queue_that_goes_ends_its_polls(sqs: Any) -> None:
    url = sqs.create_queue(QueueName="going")["QueueUrl"]
    with ThreadPoolExecutor(1) as pool:
        poll = pool.submit(error_of, lambda: receive(sqs, url, WaitTimeSeconds=15))
        sqs.delete_queue(QueueUrl=url)
        assert poll.result() == "AWS.SimpleQueueService.NonExistentQueue"


def test_messages_survive_a_restart_and_a_long_backlog_is_no_burden(own_emulator: EmulatorProcess) -> None:
    own_emulator.start()
    sqs = own_emulator.cloud().client("sqs", REGION)
    url = sqs.create_queue(QueueName="backlog")["QueueUrl"]
    for start in range(0, 1000, 10):
        entries = [{"Id": str(n), "MessageBody": str(n)} for n in range(start, start + 10)]
        sqs.send_message_batch(QueueUrl=url, Entries=entries)
    (held,) = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1, VisibilityTimeout=5)["Messages"]
    own_emulator.end(signal.SIGTERM)
    own_emulator.start()
    sqs = own_emulator.cloud().client("sqs", REGION)
    url = sqs.get_queue_url(QueueName="backlog")["QueueUrl"]
    seen: list[str] = []

    def all_came() -> bool:
        while messages := receive(sqs, url):
            seen.extend(message["Body"] for message in messages)
            entries = [{"Id": m["MessageId"], "ReceiptHandle": m["ReceiptHandle"]} for m in messages]
            assert len(sqs.delete_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == len(messages)
        return len(seen) == 1000

    until(all_came, "all came")
    assert sorted(seen, key=int) == [str(n) for n in range(1000)]
    assert held["Body"] in seen
