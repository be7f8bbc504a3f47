"""Objects that move to another tenant: ids of two 3scales may coincide, and what has the old id there is another's."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_objects import (
    ACCOUNT,
    ANN_SPEC,
    NOW,
    URL,
    Requested,
    after,
    backend,
    decided,
    metadata,
    observed,
    product,
    remembers,
    states,
)

from activities.threescale.response_cache import ResponseCache
from domain.resource import CustomResource
from domain.threescale import ACTIVE_DOC, APPLICATION, CUSTOM_POLICY_DEFINITION, DEVELOPER_ACCOUNT, DEVELOPER_USER
from domain.threescale.application_auth import SecretContent
from domain.threescale.calls import SecretKey
from domain.threescale.document_sources import Text
from domain.threescale.remote_object import One
from domain.threescale.remote_state import FoundPlan, FoundProduct, FoundService, FoundUser
from domain.threescale.resources import (
    ActiveDoc,
    Application,
    ApplicationAuth,
    CustomPolicyDefinition,
    DeveloperAccount,
    DeveloperUser,
    ProxyConfigPromote,
)

NEW = "https://new-admin.example.com"
THERE = ACCOUNT.model_copy(update={"url": NEW})
HERE: dict[str, Any] = {"providerAccountHost": URL, "conditions": [{"type": "Ready", "status": "True"}]}
OWNER = {"ownerReferences": [{"kind": "DeveloperAccount", "name": "acme", "uid": "uid-acme"}]}
PASSWORD = SecretKey(namespace="shop", name="ann-password", key="password")
GOING = {"deletionTimestamp": NOW.isoformat()}

SCHEMA = {"name": "Mine", "version": "1", "summary": "s", "$schema": "http://x", "configuration": {}}


def document(**meta: Any) -> ActiveDoc:
    spec = {"name": "Doc", "systemName": "doc", "activeDocOpenAPIRef": {"url": "https://example.com/doc"}}
    made = metadata("doc", ACTIVE_DOC.finalizer, **meta)
    return ActiveDoc.model_validate({"metadata": made, "spec": spec, "status": {**HERE, "activeDocId": 8}})


def policy(**meta: Any) -> CustomPolicyDefinition:
    spec = {"name": "mine", "version": "1", "schema": SCHEMA}
    made = metadata("mine", CUSTOM_POLICY_DEFINITION.finalizer, **meta)
    return CustomPolicyDefinition.model_validate({"metadata": made, "spec": spec, "status": {**HERE, "policyID": 6}})


def account(host: str = URL, id_: int = 11, meta: dict[str, Any] | None = None) -> DeveloperAccount:
    made = metadata("acme", DEVELOPER_ACCOUNT.finalizer, annotations={"accountID": "11"}, **(meta or {}))
    status = {**HERE, "providerAccountHost": host, "accountID": id_}
    return DeveloperAccount.model_validate({"metadata": made, "spec": {"orgName": "Acme"}, "status": status})


def user(**meta: Any) -> DeveloperUser:
    made = metadata("ann", DEVELOPER_USER.finalizer, **{"annotations": {"userID": "4"}, **OWNER, **meta})
    status = {**HERE, "developerUserID": 4, "accoundID": 11}
    return DeveloperUser.model_validate({"metadata": made, "spec": ANN_SPEC, "status": status})


def application(**meta: Any) -> Application:
    spec = {
        "accountCR": {"name": "acme"},
        "productCR": {"name": "shop"},
        "applicationPlanName": "basic",
        "name": "App",
        "description": "An app",
    }
    made = metadata("app", APPLICATION.finalizer, **{"annotations": {"applicationID": "21"}, **OWNER, **meta})
    return Application.model_validate({"metadata": made, "spec": spec, "status": {**HERE, "applicationID": 21}})


SHOP = after(product(applicationPlans={"basic": {}}, product_id=5), {}, {"providerAccountHost": NEW})


def moved(resource: CustomResource, **more: Any) -> Requested:
    """What is decided on the object, which is to be in the other tenant."""
    match resource:
        case ActiveDoc():
            more = {"text": Text(body="{}"), **more}
        case DeveloperAccount():
            more = {"users": (user(),), "secrets": (PASSWORD,), **more}
        case DeveloperUser():
            more = {"account": account(NEW, 12), "secrets": (PASSWORD,), **more}
        case Application():
            plans = (FoundPlan(id=3, system_name="basic"),)
            more = {"account": account(NEW, 12), "product": SHOP, "plans": plans, **more}
    return decided(resource, provider=THERE, **more)


@pytest.mark.parametrize(
    ("resource", "path"),
    [
        (product(product_id=5), "services"),
        (backend(), "backend_apis"),
        (document(), "active_docs"),
        (policy(), "registry/policies"),
        (account(), "accounts/find"),
        (user(), "accounts/12/users"),
        (application(), "accounts/12/applications"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, CustomResource) else each,
)
def test_an_object_that_moves_is_looked_for_by_its_name(resource: CustomResource, path: str) -> None:
    found = moved(resource)

    assert [each.path for each in found.reads] == [path]
    assert found.writes == ()


@pytest.mark.parametrize(
    "resource",
    [document(**GOING), policy(**GOING), account(meta=GOING), application(**GOING)],
    ids=lambda each: type(each).__name__,
)
def test_an_object_whose_id_is_elsewhere_is_not_deleted(resource: CustomResource) -> None:
    found = moved(resource)

    assert (found.reads, found.writes, found.drops_finalizer) == ((), (), True)


def test_a_product_and_a_backend_that_move_and_go_are_looked_for_by_their_names() -> None:
    assert [each.path for each in moved(product(product_id=5, meta=GOING)).reads] == ["services"]
    assert [each.path for each in moved(backend(meta=GOING)).reads] == ["backend_apis"]


def test_the_address_in_the_status_stays_that_of_the_id_until_there_is_another() -> None:
    waiting = moved(product(product_id=5, backendUsages={"stock": {"path": "/"}}))
    assert states(waiting.status) == "Failed Orphan"
    assert "providerAccountHost" not in waiting.status

    found = One[FoundUser](looked=True, item=FoundUser(id=7, username="ann", email="ann@example.com", role="admin"))
    after_move = moved(user(), found=found)
    assert {name: after_move.status[name] for name in ("developerUserID", "accoundID", "providerAccountHost")} == {
        "developerUserID": 7,
        "accoundID": 12,
        "providerAccountHost": NEW,
    }
    assert after_move.patch["metadata"]["annotations"]["userID"] == "7"  # type: ignore[index]


def test_an_application_waits_for_its_account_to_move() -> None:
    found = moved(application(), account=account(), product=after(SHOP, {}, {"providerAccountHost": URL}))

    assert (found.why, found.reads) == ("accountCR name doesnt have a valid account reference", ())
    assert found.waits_for == ("DeveloperAccount/shop/acme",)


def test_an_action_done_once_waits_until_its_referent_has_moved() -> None:
    once = ProxyConfigPromote.model_validate({"metadata": metadata("once"), "spec": {"productCRName": "shop"}})
    uses = product(product_id=5, backendUsages={"stock": {"path": "/"}})
    synced = after(uses, {}, {"conditions": [{"type": "Synced", "status": "True"}], "observedGeneration": 3})
    assert decided(once, product=synced).writes
    found = decided(once, provider=THERE, product=synced)
    assert (found.why, found.writes) == ("product CR is not ready", ())

    auth = ApplicationAuth.model_validate(
        {"metadata": metadata("auth"), "spec": {"applicationCRName": "app", "authSecretRef": {"name": "keys"}}}
    )
    secret = SecretContent(name="keys", filled=("UserKey",))
    relatives: dict[str, Any] = {"application": application(), "account": account(), "product": SHOP, "secret": secret}
    assert decided(auth, **relatives).reads
    other = decided(auth, provider=THERE, **relatives)
    assert (other.why, other.reads) == ("Application app does not belong to the same provider account", ())


def test_facts_of_one_tenant_are_not_taken_for_another() -> None:
    synced = remembers(product(product_id=5), synced="digest")
    found = FoundProduct(looked=True, entry=FoundService(id=5))

    remaining = ResponseCache()
    recalled = []
    for provider in (THERE, ACCOUNT):
        remaining.keep(observed(synced, found=found))
        recalled.append(remaining.recall(observed(synced, provider=provider)))
    assert recalled[0] is None
    assert recalled[1] is not None
