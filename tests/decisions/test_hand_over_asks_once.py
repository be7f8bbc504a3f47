"""The OUs of claims that come together are one question, whose failure is asked again and blames nobody else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.accounts.handover import HandOver
from activities.accounts.reading import Reader
from activities.aws.session import Sessions
from domain.accounts.observations import UnitRefused, UnitRequest, Units, UnitsRequest
from domain.accounts.organization import ORGANIZATION
from engine.errors import Invalid, Unavailable


class Organization:
    """The organization's workflow: `bad` is a legal entity that AWS refuses."""

    def __init__(self) -> None:
        self.questions: list[tuple[str, ...]] = []
        self.away = False

    async def execute_update_with_start_workflow(self, name: str, request: UnitsRequest, **more: Any) -> Units:
        self.questions.append(request.legal_entities)
        if self.away:
            raise RPCError("no", RPCStatusCode.UNAVAILABLE, b"")
        made = {name: f"ou-{name}" for name in request.legal_entities if name != "bad"}
        refused = {
            name: UnitRefused(message="not a name", code="Bad") for name in request.legal_entities if name == "bad"
        }
        return Units(ids=made, refused=refused)


@pytest.fixture
def organization() -> Organization:
    return Organization()


@pytest.fixture
def hand_over(organization: Organization) -> HandOver:
    reader = cast("Reader", SimpleNamespace(kube=None, organization=ORGANIZATION))
    return HandOver(reader, cast("Sessions", None), cast("Client", organization))


def entity(name: str) -> UnitRequest:
    return UnitRequest(base="base", legal_entity=name)


async def test_claims_that_come_together_are_one_question(organization: Organization, hand_over: HandOver) -> None:
    hand_over.prepare("base", ["b", "a", "b"])
    assert [await hand_over._unit(entity(name)) for name in ("a", "b", "c")] == ["ou-a", "ou-b", "ou-c"]
    hand_over.prepare("base", ["a", "c"])
    assert organization.questions == [("a", "b"), ("c",)]


async def test_a_refused_entity_is_told_its_own_reason_and_no_other_is(
    organization: Organization, hand_over: HandOver
) -> None:
    hand_over.prepare("base", ["bad", "good"])
    assert await hand_over._unit(entity("good")) == "ou-good"
    with pytest.raises(Invalid, match="'bad': not a name"):
        await hand_over._unit(entity("bad"))


async def test_a_question_that_failed_is_asked_again(organization: Organization, hand_over: HandOver) -> None:
    organization.away = True
    hand_over.prepare("base", ["a"])
    with pytest.raises(Unavailable):
        await hand_over._unit(entity("a"))
    organization.away = False
    assert await hand_over._unit(entity("a")) == "ou-a"
    assert organization.questions == [("a",), ("a",)]
