"""Documents and policies, and what is done once: promotions and credentials."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from threescale_objects import (
    ACCOUNT,
    LONG_AGO,
    NO_ACCOUNT,
    NOW,
    URL,
    Requested,
    after,
    decided,
    message,
    metadata,
    observed,
    product,
    refusal,
    states,
)

from activities.threescale.cache import ThreescaleCache
from activities.threescale.document_download import Downloads
from activities.threescale.documents import DocumentSubject
from activities.threescale.secrets import Secrets
from domain.refusal import ErrorType
from domain.threescale import ACTIVE_DOC, CUSTOM_POLICY_DEFINITION
from domain.threescale.actions import WriteSecret
from domain.threescale.active_doc import read_document, wrote_document
from domain.threescale.application_auth import SecretContent
from domain.threescale.calls import Answer, Read, Resource, Write
from domain.threescale.conditions import SyncState
from domain.threescale.config_promotion import FoundConfigs
from domain.threescale.document_sources import Text
from domain.threescale.observed import Blocker
from domain.threescale.reference_names import called
from domain.threescale.remote_object import One, read_one, wrote_one
from domain.threescale.remote_state import FoundApplication, FoundDocument, FoundPolicy
from domain.threescale.resources import (
    ActiveDoc,
    Application,
    ApplicationAuth,
    CustomPolicyDefinition,
    DeveloperAccount,
    Product,
    ProxyConfigPromote,
)
from engine.kube import KubeApi

SYNCED = {"conditions": [{"type": "Synced", "status": "True"}], "observedGeneration": 3, "productId": 5}
GOING = {"deletionTimestamp": NOW.isoformat()}
USES: dict[str, Any] = {"backendUsages": {"stock": {"path": "/"}}}


# Clients compare the whole of it.
NOTHING_FOR_STAGING = (
    '[]: Invalid value: "": cannot promote to staging as no product changes detected. Delete this proxyConfigPromote '
    "CR, then introduce changes to configuration, and then create a new proxyConfigPromote CR"
)


def synced(object_: Product, **status: Any) -> Product:
    result = after(object_, {}, {**SYNCED, "providerAccountHost": URL, **status})
    assert isinstance(result, Product)
    return result


def document(meta: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **spec: Any) -> ActiveDoc:
    reference = {"url": "https://example.com/doc.json"}
    return ActiveDoc.model_validate(
        {
            "metadata": metadata("doc", ACTIVE_DOC.finalizer, **(meta or {})),
            "spec": {"name": "Doc", "systemName": "doc", "activeDocOpenAPIRef": reference, **spec},
            "status": status or {},
        }
    )


def on_document(object_: ActiveDoc, **more: Any) -> Requested:
    return decided(object_, **{"text": Text(body='{"a": 1}', version="1"), **more})


LOST = Blocker(state=SyncState.WAITING, message="Secret not found", waits_for=("Secret/shop/doc",))


@pytest.mark.parametrize(
    ("observed", "shown", "waits_for"),
    [
        ({"provider": NO_ACCOUNT}, "Failed Orphan", ("Secret/shop/threescale-provider-account",)),
        ({}, "Failed Orphan", ("Product/shop/shop",)),
        ({"products": (product(),)}, "Failed Orphan", ("Product/shop/shop",)),
        (
            {"products": (synced(product(), conditions=[{"type": "Invalid", "status": "True"}]),)},
            "Failed Invalid",
            ("Product/shop/shop",),
        ),
        (
            {"products": (synced(product(), providerAccountHost="https://other.example.com"),)},
            "Failed Invalid",
            ("Product/shop/shop",),
        ),
        ({"products": (synced(product()),), "text": Text(blocker=LOST)}, "Failed Orphan", ("Secret/shop/doc",)),
    ],
    ids=["no tenant", "no product", "not made", "invalid", "another tenant's", "no document"],
)
def test_a_document_waits_without_a_call(observed: dict[str, Any], shown: str, waits_for: tuple[str, ...]) -> None:
    found = on_document(document(productSystemName="shop"), **observed)

    assert (states(found.status), found.waits_for) == (shown, waits_for)
    assert (found.reads, found.writes) == ((), ())


def test_a_document_whose_name_makes_no_system_name_is_invalid() -> None:
    found = on_document(document(name="商店", systemName=""))

    assert (states(found.status), found.patch, found.reads) == ("Failed Invalid", {}, ())


def test_a_missing_product_of_a_document_is_reported_in_the_known_words() -> None:
    found = on_document(document(productSystemName="shop"))

    expected = 'spec.productSystemName: Invalid value: "shop": not a valid reference'
    assert message(found.status, "Orphan") == message(found.status, "Failed") == expected


def test_a_document_is_made_for_its_product_and_then_asks_for_nothing() -> None:
    named = document(productSystemName="shop", published=True)
    products = (synced(product()),)
    assert [each.path for each in on_document(named, products=products).reads] == ["active_docs"]
    (creation,) = on_document(named, products=products, found=One[FoundDocument](looked=True)).writes
    assert creation.fields == {
        "name": "Doc",
        "system_name": "doc",
        "published": True,
        "body": '{"a": 1}',
        "service_id": 5,
    }
    made = FoundDocument(id=8, name="Doc", system_name="doc", published=True, body='{\n"a":1}', service_id=5)
    found = on_document(named, products=products, found=One[FoundDocument](looked=True, item=made))
    settled = after(named, found.patch, found.status)

    assert states(found.status) == "Ready"
    assert found.status["productResourceName"] == {"name": "shop"}
    assert on_document(settled, products=products).idle
    assert on_document(settled, products=products, text=Text(body="{}", version="2")).reads


def test_a_document_that_leaves_its_product_says_so() -> None:
    made = FoundDocument(id=8, name="Doc", system_name="doc", body='{"a": 2}', service_id=5)
    (change,) = on_document(document(), found=One[FoundDocument](looked=True, item=made)).writes

    assert (change.path, change.fields) == ("active_docs/8", {"body": '{"a": 1}', "service_id": None})


def test_a_renamed_document_is_created_again() -> None:
    status = {"activeDocId": 8, "providerAccountHost": ACCOUNT.url}
    renamed = document(status=status, systemName="other")
    before = {"id": 8, "name": "Doc", "system_name": "doc", "body": '{"a": 1}'}
    found, made = One[FoundDocument](), []
    while (work := on_document(renamed, found=found)).reads or work.writes:
        for read in work.reads:
            answer: Any = {"api_doc": before} if read.of else {"api_docs": [{"api_doc": before}]}
            found = read_document(found, read, answer, renamed)
        for write in work.writes:
            made.append((write.method, write.path))
            found = wrote_document(found, write, {"api_doc": {"id": 9, **write.fields}} if write.fields else None)
    assert made == [("POST", "active_docs"), ("DELETE", "active_docs/8")]
    assert work.status["activeDocId"] == 9


def test_a_document_stays_while_its_successor_is_refused_and_goes_when_that_is_there() -> None:
    renamed = document(status={"activeDocId": 8, "providerAccountHost": ACCOUNT.url}, systemName="x")
    found = One[FoundDocument](looked=True, former=8)
    (creation,) = on_document(renamed, found=found).writes
    refused = {creation.slot: refusal(ErrorType.INVALID, "system_name is too short")}
    decision = on_document(renamed, found=found, refusals=refused)
    assert (states(decision.status), decision.writes) == ("Failed Invalid", ())

    there = FoundDocument(id=9, name="Doc", system_name="x", body='{"a": 1}')
    found = found.model_copy(update={"item": there})
    (deletion,) = on_document(renamed, found=found).writes
    refused = {deletion.slot: refusal(ErrorType.DENIED, "no")}
    decision = on_document(renamed, found=found, refusals=refused)
    assert "activeDocId" not in decision.status


@pytest.mark.parametrize(
    ("meta", "host", "name", "former"),
    [
        ({}, URL, "doc", 0),
        ({}, None, "doc", 0),
        (GOING, URL, "doc", 8),
        ({}, "https://other.example.com", "doc", 8),
        ({}, URL, "third", 8),
    ],
    ids=["has it", "is to have it", "goes", "another tenant's", "called otherwise"],
)
async def test_a_former_document_is_left_to_the_object_that_has_its_name_now(
    meta: dict[str, Any], host: str | None, name: str, former: int
) -> None:
    other = document({**meta, "uid": "uid-other"}, {"providerAccountHost": host}, systemName=name)
    view = SimpleNamespace(
        siblings=lambda normalized: tuple(each for each in (other,) if called(each) == called(normalized)),
        having=lambda *_: (),
    )
    renamed = document(status={"activeDocId": 8, "providerAccountHost": URL}, systemName="new")
    subject = DocumentSubject(
        renamed, cast("ThreescaleCache", view), cast("Secrets", None), cast("Downloads", None), cast("KubeApi", None)
    )
    subject.provider = ACCOUNT
    before = {"api_doc": {"id": 8, "name": "Doc", "system_name": "doc"}}
    world = observed(renamed)
    for read, body in (
        (Read(resource=Resource.DOCUMENT, path="active_docs/8", of=8), before),
        (Read(resource=Resource.DOCUMENT, path="active_docs"), {"api_docs": [before]}),
    ):
        beside = await subject.noticed(read, world.read(read, body))
        world = read.fold(world, Answer(body=body, beside=beside))

    assert (world.found.looked, world.found.item, world.found.former) == (True, None, former)


def test_a_document_is_deleted_with_its_object() -> None:
    going = document(GOING, {"activeDocId": 8})
    assert [(each.method, each.path) for each in on_document(going).writes] == [("DELETE", "active_docs/8")]
    assert on_document(going, found=One[FoundDocument](lost=True)).drops_finalizer


def test_objects_are_known_by_their_answers_and_looked_for_where_they_say_nothing() -> None:
    def written(method: str, resource: Resource, answer: object) -> One[FoundApplication]:
        write = Write.model_validate({"resource": resource, "method": method, "path": "x"})
        return wrote_one(FoundApplication, Resource.APPLICATION, One[FoundApplication](looked=True), write, answer)

    assert written("POST", Resource.APPLICATION, {"application": {"id": 1}}).item == FoundApplication(id=1)
    assert written("PUT", Resource.APPLICATION, {"application_plan": {"id": 3}}).untouched
    deleted = written("DELETE", Resource.APPLICATION, None)
    assert (deleted.looked, deleted.lost, deleted.item) == (False, True, None)


def test_the_lowest_matching_id_is_chosen_and_a_missing_id_is_lost() -> None:
    by_id = Read(resource=Resource.APPLICATION, path="x/2", of=2)
    among_all = Read(resource=Resource.APPLICATION, path="x")
    answer = {"applications": [{"application": {"id": number, "name": "a"}} for number in (9, 4, 6)]}
    found = read_one(FoundApplication, among_all, answer, lambda each: each.id > 4)

    assert found.item is not None
    assert found.item.id == 6
    assert read_one(FoundApplication, by_id, None, lambda _: True).lost
    assert read_one(FoundApplication, among_all, {"applications": []}, lambda _: True).looked


SCHEMA = {"name": "Mine", "version": "1", "summary": "s", "$schema": "http://x", "configuration": {"type": "object"}}


def policy(meta: dict[str, Any] | None = None, **status: Any) -> CustomPolicyDefinition:
    return CustomPolicyDefinition.model_validate(
        {
            "metadata": metadata("mine", CUSTOM_POLICY_DEFINITION.finalizer, **(meta or {})),
            "spec": {"name": "mine", "version": "1", "schema": SCHEMA},
            "status": status,
        }
    )


def test_a_policy_is_made_and_then_asks_for_nothing() -> None:
    assert [each.path for each in decided(policy()).reads] == ["registry/policies"]
    (creation,) = decided(policy(), found=One[FoundPolicy](looked=True)).writes
    assert creation.fields == {"name": "mine", "version": "1", "schema": SCHEMA}
    made = FoundPolicy.model_validate(
        {"id": 2, "name": "mine", "version": "1", "schema": {**SCHEMA, "description": []}}
    )
    found = decided(policy(), found=One[FoundPolicy](looked=True, item=made))

    assert states(found.status) == "Ready"
    assert decided(after(policy(), found.patch, found.status)).idle
    changed = made.model_copy(update={"schema_": {**SCHEMA, "summary": "other"}})
    assert decided(policy(), found=One[FoundPolicy](looked=True, item=changed)).writes[0].method == "PUT"


def test_a_change_of_a_policy_in_use_is_retried_like_a_deletion() -> None:
    changed = FoundPolicy.model_validate({"id": 2, "name": "headers", "version": "1.0", "schema": {"version": "0"}})
    world = observed(policy(), found=One[FoundPolicy](looked=True, item=changed))
    (change,) = [each for each in world.decide(NOW).actions if isinstance(each, Write)]
    refused = refusal(ErrorType.INVALID, "is used by at least one policy chain")

    assert change.refuse(world, refused).refusals[change.slot].retry_at == NOW + timedelta(seconds=5)
    creation = change.model_copy(update={"method": "POST"})
    assert creation.refuse(world, refused).refusals[creation.slot].retry_at == NOW + timedelta(hours=1)


def test_a_policy_that_a_chain_has_is_reported_and_retried() -> None:
    going = policy(GOING, policyID=2)
    assert [each.path for each in decided(going).writes] == ["registry/policies/2"]
    found = decided(going, refusals={"DELETE registry/policies/2 mine 1": refusal(ErrorType.DENIED, "in use")})

    assert (message(found.status, "Failed"), found.drops_finalizer) == ("in use", False)
    assert states(decided(policy(), siblings=(policy({"uid": "a"}).metadata,)).status) == "Invalid"


def promotion(status: dict[str, Any] | None = None, **spec: Any) -> ProxyConfigPromote:
    return ProxyConfigPromote.model_validate(
        {"metadata": metadata("go"), "spec": {"productCRName": "shop", **spec}, "status": status or {}}
    )


def on_promotion(object_: ProxyConfigPromote, **more: Any) -> Requested:
    return decided(object_, **{"product": synced(product(**USES)), **more})


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (None, "product not found"),
        (product(), "product CR is not ready"),
        (product(product_id=5), "product CR is not ready"),
        (synced(product(**USES), observedGeneration=2), "product CR is not ready"),
        (synced(product()), NOTHING_FOR_STAGING),
    ],
)
def test_a_promotion_waits_for_its_product_without_a_call(of: Product | None, text: str) -> None:
    found = on_promotion(promotion(), product=of)

    assert message(found.status, "Failed") == text
    id_ = str(of.status.product_id) if of is not None and of.status.product_id else None
    assert found.status.get("productId") == (id_ if of is not None else "product not found")
    assert (found.reads, found.writes) == ((), ())


def test_a_promotion_without_backends_says_so_and_continues_with_one() -> None:
    found = on_promotion(promotion(), product=synced(product()))
    assert message(found.status, "Failed") == NOTHING_FOR_STAGING
    assert found.deadline is not None
    onward = on_promotion(promotion(production=True), product=synced(product()))
    text = "nothing to promote: 3scale does not deploy Product shop until the Product uses a backend"
    assert message(onward.status, "Failed") == text

    waiting = after(promotion(), {}, found.status)
    assert on_promotion(waiting, product=synced(product(**USES))).writes


def test_a_promotion_deploys_reads_promotes_and_is_done() -> None:
    """3scale weakness 19: a promotion with nothing to do fails, as does any refusal."""
    wanted = promotion(production=True)
    assert [each.path for each in on_promotion(wanted).writes] == ["services/5/proxy/deploy"]
    deployed = FoundConfigs(deployed=True)
    assert [each.path for each in on_promotion(wanted, found=deployed).reads] == [
        "services/5/proxy/configs/sandbox/latest",
        "services/5/proxy/configs/production/latest",
    ]
    behind = FoundConfigs(deployed=True, newest={"sandbox": 4, "production": 3})
    (promote,) = on_promotion(wanted, found=behind).writes
    assert (promote.path, promote.fields) == ("services/5/proxy/configs/sandbox/4/promote", {"to": "production"})
    found = on_promotion(wanted, found=FoundConfigs(deployed=True, newest={"sandbox": 4, "production": 4}))
    assert states(found.status) == "Ready"
    assert (found.status["latestStagingVersion"], found.status["latestProductionVersion"]) == (4, 4)
    done = after(wanted, {}, found.status)

    assert on_promotion(done, product=None).idle
    assert on_promotion(after(done, {"spec": {"deleteCR": True}})).deletes
    assert states(on_promotion(promotion(), found=behind).status) == "Ready"


def test_credentials_wait_for_an_application_that_is_gone_in_3scale() -> None:
    found = on_auth(auth(), "UserKey", found=One[FoundApplication](lost=True))

    assert (found.why, found.reads, found.writes) == ("Application app is not in 3scale yet", (), ())
    assert found.waits_for == ("Application/shop/app",)
    assert found.deadline is not None


def auth(status: dict[str, Any] | None = None, **spec: Any) -> ApplicationAuth:
    spec = {"applicationCRName": "app", "authSecretRef": {"name": "keys"}, **spec}
    return ApplicationAuth.model_validate({"metadata": metadata("auth"), "spec": spec, "status": status or {}})


APPLICATION = Application.model_validate({"metadata": metadata("app"), "status": {"applicationID": 21}})
DEVELOPER = DeveloperAccount.model_validate({"metadata": metadata("acme"), "status": {"accountID": 11}})


def mode(kind: str) -> Product:
    return product(deployment={"apicastHosted": {"authentication": {kind: {}}}}) if kind else product()


def on_auth(object_: ApplicationAuth, *filled: str, kind: str = "userkey", **more: Any) -> Requested:
    secret = SecretContent(
        name="keys",
        there=more.pop("there", ("UserKey", "ApplicationID", "ApplicationKey")),
        filled=filled,
        application_id="id" if "ApplicationID" in filled else "",
    )
    observed = {"application": APPLICATION, "account": DEVELOPER, "product": mode(kind), "secret": secret}
    return decided(object_, **{**observed, **more})


@pytest.mark.parametrize(
    ("observed", "waits_for"),
    [
        ({"application": None}, ("Application/shop/app",)),
        ({"secret": None}, ("Secret/shop/keys",)),
        ({"application": Application.model_validate({"metadata": metadata("app")})}, ("Application/shop/app",)),
        ({}, ("Secret/shop/keys",)),
    ],
    ids=["no application", "no secret", "not made", "nothing in the secret"],
)
def test_credentials_wait_without_a_call(observed: dict[str, Any], waits_for: tuple[str, ...]) -> None:
    found = on_auth(auth(), **observed)

    assert (states(found.status), found.waits_for) == ("Failed Orphan", waits_for)
    assert (found.reads, found.writes, found.effects) == ((), (), ())


@pytest.mark.parametrize(
    ("kind", "filled", "made_up"),
    [
        ("userkey", (), ("UserKey", "ApplicationKey")),
        ("userkey", ("UserKey",), ("ApplicationKey",)),
        ("appKeyAppID", ("UserKey",), ("ApplicationKey",)),
        ("oidc", (), ("ApplicationKey",)),
        ("", ("UserKey",), ("ApplicationKey",)),
    ],
)
def test_values_that_the_secret_lacks_are_generated_there_first(
    kind: str, filled: tuple[str, ...], made_up: tuple[str, ...]
) -> None:
    """3scale weakness 17: keys that can be guessed, and a crash where none are asked for."""
    found = on_auth(auth(generateSecret=True), *filled, kind=kind)

    assert found.effects == (WriteSecret(generated=made_up),)
    assert (found.reads, found.writes) == ((), ())


@pytest.mark.parametrize(
    ("kind", "filled", "set_"),
    [
        ("userkey", ("ApplicationKey",), ["ApplicationKey"]),
        ("appKeyAppID", ("UserKey",), ["UserKey"]),
        ("oidc", ("ApplicationKey", "UserKey"), ["UserKey", "ApplicationKey"]),
    ],
)
def test_values_of_the_secret_are_set_however_callers_authenticate(
    kind: str, filled: tuple[str, ...], set_: list[str]
) -> None:
    there = One[FoundApplication](looked=True, item=FoundApplication(id=21))
    written = on_auth(auth(), *filled, kind=kind, found=there).writes
    slots = tuple(each.slot for each in written)

    assert [each.about for each in written] == set_
    assert states(on_auth(auth(), *filled, kind=kind, found=there, done=slots).status) == "Ready"


def test_a_secret_that_cannot_be_written_is_reported_and_retried() -> None:
    there = One[FoundApplication](looked=True, item=FoundApplication(id=21, application_id="id"))
    slot = "PUT accounts/11/applications/21 UserKey"
    fixed = {"Secret": refusal(ErrorType.INVALID, "Secret keys: field is immutable when `immutable` is set")}
    for filled, written in (((), ()), (("UserKey",), (slot,))):
        more: dict[str, Any] = {"found": there, "done": written}
        decision = on_auth(auth(generateSecret=True), *filled, refusals=fixed, **more)
        assert (decision.effects, "Failed" in states(decision.status)) == ((), True)
        assert (decision.why, decision.deadline) == (fixed["Secret"].message, fixed["Secret"].retry_at)
        later = {"Secret": fixed["Secret"].model_copy(update={"at": LONG_AGO})}
        again = on_auth(auth(generateSecret=True), *filled, refusals=later, **more)
        assert again.effects


def test_credentials_are_written_noted_and_never_again() -> None:
    there = One[FoundApplication](looked=True, item=FoundApplication(id=21, application_id="id"))
    keys = ("UserKey", "ApplicationKey")
    assert [each.path for each in on_auth(auth(), *keys, kind="").reads] == ["accounts/11/applications/21"]
    written = on_auth(auth(), *keys, kind="", found=there).writes
    paths = ["accounts/11/applications/21", "accounts/11/applications/21/keys"]
    assert [each.path for each in written] == paths
    assert all(not each.fields for each in written)
    slots = tuple(each.slot for each in written)
    noted = on_auth(auth(), *keys, kind="", found=there, done=slots)
    assert (noted.effects, noted.status) == ((WriteSecret(values={"ApplicationID": "id"}),), {})
    done = on_auth(auth(), *keys, "ApplicationID", kind="", found=there, done=slots)

    assert states(done.status) == "Ready"
    assert on_auth(after(auth(), {}, done.status)).idle


def test_a_secret_has_all_three_keys_in_the_end_whatever_the_application_needs() -> None:
    there = One[FoundApplication](looked=True, item=FoundApplication(id=21))
    slot = "PUT accounts/11/applications/21 UserKey"
    found = on_auth(auth(), "UserKey", found=there, done=(slot,), there=("UserKey",))

    assert found.effects == (WriteSecret(values={"ApplicationID": "", "ApplicationKey": ""}),)
    assert states(on_auth(auth(), "UserKey", found=there, done=(slot,)).status) == "Ready"


def test_an_application_id_stored_by_a_person_is_not_emptied() -> None:
    there = One[FoundApplication](looked=True, item=FoundApplication(id=21))
    slot = "PUT accounts/11/applications/21 UserKey"
    found = on_auth(auth(), "UserKey", "ApplicationID", found=there, done=(slot,))

    assert (found.effects, states(found.status)) == ((), "Ready")


def test_a_key_that_the_application_has_already_is_what_was_wanted() -> None:
    there = One[FoundApplication](looked=True, item=FoundApplication(id=21, application_id="id"))
    slot = "POST accounts/11/applications/21/keys ApplicationKey"
    keys = ("ApplicationKey", "ApplicationID")
    taken = {slot: refusal(ErrorType.INVALID, "value: has already been taken")}
    full = {slot: refusal(ErrorType.INVALID, "Limit reached")}

    assert states(on_auth(auth(), *keys, kind="oidc", found=there, refusals=taken).status) == "Ready"
    assert "Failed" in states(on_auth(auth(), *keys, kind="oidc", found=there, refusals=full).status)
