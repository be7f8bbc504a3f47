"""Tenants: made once, their token stored or its loss reported, updated where they differ, scheduled for deletion."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_objects import NOW, Requested, after, decided, message, metadata, refusal, states

from domain.refusal import ErrorType
from domain.threescale import TENANT
from domain.threescale.actions import WriteSecret
from domain.threescale.calls import SecretKey, api_of
from domain.threescale.orphan_backoff import next_look
from domain.threescale.provider_account import NoAccount, ProviderAccount, SecretView
from domain.threescale.reference_names import refers_to
from domain.threescale.remote_object import One
from domain.threescale.remote_state import LEAVING, FoundUser
from domain.threescale.resources import Tenant
from domain.threescale.tenant import FoundTenant, KnownTenant, master_of, read_tenant, secret_of, wrote_tenant

MASTER = ProviderAccount(
    url="https://master.example.com",
    token=SecretKey(namespace="shop", name="master", key="MASTER_ACCESS_TOKEN"),
)
PASSWORD = SecretKey(namespace="shop", name="password", key="admin_password")
ADDRESS = "https://acme-admin.example.com"
KEPT = SecretView(name="acme-acme", keys=("adminURL", "token"), admin_url=ADDRESS)
OURS = {"managed_by": "operator"}
ADMIN = FoundUser(id=9, username="jane", email="jane@example.com", state="active", role="admin")
GOING = {"deletionTimestamp": NOW.isoformat()}


def tenant(meta: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **spec: Any) -> Tenant:
    return Tenant.model_validate(
        {
            "metadata": metadata("acme", TENANT.finalizer, **(meta or {})),
            "spec": {
                "username": "jane",
                "email": "jane@example.com",
                "organizationName": "ACME",
                "systemMasterUrl": MASTER.url,
                "tenantSecretRef": {"name": "acme-acme", "namespace": "shop"},
                "passwordCredentialsRef": {"name": "password"},
                "masterCredentialsRef": {"name": "master"},
                **spec,
            },
            "status": status or {},
        }
    )


def account(**more: Any) -> FoundTenant:
    fields = {"id": 5, "org_name": "ACME", "state": "approved", "admin_base_url": ADDRESS, "annotations": OURS, **more}
    return FoundTenant.model_validate(fields)


def known(*users: FoundUser, **more: Any) -> KnownTenant:
    return KnownTenant(tenant=One[FoundTenant](looked=True, item=account(**more)), users=users or (ADMIN,))


NOTHING = KnownTenant(tenant=One[FoundTenant](looked=True))
NOTED = {"annotations": {"tenantID": "5"}}


def on(object_: Tenant, **more: Any) -> Requested:
    return decided(object_, **{"provider": MASTER, "secrets": (PASSWORD,), **more})


def settled() -> Tenant:
    found = on(tenant(NOTED), found=known(), secret=KEPT)
    result = after(tenant(NOTED), found.patch, found.status)
    assert isinstance(result, Tenant)
    return result


def test_a_tenant_is_looked_for_among_the_masters_accounts_and_then_made() -> None:
    (look,) = on(tenant()).reads
    assert (f"{api_of(look.resource)}/{look.path}", look.paged) == ("/admin/api/accounts", True)
    (creation,) = on(tenant(), found=NOTHING).writes

    assert f"{api_of(creation.resource)}/{creation.path}" == "/master/api/providers"
    assert creation.fields == {
        "org_name": "ACME",
        "username": "jane",
        "email": "jane@example.com",
        "annotations": OURS,
    }
    assert creation.secrets == {"password": PASSWORD}


@pytest.mark.parametrize(
    ("more", "waits_for", "condition_type"),
    [
        ({"provider": NoAccount(why="no", waits_for="Secret/shop/master")}, ("Secret/shop/master",), "Orphan"),
        ({"found": NOTHING, "secrets": ()}, ("Secret/shop/password",), "Orphan"),
        ({"siblings": (tenant({"uid": "a"}).metadata,)}, (), "Invalid"),
    ],
    ids=["no master", "no password", "an older one has it"],
)
def test_a_tenant_that_cannot_be_made_waits_without_a_call_and_says_so_without_ids(
    more: dict[str, Any], waits_for: tuple[str, ...], condition_type: str
) -> None:
    found = on(tenant(), **more)

    assert (found.reads, found.writes) == ((), ())
    assert states(found.status) == f"Failed {condition_type}"
    assert message(found.status, condition_type) == found.why
    assert found.status.keys() == {"conditions"}
    assert found.waits_for == waits_for
    if waits_for:
        assert found.deadline == next_look(NOW, NOW, "uid-acme")


def test_the_answer_to_the_creation_becomes_the_secret_with_its_address_and_label() -> None:
    answer = {"signup": {"account": {"id": 5, "admin_base_url": ADDRESS}, "access_token": {"value": "t0k"}}}
    secret: Any = secret_of(tenant(), answer)

    assert secret["stringData"] == {"token": "t0k", "adminURL": ADDRESS}
    assert secret["metadata"]["labels"] == {"app": "3scale-operator"}
    assert [each["uid"] for each in secret["metadata"]["ownerReferences"]] == ["uid-acme"]
    elsewhere: Any = secret_of(tenant(tenantSecretRef={"name": "x", "namespace": "other"}), answer)
    assert "ownerReferences" not in elsewhere["metadata"]
    assert secret_of(tenant(), {"signup": {"account": {"id": 5}}}) == {}


def test_a_host_without_its_address_is_reached_over_tls() -> None:
    assert account(admin_base_url="", admin_domain="acme-admin.example.com").address == ADDRESS


def test_its_id_is_noted_before_anything_else() -> None:
    assert on(tenant(), found=known(), secret=KEPT).patch == {"metadata": {"annotations": {"tenantID": "5"}}}


def test_with_its_token_stored_a_tenant_is_ready_and_asks_for_nothing_more() -> None:
    found = on(tenant(NOTED), found=known(), secret=KEPT)

    assert (found.status["tenantId"], found.status["adminId"], states(found.status)) == (5, 9, "Ready")
    assert on(settled(), secret=KEPT).idle
    assert on(settled(), secret=KEPT, look=True).reads


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        (None, "has no token"),
        (SecretView(name="acme-acme", keys=("adminURL",), admin_url=ADDRESS), "has no token"),
        (KEPT.model_copy(update={"admin_url": "https://other.example.com"}), "belongs to another tenant"),
    ],
    ids=["no Secret", "no token", "another tenant's"],
)
def test_a_token_that_got_lost_is_reported_and_no_second_tenant_made(secret: SecretView | None, text: str) -> None:
    """3scale weakness 12: a tenant's token that got lost is gone silently."""
    found = on(tenant(NOTED), found=known(), secret=secret)

    assert (found.reads, found.writes, found.waits_for) == ((), (), ("Secret/shop/acme-acme",))
    assert text in message(found.status, "Ready")
    assert ADDRESS in message(found.status, "Ready")
    assert found.status["tenantId"] == 5


