"""What bears no mark in 3scale notes its creation before it is made, and looks for what came of it when it goes."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from test_threescale_developer_lifecycle import (
    account,
    application,
    on_account,
    on_application,
    on_user,
    ready_account,
    user,
)
from test_threescale_once_and_documents import SCHEMA, document, on_document, policy
from threescale_objects import NO_ACCOUNT, NOW, Requested, after, decided, observed

from activities.threescale.cache import ThreescaleCache
from activities.threescale.developer_accounts import ApplicationSubject
from activities.threescale.document_download import Downloads
from activities.threescale.secrets import Secrets
from domain.threescale.actions import PatchObject, ShowStatus
from domain.threescale.application import is_application
from domain.threescale.calls import Answer, Read, Resource
from domain.threescale.developer_account import is_account
from domain.threescale.developer_user import is_user
from domain.threescale.document_sources import Text
from domain.threescale.duplicate_owners import Holder
from domain.threescale.idempotent_creations import CREATING, OTHERS
from domain.threescale.observed import Phase
from domain.threescale.remote_object import One
from domain.threescale.remote_state import (
    FoundAccount,
    FoundApplication,
    FoundDocument,
    FoundPolicy,
    FoundUser,
    Identified,
)
from engine.kube import KubeApi

GOING = {"deletionTimestamp": NOW.isoformat()}
KINDS = ("ActiveDoc", "Application", "CustomPolicyDefinition", "DeveloperAccount", "DeveloperUser")
LOOKS = {
    "ActiveDoc": "active_docs",
    "Application": "accounts/11/applications",
    "CustomPolicyDefinition": "registry/policies",
    "DeveloperAccount": "accounts/find",
    "DeveloperUser": "accounts/11/users",
}


def on(kind: str, meta: dict[str, Any] | None = None, found: One[Any] | None = None, **more: Any) -> Requested:
    """What is done for an object of the kind that knows no id."""
    more = {"found": found or One[Any](), **more}
    match kind:
        case "ActiveDoc":
            return on_document(document(meta), text=Text(body="{}"), **more)
        case "Application":
            return on_application(application(meta), **more)
        case "CustomPolicyDefinition":
            return decided(policy(meta), **more)
        case "DeveloperAccount":
            return on_account(account(meta), **more)
    return on_user(user(meta), **more)


def item(kind: str) -> Identified:
    match kind:
        case "ActiveDoc":
            return FoundDocument(id=5, system_name="doc")
        case "Application":
            return FoundApplication(id=5, name="App", service_id=5)
        case "CustomPolicyDefinition":
            return FoundPolicy(id=5, name="mine", version="1.0")
        case "DeveloperAccount":
            return FoundAccount(id=5, org_name="Acme", annotations={"managed_by": "operator"})
    return FoundUser(id=5, username="ann", email="ann@example.com")


def begun(kind: str) -> dict[str, Any]:
    """What the object notes with its creation."""
    annotations: Any = on(kind, found=One[Any](looked=True)).patch["metadata"]
    return {"annotations": annotations["annotations"]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_creation_is_noted_with_it_once(kind: str) -> None:
    first = on(kind, found=One[Any](looked=True))
    again = on(kind, begun(kind), found=One[Any](looked=True))

    assert [each.method for each in first.writes] == [each.method for each in again.writes] == ["POST"]
    assert json.loads(begun(kind)["annotations"][CREATING]).items() >= first.writes[0].key.items()
    assert again.patch == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_deleted_object_without_an_id_searches_what_it_has_begun(kind: str) -> None:
    going = {**begun(kind), **GOING}
    looks = on(kind, going)
    lets_go = on(kind, going, One[Any](looked=True, item=item(kind)))

    assert ([each.path for each in looks.reads], looks.drops_finalizer) == ([LOOKS[kind]], False)
    assert [(each.method, each.id) for each in lets_go.writes] == [("DELETE", 5)]
    assert on(kind, going, One[Any](looked=True)).drops_finalizer


@pytest.mark.parametrize("kind", KINDS)
def test_a_begun_creation_is_not_left_behind_while_the_secret_lacks_a_key(kind: str) -> None:
    incomplete = NO_ACCOUNT.model_copy(update={"incomplete": True})
    for meta, waits in ((begun(kind), True), ({}, False)):
        found = on(kind, {**meta, **GOING}, provider=incomplete)
        assert (found.drops_finalizer, bool(found.waits_for)) == (not waits, waits)


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_that_has_begun_nothing_is_deleted_without_a_call(kind: str) -> None:
    for found in (One[Any](), One[Any](looked=True, item=item(kind))):
        gone = on(kind, GOING, found)
        assert (gone.reads, gone.writes, gone.drops_finalizer) == ((), (), True)


def test_a_begun_creation_is_known_by_its_name_of_that_time() -> None:
    acme, ann = account(begun("DeveloperAccount")), user(begun("DeveloperUser"))
    renamed = after(acme, {"spec": {"orgName": "Globex"}}), after(ann, {"spec": {"username": "anna"}})
    for signed_up, person in ((acme, ann), renamed):
        assert is_account(cast("FoundAccount", item("DeveloperAccount")), signed_up)
        assert is_user(cast("FoundUser", item("DeveloperUser")), person)
    (_, new) = renamed
    assert not is_account(FoundAccount(id=5, org_name="Other", annotations={"managed_by": "operator"}), renamed[0])
    assert not is_user(FoundUser(id=5, username="ann", email="other@example.com"), new)
    assert not is_user(cast("FoundUser", item("DeveloperUser")), after(user(), {"spec": {"username": "anna"}}))


def test_a_sign_up_is_searched_although_its_user_is_gone() -> None:
    (look,) = on("DeveloperAccount", {**begun("DeveloperAccount"), **GOING}, users=()).reads

    assert look.query == {"username": "ann"}


@pytest.mark.parametrize("kind", ["Application", "DeveloperUser"])
def test_a_creation_begun_in_a_deleted_account_waits_for_that(kind: str) -> None:
    found = on(kind, {**begun(kind), **GOING}, account=ready_account(GOING))

    assert (found.phase, found.reads, found.writes, found.drops_finalizer) == (Phase.DELETING, (), (), False)


@pytest.mark.parametrize("kind", ["ActiveDoc", "CustomPolicyDefinition"])
def test_an_item_that_another_of_that_name_may_have_made_is_not_searched(kind: str) -> None:
    found = on(kind, {**begun(kind), **GOING}, siblings=(document({"uid": "another"}).metadata,))

    assert found.drops_finalizer


def test_a_synced_object_has_begun_nothing_any_more() -> None:
    there = {"id": 5, "name": "mine", "version": "1", "schema": {**SCHEMA, "description": []}}
    made = FoundPolicy.model_validate(there)
    found = on("CustomPolicyDefinition", begun("CustomPolicyDefinition"), One(looked=True, item=made))

    assert found.phase is Phase.SYNCED
    assert found.patch == {"metadata": {"annotations": {CREATING: None}}}


def test_an_application_that_is_moved_leaves_nothing_in_either_place() -> None:
    status = {"applicationID": 4, "providerAccountHost": "https://3scale-admin.example.com"}
    moved = application({**begun("Application"), **GOING}, status)
    steps = (One[Any](), One[Any](lost=True), One[Any](looked=True, item=item("Application")))
    calls = [on_application(moved, found=found) for found in steps]

    assert [each.id for each in calls[0].writes] == [4]
    assert [each.path for each in calls[1].reads] == [LOOKS["Application"]]
    assert [each.id for each in calls[2].writes] == [5]


def test_a_creation_begun_for_a_deleted_product_is_known_by_its_record() -> None:
    there = FoundApplication(id=5, name="App", service_id=5)

    assert observed(application(begun("Application"))).is_it(there)
    assert not observed(application()).is_it(there)


def test_an_application_that_3scale_denied_by_mistake_is_not_made_again() -> None:
    status = {"applicationID": 4, "providerAccountHost": "https://3scale-admin.example.com"}
    there = FoundApplication(id=4, name="Called otherwise", service_id=5)

    assert observed(application({}, status)).is_it(there)
    other = (Holder(metadata=application({"uid": "other"}).metadata, id=4),)
    assert not observed(application({}, status), holders=other).is_it(there)


def test_the_record_of_a_creation_goes_only_when_the_status_has_the_id() -> None:
    """A worker that dies in between has otherwise made an application again in vain, or a policy that stays."""
    made = FoundPolicy.model_validate({"id": 5, "name": "mine", "version": "1", "schema": SCHEMA})
    world = observed(policy(begun("CustomPolicyDefinition")), found=One[Any](looked=True, item=made))

    assert [type(each) for each in world.decide(NOW).actions] == [ShowStatus, PatchObject]


async def test_the_ids_of_other_applications_are_read_once_for_a_whole_list() -> None:
    """Five hundred of one account, each of which looked at all others for each that was listed, took the worker."""
    requests: list[object] = []

    def referring(*what: object, **_: object) -> tuple[()]:
        requests.append(what)
        return ()

    view = SimpleNamespace(referring=referring, having=lambda *_: ())
    subject = ApplicationSubject(
        application(begun("Application")),
        cast("ThreescaleCache", view),
        cast("Secrets", None),
        cast("Downloads", None),
        cast("KubeApi", None),
    )
    listed = [{"application": {"id": id_, "name": "App", "service_id": 5}} for id_ in range(1, 100)]
    read = Read(resource=Resource.APPLICATION, path=LOOKS["Application"])
    body, world = {"applications": listed}, observed(subject.resource)
    answer = Answer(body=body, beside=await subject.noticed(read, world.read(read, body)))

    assert read.fold(world, answer).found.item.id == 1
    assert len(requests) == 1


def test_an_application_notes_who_has_had_its_name_before() -> None:
    there = tuple(
        FoundApplication(id=id_, name=name, service_id=service_id)
        for id_, name, service_id in ((3, "App", 5), (4, "Other", 5), (6, "App", 7))
    )
    first = on_application(application(), found=One[FoundApplication](looked=True), listed=there)
    annotations: Any = first.patch["metadata"]
    noted = json.loads(annotations["annotations"][CREATING])

    assert first.writes[0].others == (3,)
    assert noted == {**first.writes[0].key, OTHERS: [3]}
    assert not is_application(there[0], noted)
    came_of_it = FoundApplication(id=8, name="App", service_id=5)
    assert is_application(came_of_it, noted)
    assert not is_application(came_of_it, noted, claimed=(8,))
    assert not is_application(came_of_it, {})


def test_one_whose_id_is_anothers_still_looks_for_its_own() -> None:
    status = {"applicationID": 4, "providerAccountHost": "https://3scale-admin.example.com"}
    going = application({**begun("Application"), **GOING}, status)
    elder = (Holder(metadata=application({"uid": "elder"}).metadata, id=4),)
    (look,) = on_application(going, holders=elder).reads
    assert look.path == LOOKS["Application"]
    (lets_go,) = on_application(going, holders=elder, found=One[Any](looked=True, item=item("Application"))).writes
    assert (lets_go.method, lets_go.id) == ("DELETE", 5)
