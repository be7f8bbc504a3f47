"""Who has what is in 3scale where several objects say to have one and the same."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from test_threescale_developer_lifecycle import account as acme_of
from test_threescale_developer_lifecycle import application, on_application, ready_account, user
from test_threescale_once_and_documents import document, policy
from test_threescale_tenant import MASTER, account, tenant
from threescale_objects import NOW, URL, Requested, after, backend, decided, message, metadata, product

from domain.resource import ObjectMeta
from domain.threescale.duplicate_owners import Holder
from domain.threescale.observed import Phase
from domain.threescale.reference_names import called
from domain.threescale.remote_object import One
from domain.threescale.remote_state import FoundAccount, FoundApplication
from domain.threescale.tenant import FoundTenant, KnownTenant

GOING = {"deletionTimestamp": NOW.isoformat()}
HERE = {"providerAccountHost": URL}


def deleted(kind: str, holders: tuple[Holder, ...]) -> Requested:
    """What is done for a deleted object of the kind that has 5 in 3scale."""
    owner = ready_account()
    match kind:
        case "Product":
            return decided(product(meta=GOING, product_id=5), holders=holders)
        case "Backend":
            users = (after(product(product_id=9), {"spec": {"backendUsages": {"stock": {"path": "/"}}}}),)
            users = users if holders else ()  # who uses the other's is no blocker
            return decided(after(backend(meta=GOING), {}, {"backendId": 5}), holders=holders, products=users)
        case "ActiveDoc":
            return decided(document(GOING, {"activeDocId": 5, **HERE}), holders=holders)
        case "CustomPolicyDefinition":
            return decided(after(policy(GOING), {}, {"policyID": 5, **HERE}), holders=holders)
        case "DeveloperAccount":
            return decided(after(ready_account(GOING), {}, {"accountID": 5}), holders=holders)
        case "DeveloperUser":
            ann = user(GOING, {"developerUserID": 5, "accoundID": 11, **HERE})
            return decided(ann, account=owner, holders=holders)
        case "Application":
            return decided(application(GOING, {"applicationID": 5, **HERE}), account=owner, holders=holders)
        case _:
            found = KnownTenant(tenant=One[FoundTenant](looked=True, item=account()))
            acme_too = tenant(GOING, {"tenantId": 5, "adminId": 9})
            return decided(acme_too, provider=MASTER, holders=holders, found=found)


KINDS = (
    "Product",
    "Backend",
    "ActiveDoc",
    "CustomPolicyDefinition",
    "DeveloperAccount",
    "DeveloperUser",
    "Application",
    "Tenant",
)


def held(id_: int = 5, **more: Any) -> tuple[Holder, ...]:
    return (Holder(metadata=ObjectMeta.model_validate(metadata("elder", **more)), id=id_),)


@pytest.mark.parametrize("kind", KINDS)
def test_an_item_that_another_object_has_too_is_left_to_it(kind: str) -> None:
    found = deleted(kind, held())

    assert (found.reads, found.writes, found.drops_finalizer) == ((), (), True)
    assert "shop/elder manages the same object in 3scale" in found.why


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("holders", [(), held(6), held(**GOING)], ids=["nobody", "another thing", "it goes too"])
def test_an_item_without_another_owner_is_deleted(kind: str, holders: tuple[Holder, ...]) -> None:
    found = deleted(kind, holders if kind != "Backend" else ())

    assert [(each.method, each.id) for each in found.writes] == [("DELETE", 5)]


def test_an_account_that_another_object_has_is_not_adopted_and_that_is_reported() -> None:
    there = FoundAccount.model_validate({"id": 5, "org_name": "Acme", "annotations": {"managed_by": "operator"}})
    seen: dict[str, Any] = {"holders": held(), "found": One[FoundAccount](looked=True, item=there)}
    found = decided(acme_of(), **seen)

    assert (found.phase, found.reads, found.writes, found.patch) == (Phase.INVALID, (), (), {})
    assert message(found.status, "Invalid") == "DeveloperAccount shop/elder already manages 3scale account 5"
    assert "accountID" not in found.status
    own = acme_of(None, **{"accountID": 5, "providerAccountHost": URL})
    assert decided(own, **seen).phase is Phase.SYNCED
    assert called(acme_of()) == called(acme_of(None, **{"accountID": 5}))  # so the other's going wakes it


THERE = FoundApplication.model_validate(
    {"id": 5, "name": "App", "description": "An app", "service_id": 5, "plan_id": 3, "state": "live"}
)


def rival(age: str) -> tuple[Holder, ...]:
    return held(creationTimestamp=(NOW - timedelta(days=2 if age == "elder" else 0)).isoformat())


def test_an_application_that_another_has_noted_meanwhile_is_not_its_own() -> None:
    found = on_application(application(), found=One(looked=True, item=THERE), holders=rival("younger"))
    assert ([each.path for each in found.reads], found.patch, found.status) == (["accounts/11/applications"], {}, {})

    (makes,) = on_application(application(), found=One(looked=True), holders=rival("younger")).writes
    assert (makes.method, makes.others) == ("POST", (5,))


def test_of_two_that_have_noted_one_application_the_younger_makes_its_own() -> None:
    app = application(None, {"applicationID": 5, **HERE})
    there = One(looked=True, item=THERE)
    keeps = on_application(app, found=there, holders=rival("younger"))
    assert keeps.phase is Phase.SYNCED
    settled = after(app, keeps.patch, keeps.status)
    assert on_application(settled, holders=rival("younger")).idle

    (look,) = on_application(settled, holders=rival("elder")).reads
    assert (look.path, look.of) == ("accounts/11/applications", 0)
    (makes,) = on_application(settled, found=One(looked=True), holders=rival("elder")).writes
    assert makes.method == "POST"
    own = One(looked=True, item=THERE.model_copy(update={"id": 6}))
    noted = on_application(settled, found=own, holders=rival("elder"))
    assert (noted.phase, noted.status["applicationID"]) == (Phase.SYNCED, 6)
    assert not on_application(after(settled, noted.patch, noted.status), holders=rival("elder")).reads
