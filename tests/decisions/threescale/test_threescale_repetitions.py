"""A creation that is retried: what an attempt before may have made is found, and nothing of another owner's."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from activities.threescale.call_limits import Guard
from activities.threescale.client import Tenant
from domain.threescale.calls import Resource, SecretKey, Write
from domain.threescale.developer_user import sync_user
from domain.threescale.managed_by import MANAGED_BY
from domain.threescale.remote_object import One
from domain.threescale.resources import DeveloperUser
from engine.errors import Invalid

MARKED = {"annotations": {**MANAGED_BY}}
SIGNUP = Write(
    resource=Resource.ACCOUNT,
    method="POST",
    path="signup",
    fields={"org_name": "Acme", "username": "ann", **MARKED},
    key={"username": "ann", "org_name": "Acme"},
)
PROVIDER = Write(
    resource=Resource.TENANT,
    method="POST",
    path="providers",
    fields={"org_name": "Acme", **MARKED},
    key={"org_name": "Acme"},
)
APPLICATION = Write(
    resource=Resource.APPLICATION,
    method="POST",
    path="accounts/1/applications",
    fields={"name": "App"},
    key={"name": "App", "service_id": 5},
    others=(21,),
)


def listed(plural: str, singular: str, **fields: Any) -> dict[str, Any]:
    return {plural: [{singular: {"id": 21, **fields}}]}


async def tried_again(write: Write, found: object) -> object:
    """The answer; 3scale refuses every creation, and answers every look with what is found."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(422, json={"errors": {"username": ["has already been taken"]}})
        return httpx.Response(200, text=json.dumps(found))

    texts = dict.fromkeys(write.secrets.values(), "secret123")
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        return await Tenant(http, "https://x.example.com", "token", Guard("x", 1)).write(write, texts, repeated=True)


@pytest.mark.parametrize(
    ("write", "found"),
    [
        (SIGNUP, {"account": {"id": 21, "org_name": "Acme", **MARKED}}),
        (PROVIDER, listed("accounts", "account", org_name="Acme", state="approved", **MARKED)),
        (
            APPLICATION.model_copy(update={"others": ()}),
            listed("applications", "application", name="App", service_id=5),
        ),
    ],
    ids=["account", "tenant", "application"],
)
async def test_an_item_made_by_an_earlier_attempt_is_found(write: Write, found: object) -> None:
    assert '"id": 21' in json.dumps(await tried_again(write, found))


@pytest.mark.parametrize("stored", ["secret123", "another"])
async def test_a_key_that_was_made_is_not_one_too_many(stored: str) -> None:
    """3scale counts an application's keys before it looks whether it has the new one."""
    key = SecretKey(namespace="shop", name="keys", key="ApplicationKey")
    write = Write(
        resource=Resource.KEY, method="POST", path="accounts/1/applications/21/keys", secrets={"key": key}, about="key"
    )
    found = {"keys": [{"key": {"value": "one"}}, {"key": {"value": stored}}]}
    if stored == "secret123":
        assert await tried_again(write, found) is None
        return
    with pytest.raises(Invalid, match="has already been taken"):
        await tried_again(write, found)


async def test_an_account_is_looked_for_by_its_admins_name_alone() -> None:
    requests: list[dict[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(dict(request.url.params))
        return httpx.Response(200, json={"account": {"id": 21, "org_name": "Acme", **MARKED}})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        await Tenant(http, "https://x.example.com", "token", Guard("x", 1)).write(SIGNUP, {}, repeated=True)
    assert requests == [{"username": "ann"}]


(USER,) = sync_user(
    DeveloperUser.model_validate({"spec": {"username": "ann", "email": "ann@example.com"}}), 1, One(looked=True)
).writes


@pytest.mark.parametrize(
    ("write", "found"),
    [
        (USER, listed("users", "user", username="ann", email="other@example.com")),
        (SIGNUP, {"account": {"id": 21, "org_name": "Acme"}}),
        (SIGNUP, {"account": {"id": 21, "org_name": "Other", **MARKED}}),
        (PROVIDER, listed("accounts", "account", org_name="Acme", state="approved")),
        (APPLICATION, listed("applications", "application", name="App", service_id=5)),
    ],
    ids=[
        "user of that name",
        "account made by hand",
        "account of others",
        "tenant made by hand",
        "application of another object",
    ],
)
async def test_an_item_made_by_others_is_not_adopted(write: Write, found: object) -> None:
    with pytest.raises(Invalid, match="has already been taken"):
        await tried_again(write, found)
