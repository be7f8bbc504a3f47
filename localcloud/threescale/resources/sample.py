"""A new tenant's sample data: two application plans, and a developer with an application."""

from __future__ import annotations

from localcloud.threescale.resources import accounts, applications, plans, users
from localcloud.threescale.store import Record, Store

_ACCOUNT = "Developer"


def establish(store: Store, tenant: Record, service: Record) -> None:
    basic, _ = (plans.establish(store, tenant, plans.APPLICATION, service, name) for name in ("Basic", "Unlimited"))
    account = accounts.establish(store, tenant, {"org_name": _ACCOUNT, "state": accounts.APPROVED})
    john = {"username": "john", "email": f"admin+test@{tenant['name']}.example.com", "password": "123456"}
    users.establish(store, account, {**john}, state=users.ACTIVE, role=users.ADMIN)
    app = {"name": f"{_ACCOUNT}'s App", "description": "Default application created on signup."}
    applications.establish(store, tenant, account, basic, {**app})
