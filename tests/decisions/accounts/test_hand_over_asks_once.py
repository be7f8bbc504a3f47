"""The OUs of claims that come together are one question, whose failure is asked again and blames no other claim."""

from __future__ import annotations

from typing import Any, cast

import pytest
from account_objects import AWS_ID, NAME, claim, ready_account
from memory_kube import MemoryKube
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

import activities.accounts.handover
from activities.accounts.cache import Reader
from activities.accounts.handover import HandOver
from activities.aws.session import Sessions
from domain.accounts.actions.handover import Fulfil
from domain.accounts.organization import ORGANIZATION, OrganizationMemory
from domain.accounts.passes import OrganizationWorld, UnitRefused, UnitRequest, Units, UnitsRequest
from domain.accounts.resources import LegalEntity
from engine.errors import Absent, Invalid, Unavailable
from engine.kube import KubeApi
from engine.settings import Settings


class Organization:
    """The organization's workflow: `bad` is a legal entity that AWS refuses."""

    def __init__(self) -> None:
        self.questions: list[tuple[str, ...]] = []
        self.gone: list[str] = []
        self.away = False

    async def execute_update_with_start_workflow(self, name: str, request: UnitsRequest, **more: Any) -> Units:
        self.questions.append(request.legal_entities)
        if self.away:
            raise RPCError("no", RPCStatusCode.UNAVAILABLE, b"")
        self.gone += [request.gone] if request.gone else []
        made = {name: f"ou-{name}{len(self.gone) or ''}" for name in request.legal_entities if name != "bad"}
        refused = {
            name: UnitRefused(message="not a name", code="Bad") for name in request.legal_entities if name == "bad"
        }
        return Units(ids=made, refused=refused)


@pytest.fixture
def organization() -> Organization:
    return Organization()


@pytest.fixture
def kube() -> MemoryKube:
    return MemoryKube()


@pytest.fixture
def hand_over(organization: Organization, kube: MemoryKube) -> HandOver:
    reader = Reader(cast("KubeApi", kube), Settings())
    return HandOver(reader, cast("Sessions", None), cast("Client", organization))


def entity(name: str) -> UnitRequest:
    return UnitRequest(base="base", legal_entity=name)


async def test_claims_that_come_together_are_one_question(organization: Organization, hand_over: HandOver) -> None:
    hand_over.prepare("base", ["b", "a", "b"])
    assert [await hand_over.unit_of(entity(name)) for name in ("a", "b", "c")] == ["ou-a", "ou-b", "ou-c"]
    hand_over.prepare("base", ["a", "c"])
    assert organization.questions == [("a", "b"), ("c",)]


async def test_a_refused_entity_gets_its_own_reason_and_no_other_is_refused(
    organization: Organization, hand_over: HandOver
) -> None:
    hand_over.prepare("base", ["bad", "good"])
    assert await hand_over.unit_of(entity("good")) == "ou-good"
    with pytest.raises(Invalid, match="'bad': not a name"):
        await hand_over.unit_of(entity("bad"))


async def test_a_question_that_failed_is_asked_again(organization: Organization, hand_over: HandOver) -> None:
    organization.away = True
    hand_over.prepare("base", ["a"])
    with pytest.raises(Unavailable):
        await hand_over.unit_of(entity("a"))
    organization.away = False
    assert await hand_over.unit_of(entity("a")) == "ou-a"
    assert organization.questions == [("a",), ("a",)]


async def test_a_deleted_ou_is_reported_to_the_organization(
    organization: Organization, hand_over: HandOver, kube: MemoryKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kube.put(claim(), ready_account(spec={"claimLink": "claim", "claimLinkNamespace": "tenant"}))
    moved: list[str] = []

    def move(sessions: Sessions, account_id: str, root: str, base: str, unit: str) -> None:
        moved.append(unit)
        if unit == "ou-a":
            raise Absent("no such OU", code="DestinationParentNotFoundException")

    monkeypatch.setattr(activities.accounts.handover, "move_account", move)
    assert [(await hand_over.hand_over(fulfil("a"))).account_ou for _ in range(2)] == ["ou-a1", "ou-a1"]
    assert moved == ["ou-a", "ou-a1", "ou-a1"]
    assert organization.gone == ["ou-a"]


def fulfil(entity: str) -> Fulfil:
    return Fulfil(
        claim=claim().key,
        account=NAME,
        account_id=AWS_ID,
        legal_entity=LegalEntity(id=entity, name=entity),
        root="r-1",
        base="base",
        secret_name="aws",
        source_secret="",
        support_role_arn="",
    )


def test_a_pass_begun_earlier_does_not_restore_a_forgotten_ou() -> None:
    passed = OrganizationWorld(key=ORGANIZATION, known=OrganizationMemory(units={"base/a": "ou-a"}))
    before = OrganizationWorld(key=ORGANIZATION, known=OrganizationMemory(units={"base/b": "ou-b"}))
    assert passed.recall(before).known.units == {"base/b": "ou-b"}