def test_a_settled_tenant_whose_secret_goes_waits_without_a_call() -> None:
    found = on(settled(), secret=None)

    assert (found.reads, states(found.status)) == ((), "Failed Orphan")


def test_a_person_who_puts_a_token_into_the_secret_need_not_know_the_address() -> None:
    found = on(tenant(NOTED), found=known(), secret=SecretView(name="acme-acme", keys=("token",)))

    assert (found.effects, found.status) == ((WriteSecret(values={"adminURL": ADDRESS}),), {})
    assert not found.idle

    fixed = {"Secret": refusal(ErrorType.INVALID, "Secret acme-acme: field is immutable when `immutable` is set")}
    condition_type = on(
        tenant(NOTED), found=known(), secret=SecretView(name="acme-acme", keys=("token",)), refusals=fixed
    )
    assert (condition_type.effects, condition_type.why, condition_type.deadline) == (
        (),
        fixed["Secret"].message,
        fixed["Secret"].retry_at,
    )


def test_a_difference_is_written_and_an_unset_field_stays() -> None:
    found = on(
        tenant(NOTED, fromEmail="from@example.com"), found=known(annotations={}, support_email="x@y.z"), secret=KEPT
    )

    assert [(each.path, each.fields) for each in found.writes] == [
        ("providers/5", {"from_email": "from@example.com", "annotations": OURS})
    ]


@pytest.mark.parametrize(
    ("users", "calls"),
    [
        ((FoundUser(id=1, username="else", role="admin", state="active"),), ["POST accounts/5/users"]),
        (
            (ADMIN.model_copy(update={"state": "pending", "role": "member"}),),
            ["PUT accounts/5/users/9/activate", "PUT accounts/5/users/9/admin"],
        ),
        ((ADMIN.model_copy(update={"username": "joan"}),), ["PUT accounts/5/users/9"]),
    ],
    ids=["not there", "pending member", "another name"],
)
def test_the_first_admin_is_made_activated_and_made_admin(users: tuple[FoundUser, ...], calls: list[str]) -> None:
    found = on(tenant(NOTED), found=known(*users), secret=KEPT)

    assert [f"{each.method} {each.path}" for each in found.writes] == calls


def test_a_missing_first_admin_is_not_made_without_its_password() -> None:
    found = on(tenant(NOTED), found=known(ADMIN.model_copy(update={"username": "joan", "email": ""})), secrets=())

    assert (found.writes, found.waits_for) == ((), ("Secret/shop/password",))
    assert states(found.status) == "Failed Orphan"


def test_a_refusal_of_3scale_is_reported_once_there_are_ids() -> None:
    slot = "PUT providers/5 ACME"
    refused = {slot: refusal(ErrorType.INVALID, "from_email: is invalid")}
    found = on(tenant(NOTED, fromEmail="nowhere"), found=known(), secret=KEPT, refusals=refused)

    assert message(found.status, "Ready") == "from_email: is invalid"
    creation = {"POST providers ACME": refusal(ErrorType.INVALID, "org_name: has already been taken")}
    refused_creation = on(tenant(), found=NOTHING, refusals=creation)
    assert message(refused_creation.status, "Invalid") == refused_creation.why == "org_name: has already been taken"
    assert refused_creation.status.keys() == {"conditions"}


