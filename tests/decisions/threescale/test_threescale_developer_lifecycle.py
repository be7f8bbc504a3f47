"""Accounts, users and applications: which waits for which, what is called, what goes with what."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from threescale_objects import (
    ANN_SPEC,
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
    requested,
    states,
)

from domain.refusal import ErrorType
from domain.threescale import APPLICATION, DEVELOPER_ACCOUNT, DEVELOPER_USER
from domain.threescale.calls import SecretKey
from domain.threescale.observed import Phase
from domain.threescale.remote_object import One
from domain.threescale.remote_state import FoundAccount, FoundApplication, FoundPlan, FoundUser
from domain.threescale.resources import Application, DeveloperAccount, DeveloperUser

PASSWORD = SecretKey(namespace="shop", name="ann-password", key="password")
MARKED = {"annotations": {"managed_by": "operator"}}
READY = {"conditions": [{"type": "Ready", "status": "True"}], "providerAccountHost": URL}
OWNER = {
    "ownerReferences": [
        {"apiVersion": "capabilities.3scale.net/v1beta1", "kind": "DeveloperAccount", "name": "acme", "uid": "uid-acme"}
    ]
}
GOING = {"deletionTimestamp": NOW.isoformat()}


def account(meta: dict[str, Any] | None = None, **status: Any) -> DeveloperAccount:
    return DeveloperAccount.model_validate(
        {
            "metadata": metadata("acme", DEVELOPER_ACCOUNT.finalizer, **(meta or {})),
            "spec": {"orgName": "Acme"},
            "status": status,
        }
    )


def ready_account(meta: dict[str, Any] | None = None) -> DeveloperAccount:
    return account(meta, accountID=11, **READY)


def user(meta: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **spec: Any) -> DeveloperUser:
    return DeveloperUser.model_validate(
        {
            "metadata": metadata("ann", DEVELOPER_USER.finalizer, **{**OWNER, **(meta or {})}),
            "spec": {**ANN_SPEC, **spec},
            "status": status or {},
        }
    )


def application(meta: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **spec: Any) -> Application:
    return Application.model_validate(
        {
            "metadata": metadata("app", APPLICATION.finalizer, **{**OWNER, **(meta or {})}),
            "spec": {
                "accountCR": {"name": "acme"},
                "productCR": {"name": "shop"},
                "applicationPlanName": "basic",
                "name": "App",
                "description": "An app",
                **spec,
            },
            "status": status or {},
        }
    )


def on_account(object_: DeveloperAccount, **more: Any) -> Requested:
    return decided(object_, **{"users": (user(),), "secrets": (PASSWORD,), **more})


def on_user(object_: DeveloperUser, **more: Any) -> Requested:
    return decided(object_, **{"account": ready_account(), "secrets": (PASSWORD,), **more})


SHOP = after(product(applicationPlans={"basic": {}}, product_id=5), {})
PLANS = (FoundPlan(id=3, system_name="basic"),)


def on_application(object_: Application, **more: Any) -> Requested:
    return decided(object_, **{"account": ready_account(), "product": SHOP, "plans": PLANS, **more})


@pytest.mark.parametrize(
    "users",
    [
        (),
        (user(role="member"),),
        (user(email="nowhere"),),
        (user(developerAccountRef={"name": "other"}),),
        (user(status={"developerUserID": 4}),),
        (user(meta=GOING),),
    ],
    ids=["none", "member", "no address", "another account's", "made", "going"],
)
def test_an_account_waits_for_an_admin_without_a_call(users: tuple[DeveloperUser, ...]) -> None:
    found = on_account(account(), users=users)

    assert states(found.status) == "Waiting"
    assert message(found.status, "Waiting") == "valid admin developer user CR not found"
    assert (found.reads, found.writes) == ((), ())
    assert found.deadline is not None


def test_an_account_gone_in_3scale_is_signed_up_again_with_a_waiting_admin() -> None:
    gone: dict[str, Any] = {"found": One[FoundAccount](lost=True)}
    made: dict[str, Any] = {"developerUserID": 4, "accoundID": 11, "providerAccountHost": URL}
    waits = [{"type": "Orphan", "status": "True"}]
    ready, orphan = user(status={**made, **READY}), user(status={**made, "conditions": waits})

    waiting = on_account(ready_account(), users=(ready,), **gone)
    assert (states(waiting.status), waiting.reads) == ("Waiting", ())
    assert states(on_user(ready, account=after(ready_account(), {}, waiting.status)).status) == "Orphan"
    (find,) = on_account(ready_account(), users=(orphan,), **gone).reads
    assert (find.path, find.query) == ("accounts/find", {"username": "ann"})
    signed_up = account(accountID=12, **READY)
    (goes,) = on_user(orphan, account=signed_up).writes
    assert (goes.method, goes.path) == ("DELETE", "accounts/11/users/4")
    assert [each.path for each in on_user(orphan, account=signed_up, found=One[FoundUser](lost=True)).reads] == [
        "accounts/12/users"
    ]


def test_an_account_waits_for_its_admins_password() -> None:
    found = on_account(account(), secrets=())

    assert (states(found.status), found.waits_for) == ("Waiting", ("Secret/shop/ann-password",))


def test_an_account_is_looked_for_by_its_admin_and_signed_up_with_him() -> None:
    (find,) = on_account(account()).reads
    assert (find.path, find.query) == ("accounts/find", {"username": "ann"})
    (signup,) = on_account(account(), found=One[FoundAccount](looked=True)).writes

    assert (signup.path, signup.secrets) == ("signup", {"password": PASSWORD})
    assert signup.fields == {
        "org_name": "Acme",
        "monthly_billing_enabled": True,
        "monthly_charging_enabled": True,
        "username": "ann",
        "email": "ann@example.com",
        "annotations": {"managed_by": "operator"},
    }


def test_an_account_notes_its_id_twice_and_then_asks_for_nothing() -> None:
    there = One[FoundAccount](looked=True, item=FoundAccount(id=11, org_name="Acme", state="approved", **MARKED))
    found = on_account(account(), found=there)
    assert states(found.status) == "Ready"
    assert (found.status["accountID"], found.status["accountState"]) == (11, "approved")
    settled = after(account(), found.patch, found.status)
    restored = settled.model_copy(update={"status": account().status})

    assert on_account(settled, users=()).idle
    assert settled.metadata.annotations["accountID"] == "11"
    assert [each.path for each in on_account(restored, users=()).reads] == ["accounts/11"]


@pytest.mark.parametrize("removed", [None, "12"], ids=["removed", "changed"])
def test_a_changed_annotation_with_an_id_is_written_again_after_a_minute(removed: str | None) -> None:
    there = One[FoundAccount](looked=True, item=FoundAccount(id=11, org_name="Acme", state="approved", **MARKED))
    found = on_account(account(), found=there)
    settled = after(account(), found.patch, found.status)
    changed = after(settled, {"metadata": {"annotations": {"accountID": removed}}})
    woken = on_account(changed, users=(), drops_refusals=True)
    later = on_account(changed, users=())

    assert (woken.idle, woken.deadline) == (True, NOW + timedelta(minutes=1))
    assert (later.patch, later.reads, later.writes) == ({"metadata": {"annotations": {"accountID": "11"}}}, (), ())


def test_an_accounts_fields_are_written_where_they_differ() -> None:
    there = FoundAccount(id=11, org_name="Old", monthly_billing_enabled=False, **MARKED)
    (change,) = on_account(ready_account(), found=One[FoundAccount](looked=True, item=there)).writes

    assert (change.path, change.fields) == ("accounts/11", {"org_name": "Acme", "monthly_billing_enabled": True})


def test_an_account_that_owes_money_is_reported_and_retried() -> None:
    refusals = {"DELETE accounts/11 Acme": refusal(ErrorType.DENIED, "unresolved invoices")}
    assert [each.method for each in on_account(ready_account(GOING)).writes] == ["DELETE"]
    found = on_account(ready_account(GOING), refusals=refusals)

    assert message(found.status, "Failed") == "unresolved invoices"
    assert found.deadline == NOW + timedelta(seconds=5)
    assert on_account(ready_account(GOING), found=One[FoundAccount](lost=True)).drops_finalizer


@pytest.mark.parametrize(
    ("parent", "why"),
    [
        (None, "parent account resource not found"),
        (account(), "parent account resource not ready"),
        (
            account(accountID=11, **{**READY, "providerAccountHost": "https://other.example.com"}),
            "parent account resource does not belong to the same provider account",
        ),
    ],
)
def test_a_user_waits_for_its_account_and_is_not_failed(parent: DeveloperAccount | None, why: str) -> None:
    found = on_user(user(meta={"ownerReferences": []}), account=parent)

    assert (states(found.status), message(found.status, "Orphan")) == ("Orphan", why)
    assert found.waits_for == ("DeveloperAccount/shop/acme",)
    assert (found.reads, found.writes) == ((), ())


def test_a_user_without_an_account_object_or_tenant_or_address_makes_no_call() -> None:
    assert states(on_user(user(), provider=NO_ACCOUNT).status) == "Orphan"
    assert states(on_user(user(email="nowhere")).status) == "Invalid"
    invalid = account(conditions=[{"type": "Invalid", "status": "True"}])
    assert states(on_user(user(), account=invalid).status) == "Invalid"


def test_a_malformed_address_is_reported_in_the_known_words() -> None:
    found = on_user(user(email="nowhere"))

    assert message(found.status, "Invalid") == 'spec.email: Invalid value: "nowhere": Email address not valid'


def test_a_user_notes_its_account_and_looks_for_itself_there() -> None:
    noted = on_user(user(meta={"ownerReferences": []})).patch
    assert after(user(meta={"ownerReferences": []}), noted).metadata.owner_references[0].uid == "uid-acme"
    assert [each.path for each in on_user(user()).reads] == ["accounts/11/users"]
    (creation,) = on_user(user(), found=One[FoundUser](looked=True)).writes
    assert (creation.path, creation.secrets) == ("accounts/11/users", {"password": PASSWORD})


def test_a_user_without_its_password_fails_and_looks_again() -> None:
    """Clients take an account that waits for a created one."""
    found = on_user(user(), found=One[FoundUser](looked=True), secrets=())
    later = on_user(after(user(), {}, found.status), found=One[FoundUser](looked=True), secrets=())

    assert (states(found.status), found.waits_for) == ("Failed", ("Secret/shop/ann-password",))
    assert message(found.status, "Failed") == "Secret ann-password is missing, or lacks the key password"
    assert (found.writes, found.deadline is not None) == ((), True)
    assert (later.deadline, later.status) == (found.deadline, {})


@pytest.mark.parametrize(
    ("there", "spec", "calls"),
    [
        ({}, {}, []),
        ({"state": "pending"}, {}, ["activate"]),
        ({"state": "pending", "role": "member"}, {}, ["activate", "admin"]),
        ({"state": "suspended"}, {}, ["unsuspend"]),
        ({}, {"suspended": True}, ["suspend"]),
        ({"state": "pending"}, {"suspended": True}, ["activate", "suspend"]),
        ({"state": "suspended"}, {"suspended": True}, []),
        ({}, {"role": None}, ["member"]),
        ({"email": "old@example.com"}, {}, ["4"]),
    ],
)
def test_a_user_comes_to_its_state_and_role(there: dict[str, Any], spec: dict[str, Any], calls: list[str]) -> None:
    item = FoundUser(
        **{"id": 4, "username": "ann", "email": "ann@example.com", "state": "active", "role": "admin", **there}
    )
    found = on_user(user(**spec), found=One[FoundUser](looked=True, item=item))

    assert [each.path.rsplit("/", 1)[-1] for each in found.writes] == calls
    assert (found.phase is Phase.SYNCED) is (not calls)


def test_a_user_of_another_account_is_deleted_there_first() -> None:
    moved = user(status={"developerUserID": 4, "accoundID": 9})
    assert [(each.method, each.path) for each in on_user(moved).writes] == [("DELETE", "accounts/9/users/4")]
    deleted = on_user(moved, found=One[FoundUser](lost=True))

    assert [each.path for each in deleted.reads] == ["accounts/11/users"]


def test_a_user_that_is_given_to_another_account_is_not_deleted_but_moves_there() -> None:
    made = {"developerUserID": 4, "accoundID": 11, "providerAccountHost": URL}
    given = user(status=made, developerAccountRef={"name": "globex"})
    alone = on_user(given, account=None)
    assert (alone.deletes, states(alone.status)) == (False, "Orphan")
    noted = on_user(given, account=globex())
    assert not noted.deletes
    moved = after(given, noted.patch)
    assert [(each.name, each.uid) for each in moved.metadata.owner_references] == [("globex", "uid-globex")]
    (deletion,) = on_user(moved, account=globex()).writes
    assert (deletion.method, deletion.path) == ("DELETE", "accounts/11/users/4")
    gone = on_user(moved, account=globex(), found=One[FoundUser](lost=True))
    assert [each.path for each in gone.reads] == ["accounts/12/users"]


def globex() -> DeveloperAccount:
    whole = {"metadata": metadata("globex", DEVELOPER_ACCOUNT.finalizer), "spec": {"orgName": "Globex"}}
    return DeveloperAccount.model_validate({**whole, "status": {"accountID": 12, **READY}})


def created_in_acme() -> DeveloperUser:
    """A user whose creation was begun in one account, and whose spec names another one since."""
    begun = on_user(user(), found=One[FoundUser](looked=True))
    assert [(each.method, each.path) for each in begun.writes] == [("POST", "accounts/11/users")]
    noted = after(user(developerAccountRef={"name": "globex"}), begun.patch)
    return after(noted, on_user(noted, account=globex(), former=ready_account()).patch)


@pytest.mark.parametrize("listed", [[{"id": 4, "username": "ann", "email": ANN_SPEC["email"]}], []])
def test_a_user_that_moves_while_it_is_created_leaves_nothing_behind(listed: list[dict[str, Any]]) -> None:
    seen: dict[str, Any] = {"account": globex(), "former": ready_account(), "secrets": (PASSWORD,)}
    world = observed(created_in_acme(), **seen)
    (look,) = world.decide(NOW).actions
    assert look.path == "accounts/11/users"
    world = world.read(look, {"users": [{"user": each} for each in listed]})
    for _ in listed:
        (deletion,) = world.decide(NOW).actions
        assert (deletion.method, deletion.path) == ("DELETE", "accounts/11/users/4")
        world = world.wrote(deletion, None)
    (look,) = world.decide(NOW).actions
    assert look.path == "accounts/12/users"
    made = requested(world.read(look, {"users": []}).decide(NOW))
    assert [(each.method, each.path) for each in made.writes] == [("POST", "accounts/12/users")]
    moved = after(created_in_acme(), made.patch)
    assert [each.path for each in on_user(moved, **seen).reads] == ["accounts/12/users"]


def test_a_user_whose_former_account_is_gone_is_not_searched_there() -> None:
    assert [each.path for each in on_user(created_in_acme(), account=globex()).reads] == ["accounts/12/users"]


def test_a_user_that_goes_after_a_move_is_searched_where_its_creation_was_begun() -> None:
    leaving = created_in_acme()
    leaving = leaving.model_copy(update={"metadata": leaving.metadata.model_copy(update={"deletion_timestamp": NOW})})
    world = observed(leaving, account=globex(), former=ready_account())
    (look,) = world.decide(NOW).actions
    assert look.path == "accounts/11/users"
    found = {"users": [{"user": {"id": 4, "username": "ann", "email": ANN_SPEC["email"]}}]}
    (deletion,) = world.read(look, found).decide(NOW).actions
    assert (deletion.method, deletion.path) == ("DELETE", "accounts/11/users/4")


def test_an_application_to_be_replaced_is_deleted_only_when_that_is_possible() -> None:
    item = FoundApplication(id=21, name="App", description="An app", state="live", service_id=6, plan_id=3)
    moved, there = application(authSecretRef={"name": "keys"}), One[FoundApplication](looked=True, item=item)
    key = SecretKey(namespace="shop", name="keys", key="UserKey")
    waits = on_application(moved, found=there)
    assert (waits.writes, waits.waits_for) == ((), ("Secret/shop/keys",))
    assert [each.method for each in on_application(moved, found=there, secrets=(key,)).writes] == ["DELETE"]

    given = user(status={"developerUserID": 4, "accoundID": 9})
    without = on_user(given, secrets=())
    assert (without.writes, without.waits_for) == ((), ("Secret/shop/ann-password",))
    refused = {"DELETE accounts/9/users/4 ann of its former account": refusal(ErrorType.DENIED, "no")}
    stays = on_user(given, refusals=refused)
    assert states(stays.status) == states(without.status)
    assert "accoundID" not in without.status
    assert "accoundID" not in stays.status


def test_the_last_admin_stays_until_its_account_goes() -> None:
    going = user(meta=GOING, status={"developerUserID": 4, "accoundID": 11})
    refusals = {"DELETE accounts/11/users/4 ann": refusal(ErrorType.DENIED, "Can't delete last admin")}
    assert message(on_user(going, refusals=refusals).status, "Failed") == "Can't delete last admin"
    with_it = on_user(going, account=ready_account(GOING), refusals=refusals)
    assert (with_it.waits_for, with_it.writes) == (("DeveloperAccount/shop/acme",), ())
    assert on_user(going, account=None).drops_finalizer


MADE = {"developerUserID": 4, "accoundID": 11, "providerAccountHost": URL}


def test_a_user_that_names_no_account_is_deleted_in_the_account_that_has_it() -> None:
    going = user(meta=GOING, status=MADE, developerAccountRef={"name": "misspelt"})
    (deletion,) = on_user(going, account=None, former=ready_account()).writes
    assert (deletion.method, deletion.path) == ("DELETE", "accounts/11/users/4")
    assert on_user(going, account=None, former=ready_account(), found=One[FoundUser](lost=True)).drops_finalizer

    with_it = on_user(going, account=None, former=ready_account(GOING))
    assert (with_it.writes, with_it.drops_finalizer) == ((), False)
    assert with_it.waits_for == ("DeveloperAccount/shop/acme",)
    gone = on_user(going, account=None)
    assert (gone.writes, gone.drops_finalizer) == ((), True)


def test_a_user_whose_account_object_is_gone_stays_in_another_ones_account() -> None:
    going = user(meta=GOING, status=MADE)
    other = after(ready_account(), {"metadata": {"name": "other", "uid": "uid-other"}})
    found = on_user(going, account=None, former=other)
    assert (found.writes, found.drops_finalizer) == ((), True)


@pytest.mark.parametrize("other", [None, ready_account({"uid": "another"})], ids=["gone", "recreated"])
def test_users_and_applications_go_when_their_account_is_gone(other: DeveloperAccount | None) -> None:
    assert on_user(user(), account=other).deletes
    assert on_application(application(), account=other).deletes


@pytest.mark.parametrize(
    ("observed", "standing", "waits_for", "text"),
    [
        (
            {"account": None},
            "Failed Orphan",
            "DeveloperAccount/shop/acme",
            'developeraccounts.capabilities.3scale.net "acme" not found',
        ),
        (
            {"product": None},
            "Failed Orphan",
            "Product/shop/shop",
            'products.capabilities.3scale.net "shop" not found',
        ),
        (
            {"account": account()},
            "Failed Orphan",
            "DeveloperAccount/shop/acme",
            "accountCR name doesnt have a valid account reference",
        ),
        (
            {"product": product()},
            "Failed Orphan",
            "Product/shop/shop",
            "productCR name doesnt have a valid product reference",
        ),
        ({"product": product(product_id=5)}, "Failed Orphan", "Product/shop/shop", "Product shop has no plan basic"),
        (
            {"account": after(ready_account(), {}, {"conditions": [{"type": "Invalid", "status": "True"}]})},
            "Failed Invalid",
            "DeveloperAccount/shop/acme",
            "account CR is in an invalid state",
        ),
        (
            {"product": after(SHOP, {}, {"conditions": [{"type": "Invalid", "status": "True"}]})},
            "Failed Invalid",
            "Product/shop/shop",
            "product CR is in an invalid state",
        ),
        (
            {"product": after(SHOP, {}, {"providerAccountHost": "https://other.example.com"})},
            "Failed Invalid",
            "DeveloperAccount/shop/acme",
            "product and account providerAccounts dont match",
        ),
    ],
    ids=[
        "no account",
        "no product",
        "account not made",
        "product not made",
        "no plan",
        "invalid account",
        "invalid product",
        "two tenants",
    ],
)
def test_an_application_waits_without_a_call(
    observed: dict[str, Any], standing: str, waits_for: str, text: str
) -> None:
    object_ = application({"ownerReferences": []}) if observed.get("account", 1) is None else application()
    found = on_application(object_, **observed)

    assert set(states(found.status).split()) == set(standing.split())
    assert found.waits_for[0] == waits_for
    assert (found.reads, found.writes) == ((), ())
    conditions: Any = found.status["conditions"]
    assert (conditions[0]["type"], conditions[0]["status"], conditions[0]["message"]) == ("Ready", "False", text)


def test_an_application_is_looked_for_and_made_with_its_credentials() -> None:
    paths = [each.path for each in on_application(application(), plans=None).reads]
    assert paths == ["services/5/application_plans", "accounts/11/applications"]
    keyed = application(authSecretRef={"name": "keys"})
    key = SecretKey(namespace="shop", name="keys", key="UserKey")
    observed = One[FoundApplication](looked=True)
    assert on_application(keyed, found=observed).waits_for == ("Secret/shop/keys",)
    (creation,) = on_application(keyed, found=observed, secrets=(key,)).writes

    assert creation.fields == {"plan_id": 3, "name": "App", "description": "An app"}
    assert creation.secrets == {"user_key": key}


@pytest.mark.parametrize(
    ("there", "spec", "calls"),
    [
        ({}, {}, []),
        ({"plan_id": 2}, {}, ["PUT change_plan"]),
        ({}, {"suspend": True}, ["PUT suspend"]),
        ({"state": "suspended"}, {}, ["PUT resume"]),
        ({"state": "pending"}, {"suspend": True}, []),
        ({"description": "old"}, {}, ["PUT 21"]),
        ({"service_id": 6}, {}, ["DELETE 21"]),
    ],
)
def test_an_application_comes_to_plan_and_state(there: dict[str, Any], spec: dict[str, Any], calls: list[str]) -> None:
    item = {"id": 21, "name": "App", "description": "An app", "state": "live", "service_id": 5, "plan_id": 3, **there}
    found = on_application(application(**spec), found=One[FoundApplication](looked=True, item=FoundApplication(**item)))

    assert [f"{each.method} {each.path.rsplit('/', 1)[-1]}" for each in found.writes] == calls


def test_an_application_notes_its_id_and_then_asks_for_nothing() -> None:
    item = FoundApplication(id=21, name="App", description="An app", state="live", service_id=5, plan_id=3)
    found = on_application(application(), found=One[FoundApplication](looked=True, item=item))
    settled = after(application(), found.patch, found.status)

    assert states(found.status) == "Ready"
    assert settled.metadata.annotations["applicationID"] == "21"
    assert on_application(settled, plans=None).idle
    assert on_application(after(settled, {"spec": {"suspend": True}}), plans=None).reads


def test_an_application_goes_by_its_id_or_with_its_account() -> None:
    going = application(GOING, {"applicationID": 21})
    assert [each.path for each in on_application(going).writes] == ["accounts/11/applications/21"]
    assert on_application(going, found=One[FoundApplication](lost=True)).drops_finalizer
    assert on_application(going, account=None).drops_finalizer
    assert on_application(going, account=ready_account(GOING)).waits_for == ("DeveloperAccount/shop/acme",)


def test_a_restored_object_is_deleted_in_its_restored_account() -> None:
    """Neither has a status: what they are called in 3scale say their annotations."""
    restored = account({"annotations": {"accountID": "11"}})
    app = application({**GOING, "annotations": {"applicationID": "21"}})
    ann = user({**GOING, "annotations": {"userID": "4"}})
    assert [each.path for each in on_application(app, account=restored).writes] == ["accounts/11/applications/21"]
    assert [each.path for each in on_user(ann, account=restored).writes] == ["accounts/11/users/4"]

    waits = on_application(app, account=account())
    assert (waits.writes, waits.drops_finalizer, waits.waits_for) == ((), False, ("DeveloperAccount/shop/acme",))
    assert on_application(app, account=account({"uid": "recreated"})).drops_finalizer


FINALIZER_REMOVED = {**GOING, "finalizers": ["foregroundDeletion"]}
RETAINED = {**GOING, "annotations": {"perdure.dev/retain": "true"}}


@pytest.mark.parametrize("meta", [FINALIZER_REMOVED, RETAINED], ids=["has let go", "stays in 3scale"])
def test_an_account_that_waits_for_its_own_in_the_cluster_blocks_no_other(meta: dict[str, Any]) -> None:
    """Who is deleted in the foreground goes after all that names it as its owner."""
    app, ann = application(GOING, {"applicationID": 21}), user(GOING, {"developerUserID": 4, "accoundID": 11})

    for found in (on_application(app, account=ready_account(meta)), on_user(ann, account=ready_account(meta))):
        assert (found.reads, found.writes, found.drops_finalizer) == ((), (), True)


def test_a_deleted_object_does_not_wait_for_an_account_that_3scale_retains() -> None:
    remaining = after(ready_account(GOING), {}, {"conditions": [{"type": "Failed", "status": "True"}]})
    app, ann = application(GOING, {"applicationID": 21}), user(GOING, {"developerUserID": 4, "accoundID": 11})

    assert [each.path for each in on_application(app, account=remaining).writes] == ["accounts/11/applications/21"]
    assert [each.path for each in on_user(ann, account=remaining).writes] == ["accounts/11/users/4"]


TAKES_ALONG = {"annotations": {"perdure.dev/cascade": "true"}}


def in_use() -> Application:
    """An application that is in 3scale as it shall be."""
    item = FoundApplication(id=21, name="App", description="An app", state="live", service_id=5, plan_id=3)
    found = on_application(application(), found=One[FoundApplication](looked=True, item=item))
    return after(application(), found.patch, found.status)  # type: ignore[no-any-return]


@pytest.mark.parametrize("meta", [GOING, {}], ids=["goes", "offers its plan no more"])
def test_an_application_follows_a_product_with_cascade_and_waits_for_others(meta: dict[str, Any]) -> None:
    plans = {"basic": {}} if meta else {"other": {}}
    takes = product(meta={**meta, **TAKES_ALONG}, product_id=5, applicationPlans=plans)
    leaves = product(meta=meta, product_id=5, applicationPlans=plans)

    assert on_application(in_use(), product=takes).deletes
    assert not on_application(in_use(), product=leaves).deletes
    held = after(in_use(), {"metadata": {"annotations": {"perdure.dev/retain": "true"}}})
    assert not on_application(held, product=takes).deletes


def test_an_application_whose_plan_is_yet_to_come_waits_for_it() -> None:
    takes = product(meta=TAKES_ALONG, product_id=5, applicationPlans={"basic": {}})
    moves = after(in_use(), {"spec": {"applicationPlanName": "next"}})

    assert not on_application(moves, product=takes).deletes
    assert not on_application(application(applicationPlanName="next"), product=takes).deletes
    assert on_application(moves, product=takes).waits_for == ("Product/shop/shop",)


def test_a_product_waits_for_the_objects_that_go_with_it() -> None:
    going = product(meta={**GOING, **TAKES_ALONG}, product_id=5)
    waiting = decided(going, applications=(in_use(),))
    alone = decided(going)
    unmade = decided(going, applications=(application(),))

    assert (waiting.phase, waiting.waits_for, waiting.writes) == (Phase.DELETING, ("Application/shop/app",), ())
    assert [each.path for each in alone.writes] == ["services/5"]
    assert unmade.writes
