"""Accounts, users and applications come to what is wanted on the simulator, and are found again by what is theirs."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_carried_out import bring_one
from threescale_process import Client, fresh

from domain.threescale.application import is_application, sync_application
from domain.threescale.calls import Resource
from domain.threescale.developer_account import is_account, sync_account
from domain.threescale.developer_user import is_user, sync_user
from domain.threescale.remote_state import FoundAccount, FoundApplication, FoundPlan, FoundUser
from domain.threescale.resources import Application, DeveloperAccount, DeveloperUser, Product
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

TEXTS = {"password": "secret123", "UserKey": "a-user-key"}


def account_and_user(**spec: Any) -> tuple[DeveloperAccount, DeveloperUser]:
    name = fresh("dev").replace(" ", "")
    user = {
        "username": name,
        "email": f"{name}@example.com",
        "role": "admin",
        "passwordCredentialsRef": {"name": "password"},
        "developerAccountRef": {"name": name},
    }
    return (
        DeveloperAccount.model_validate({"metadata": {"name": name}, "spec": {"orgName": name}}),
        DeveloperUser.model_validate({"metadata": {"name": name}, "spec": {**user, **spec}}),
    )


def bring_account(client: Client, account: DeveloperAccount, admin: DeveloperUser, known_id: int = 0) -> FoundAccount:
    return bring_one(
        client,
        FoundAccount,
        Resource.ACCOUNT,
        lambda found: sync_account(account, admin, found, known_id),
        lambda found: is_account(found, account),
        TEXTS,
    )


def bring_user(client: Client, user: DeveloperUser, account_id: int) -> FoundUser:
    return bring_one(
        client,
        FoundUser,
        Resource.USER,
        lambda found: sync_user(user, account_id, found),
        lambda found: is_user(found, user),
        TEXTS,
    )


def test_an_account_is_signed_up_once_also_when_its_id_was_lost(client: Client, control: ThreescaleControl) -> None:
    account, admin = account_and_user()
    made = bring_account(client, account, admin)
    control.reset_ledger()
    again = bring_account(client, account, admin)

    assert again.id == made.id
    assert control.ledger().mutating() == 0
    assert made.annotations == {"managed_by": "operator"}


def test_an_account_takes_another_name(client: Client) -> None:
    account, admin = account_and_user()
    made = bring_account(client, account, admin)
    other = account.model_copy(update={"spec": account.spec.model_copy(update={"org_name": "Other"})})

    assert bring_account(client, other, admin, made.id).org_name == "Other"


def test_the_admin_finds_itself_and_a_member_is_made_and_activated(client: Client) -> None:
    account, admin = account_and_user()
    account_id = bring_account(client, account, admin).id
    assert bring_user(client, admin, account_id).state == "active"
    _, member = account_and_user(role="member")
    found = bring_user(client, member, account_id)
    assert (found.state, found.role) == ("active", "member")
    _, suspended = account_and_user(role="admin", suspended=True)
    found = bring_user(client, suspended, account_id)

    assert (found.state, found.role) == ("suspended", "admin")


def test_an_application_is_made_once_and_changes_plan_and_state(client: Client, control: ThreescaleControl) -> None:
    account, admin = account_and_user()
    account_id = bring_account(client, account, admin).id
    service = client.service()
    for name in ("basic", "gold"):
        client.plan(service, system_name=name)
    plans = tuple(FoundPlan.model_validate(each) for each in client.list(f"services/{service['id']}/application_plans"))
    product = Product.model_validate({"status": {"productId": service["id"]}})

    def bring(**spec: Any) -> FoundApplication:
        wanted = {"name": "App", "description": "An app", "authSecretRef": {"name": "keys"}, **spec}
        application = Application.model_validate({"metadata": {"name": "app"}, "spec": wanted})
        return bring_one(
            client,
            FoundApplication,
            Resource.APPLICATION,
            lambda found: sync_application(application, product, account_id, found, plans),
            lambda found: is_application(found, {"name": "App", "service_id": service["id"]}),
            TEXTS,
        )

    made = bring(applicationPlanName="basic")
    assert (made.state, made.user_key) == ("live", "a-user-key")
    control.reset_ledger()
    assert bring(applicationPlanName="basic") == made
    assert control.ledger().mutating() == 0
    changed = bring(applicationPlanName="gold", suspend=True, description="Other")
    ids = {plan.system_name: plan.id for plan in plans}

    assert (changed.id, changed.plan_id, changed.state) == (made.id, ids["gold"], "suspended")
    assert changed.description == "Other"