def test_only_a_tenant_with_our_mark_that_stays_is_found_again() -> None:
    (look,) = on(tenant()).reads
    others = [
        {"id": 1, "org_name": "ACME", "annotations": {}},
        {"id": 2, "org_name": "ACME", "annotations": OURS, "state": LEAVING},
        {"id": 3, "org_name": "Other", "annotations": OURS},
    ]
    assert read_tenant(KnownTenant(), look, {"accounts": [{"account": each} for each in others]}, tenant()) == NOTHING
    mine = {"id": 4, "org_name": "ACME", "annotations": OURS}
    found = read_tenant(KnownTenant(), look, {"accounts": [{"account": each} for each in (*others, mine)]}, tenant())
    assert found.tenant.item is not None
    assert found.tenant.item.id == 4


def test_a_restored_tenant_is_read_by_annotation_and_a_missing_one_searched() -> None:
    (read,) = on(tenant(NOTED)).reads
    assert (read.path, read.of) == ("providers/5", 5)
    gone = read_tenant(KnownTenant(), read, None, tenant())

    assert [each.path for each in on(tenant(NOTED), found=gone).reads] == ["accounts"]


def test_a_tenant_scheduled_for_deletion_by_others_is_left_alone() -> None:
    object_ = after(settled(), {"spec": {"fromEmail": "from@example.com"}})
    found = on(object_, found=known(state=LEAVING), secret=KEPT)

    assert (found.reads, found.writes, states(found.status)) == ((), (), "Failed")
    assert "scheduled for deletion" in message(found.status, "Ready")
    assert found.deadline == next_look(NOW, NOW, "uid-acme")  # a person may resume it in 3scale


STRANGER = {"org_name": "Other", "admin_base_url": "https://other-admin.example.com"}


@pytest.mark.parametrize("going", [False, True], ids=["changed", "deleted"])
@pytest.mark.parametrize(
    "secret",
    [KEPT, SecretView(name="acme-acme", keys=("token",)), None],
    ids=["its address", "no address", "no Secret"],
)
def test_at_another_master_the_tenant_with_its_id_is_a_strangers(secret: SecretView | None, going: bool) -> None:
    moved = after(settled(), {"spec": {"systemMasterUrl": "https://else.example.com", "fromEmail": "a@example.com"}})
    found = on(after(moved, {"metadata": GOING}) if going else moved, found=known(**STRANGER), secret=secret)

    assert (found.reads, found.writes, found.drops_finalizer) == ((), (), False)
    assert "is Other at" in found.why
    assert found.waits_for == ("Secret/shop/acme-acme",)


@pytest.mark.parametrize(
    "own", [{"org_name": "Renamed"}, {"admin_base_url": "https://moved.example.com"}], ids=["renamed", "moved"]
)
def test_a_tenant_of_another_name_or_another_address_is_still_this_one(own: dict[str, str]) -> None:
    (deletion,) = on(after(settled(), {"metadata": GOING}), found=known(**own), secret=KEPT).writes

    assert deletion.path == "providers/5"


def test_a_deleted_tenant_is_scheduled_for_deletion_once() -> None:
    going = after(settled(), {"metadata": GOING})
    (look,) = on(going).reads
    assert look.path == "providers/5"
    (deletion,) = on(going, found=known()).writes
    assert (deletion.method, deletion.path) == ("DELETE", "providers/5")

    assert on(going, found=wrote_tenant(known(), deletion, None)).drops_finalizer
    assert on(going, found=known(state=LEAVING)).drops_finalizer
    retained = after(going, {"metadata": {"annotations": {"perdure.dev/retain": "true"}}})
    assert (on(retained).drops_finalizer, on(retained).left) == (True, ("3scale tenant 5 with all it holds",))


def test_a_tenant_that_was_made_and_never_noted_is_found_and_deleted() -> None:
    going = tenant(GOING)
    (look,) = on(going).reads
    assert look.path == "accounts"
    assert [each.path for each in on(going, found=known()).writes] == ["providers/5"]
    assert on(going, found=NOTHING).drops_finalizer


def test_the_master_is_known_by_its_secret() -> None:
    absent, other = master_of(tenant(), None), master_of(tenant(), SecretView(name="master", keys=("other",)))
    assert isinstance(absent, NoAccount)
    assert isinstance(other, NoAccount)
    assert (absent.incomplete, other.incomplete) == (False, True)
    found = master_of(tenant(), SecretView(name="master", keys=("MASTER_ACCESS_TOKEN",)))
    assert isinstance(found, ProviderAccount)
    assert (found.url, found.token) == (MASTER.url, MASTER.token)


def test_a_tenant_is_woken_by_its_three_secrets() -> None:
    assert refers_to(tenant()) == ("Secret/shop/master", "Secret/shop/password", "Secret/shop/acme-acme")
