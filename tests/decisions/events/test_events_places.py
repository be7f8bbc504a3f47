"""Which accounts, regions and queues people name."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from activities.aws.queue_account_roles import Places
from domain.instances.arns import partition_of
from domain.instances.message_unwrapping import message_of
from domain.instances.permissions import topologies
from domain.instances.served_queues import Place, place_of, places, served, with_queues
from starters.events.dead_letters import source_of

ROLE = "arn:aws:iam::210987654321:role/team/perdure"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("123456789012/eu-central-1", Place(account="123456789012", region="eu-central-1")),
        ("123456789012/eu-central-1/a-b", Place(account="123456789012", region="eu-central-1", queue="a-b")),
        (f"210987654321/us-east-1@{ROLE}", Place(account="210987654321", region="us-east-1", role=ROLE)),
        (
            f"210987654321/us-east-1=123456789012/eu-central-1/all@{ROLE}",
            Place(account="210987654321", region="us-east-1", role=ROLE, shares="123456789012/eu-central-1/all"),
        ),
    ],
)
def test_a_place_is_read(text: str, place: Place) -> None:
    assert place_of(text) == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "123456789012",
        "123/eu-central-1",
        "123456789012/EU",
        "123456789012/eu-central-1/a b",
        "123456789012/eu-central-1@",
        "123456789012/eu-central-1@nobody",
        "123456789012/eu-central-1/a/b",
        "123456789012/eu-central-1=",
        "123456789012/eu-central-1=123456789012",
        "123456789012/eu-central-1/a=123456789012/eu-west-1",
    ],
)
def test_a_malformed_place_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="ACCOUNT/REGION"):
        place_of(text)


def test_several_queues_of_one_place_are_served_once() -> None:
    found = places(["123456789012/eu-central-1", "123456789012/eu-central-1/c1-queue", "123456789012/eu-central-1"])
    assert [place.queue for place in found] == ["perdure-instance-events", "c1-queue"]
    assert served(found) == {("123456789012", "eu-central-1")}
    assert found[1].dead_letters == "c1-queue-dead"


def test_the_dead_letters_of_a_fifo_queue_are_the_regions() -> None:
    fifo = place_of("123456789012/eu-central-1/hooks.fifo")
    assert fifo.dead_letters == "perdure-instance-events-dead"
    (permitted,) = topologies(fifo)
    assert permitted.dead_letters.arn == "arn:aws:sqs:eu-central-1:123456789012:perdure-instance-events-dead"


def test_accounts_may_share_the_queue_of_one() -> None:
    found = places(
        [
            "123456789012/eu-central-1/all",
            "210987654321/us-east-1=123456789012/eu-central-1/all",
            "333333333333/eu-central-1=123456789012/eu-central-1/all",
        ]
    )
    assert served(found) == {
        ("123456789012", "eu-central-1"),
        ("210987654321", "us-east-1"),
        ("333333333333", "eu-central-1"),
    }
    (queue,) = with_queues(found)
    assert queue.senders == {"210987654321", "333333333333"}


@pytest.mark.parametrize(
    "texts",
    [
        ["210987654321/us-east-1=123456789012/eu-central-1"],
        ["210987654321/us-east-1=123456789012/eu-central-1", "123456789012/eu-central-1/another"],
        ["1" * 12 + "/us-east-1=" + "2" * 12 + "/us-east-1", "2" * 12 + "/us-east-1=" + "1" * 12 + "/us-east-1"],
    ],
)
def test_a_shared_queue_has_an_entry_of_its_own(texts: list[str]) -> None:
    with pytest.raises(ValueError, match="which no other entry names"):
        places(texts)


@pytest.mark.parametrize(
    "region", ["eu-central-1", "us-gov-west-1", "cn-northwest-1", "eusc-de-east-1", "us-isob-east-1", "eu-isoe-west-1"]
)
def test_roles_are_assumed_in_the_partition_of_their_place(region: str) -> None:
    """Credentials of one partition are not valid in another."""
    process = Places(connections=1, observing=False).caller(Place(account="123456789012", region=region))
    assert partition_of(process.default_region) == partition_of(region)


def test_a_dead_letter_that_names_no_queue_is_not_taken_for_a_fifo_queues() -> None:
    fifo, own = places(["123456789012/eu-central-1/hooks.fifo", "123456789012/eu-central-1"])
    letter = message_of({"Body": "{}"}, own.account, own.region, datetime(2026, 5, 1, tzinfo=UTC))
    assert source_of(letter, "perdure-instance-events-dead", own, (fifo, own)) == own
