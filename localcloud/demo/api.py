"""`perdure demo api`: an API is applied to 3scale in the worst order, in which each object waits for another."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable

import httpx

from domain.identity import Kind
from domain.threescale import (
    APPLICATION,
    APPLICATION_AUTH,
    BACKEND,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    PRODUCT,
    PROXY_CONFIG_PROMOTE,
)
from engine.errors import Absent
from engine.kube import SECRET
from engine.kube.json import JsonObject, at, sequence, text
from localcloud.demo.stage import FIELD_MANAGER, Scenario, Stage, UnsettledError, Waiting, since
from localcloud.state import Cloud
from localcloud.threescale.contract import TenantRecord
from localcloud.threescale.control import ThreescaleControl

NAMESPACE = "petshop"
TENANT = "3scale"
# In order of deletion, dependents first. Users are deleted with their account: 3scale keeps an account's last admin.
_KINDS = (PROXY_CONFIG_PROMOTE, APPLICATION_AUTH, APPLICATION, DEVELOPER_ACCOUNT, DEVELOPER_USER, PRODUCT, BACKEND)
# For how long it is checked that waiting objects make no calls.
_WATCHED_SECONDS = 2.0


async def play(stage: Stage) -> None:
    with ThreescaleControl.of(stage.deployment) as threescale:
        tenant = threescale.tenant(TENANT)
        await stage.apply("namespace.yaml")
        await _forget_the_last_run(stage)
        await _introduce(stage, tenant)
        await _wait_for_everything(stage, threescale)
        await _bring_the_backend(stage)
        await _sign_up(stage)
        key = await _show_the_key(stage, tenant)
        await _promote(stage, tenant)
        stage.say(f"3scale was called {threescale.ledger().calls()} times for all these objects")
        await _rename(stage, threescale)
        stage.say(f"Call the API: https://pets.example.com/pets?user_key={key}")


async def _forget_the_last_run(stage: Stage) -> None:
    left = [kind.name for kind in _KINDS if stage.objects.of(kind, NAMESPACE)]
    if not left:
        return
    stage.say(f"{', '.join(left)} are left from an earlier run: deleted first")
    for kind in _KINDS:
        for each in stage.objects.of(kind, NAMESPACE):
            await stage.delete(kind, NAMESPACE, text(each, "metadata", "name"))
        await stage.until(f"every {kind.name} is gone", _gone(stage, kind))


def _gone(stage: Stage, kind: Kind) -> Callable[[], bool]:
    return lambda: not stage.objects.of(kind, NAMESPACE)


async def _introduce(stage: Stage, tenant: TenantRecord) -> None:
    name = "threescale-provider-account"
    values: JsonObject = {"stringData": {"adminURL": tenant.url, "token": tenant.token}}
    try:
        await stage.kube.patch(SECRET, NAMESPACE, name, values, field_manager=FIELD_MANAGER)
    except Absent:
        await stage.kube.create(SECRET, {**values, "metadata": {"name": name}}, NAMESPACE)
    stage.say(f"Secret {NAMESPACE}/{name} has the address and a token of the tenant at {tenant.url}")


async def _wait_for_everything(stage: Stage, threescale: ThreescaleControl) -> None:
    threescale.reset_ledger()
    await stage.apply("application.yaml")
    await stage.apply("product.yaml")
    await stage.until(
        "application and product wait", lambda: _waits(stage, PRODUCT, "pets") and _waits_for_developer(stage)
    )
    await asyncio.sleep(_WATCHED_SECONDS)
    if calls := threescale.ledger().calls():
        raise UnsettledError(f"3scale was called {calls} times for objects that only wait")
    stage.say("Applied application.yaml and product.yaml: both wait, and 3scale has not been called")
    await stage.breathe()


async def _bring_the_backend(stage: Stage) -> None:
    began = time.monotonic()
    await stage.apply("backend.yaml")
    await stage.until("the product is synced", lambda: _is(stage, PRODUCT, "pets", "Synced"))
    stage.say(f"Applied backend.yaml: backend and product are in 3scale after {since(began)}")
    await stage.breathe()


async def _sign_up(stage: Stage) -> None:
    began = time.monotonic()
    await stage.apply("developer.yaml")
    await stage.until("the developer account is ready", lambda: _is(stage, DEVELOPER_ACCOUNT, "acme", "Ready"))
    await stage.until("the account's admin is ready", lambda: _is(stage, DEVELOPER_USER, "jane", "Ready"))
    stage.say(f"Applied developer.yaml: account and admin were created together, after {since(began)}")
    await stage.until("the application is ready", lambda: _is(stage, APPLICATION, "store", "Ready"))
    stage.say(f"The application, which waited for the account, is ready by itself after {since(began)}")
    await stage.breathe()


async def _show_the_key(stage: Stage, tenant: TenantRecord) -> str:
    await stage.until("the application has its credentials", lambda: _is(stage, APPLICATION_AUTH, "store", "Ready"))
    secret = await stage.kube.get(SECRET, NAMESPACE, "store-keys")
    key = base64.b64decode(text(secret, "data", "UserKey")).decode()
    account = at(stage.objects.one(DEVELOPER_ACCOUNT, NAMESPACE, "acme"), "status", "accountID")
    application = at(stage.objects.one(APPLICATION, NAMESPACE, "store"), "status", "applicationID")
    found = await _get(tenant, f"accounts/{account}/applications/{application}")
    if text(found, "application", "user_key") != key or not key:
        raise UnsettledError("the application's key in 3scale is not the Secret's")
    stage.say(f"The application's key is {key}: in Secret {NAMESPACE}/store-keys, and in 3scale")
    return key


async def _promote(stage: Stage, tenant: TenantRecord) -> None:
    await stage.apply("promotion.yaml")
    await stage.until(
        "the product is promoted", lambda: _is(stage, PROXY_CONFIG_PROMOTE, "pets-to-production", "Ready")
    )
    product = at(stage.objects.one(PRODUCT, NAMESPACE, "pets"), "status", "productId")
    found = await _get(tenant, f"services/{product}/proxy/configs/production/latest")
    stage.say(f"Applied promotion.yaml: version {at(found, 'proxy_config', 'version')} is in production")
    await stage.breathe()


async def _rename(stage: Stage, threescale: ThreescaleControl) -> None:
    threescale.reset_ledger()
    began = time.monotonic()
    name = f"List all pets since {time.strftime('%H:%M:%S')}"
    renamed: JsonObject = {"spec": {"methods": {"list_pets": {"friendlyName": name}}}}
    answer = await stage.kube.patch(PRODUCT, NAMESPACE, "pets", renamed, field_manager=FIELD_MANAGER)
    generation = at(answer, "metadata", "generation")
    await stage.until(
        "the method has its new name in 3scale",
        lambda: (
            at(stage.objects.one(PRODUCT, NAMESPACE, "pets"), "status", "observedGeneration") == generation
            and _is(stage, PRODUCT, "pets", "Synced")
        ),
    )
    ledger = threescale.ledger()
    stage.say(
        f"A method has its new friendly name after {since(began)}: {ledger.mutating()} writes and "
        f"{ledger.reading()} reads of 3scale"
    )


async def _get(tenant: TenantRecord, path: str) -> JsonObject:
    async with httpx.AsyncClient(auth=("", tenant.token), headers={"Perdure-Unseen": "1"}, trust_env=False) as http:
        answer = await http.get(f"{tenant.url}/admin/api/{path}.json")
    found = answer.json() if answer.is_success else {}
    return found if isinstance(found, dict) else {}


# Reading the objects.


def failure(obj: JsonObject) -> str:
    if _has(obj, "Orphan") or _has(obj, "Waiting") or text(obj, "metadata", "deletionTimestamp"):
        return ""
    wrong = next((each for each in ("Invalid", "Failed") if _has(obj, each)), "")
    if not wrong:
        return ""
    name = f"{text(obj, 'kind')} {text(obj, 'metadata', 'name')}"
    return f"{name} is {wrong}: {_message(obj, wrong)}"


def look(obj: JsonObject) -> Waiting:
    if text(obj, "metadata", "deletionTimestamp"):
        return Waiting()
    if _has(obj, "Orphan") or _has(obj, "Waiting"):
        return Waiting("Orphan")
    return Waiting("Ready" if _has(obj, "Synced") or _has(obj, "Ready") else "")


def _has(obj: JsonObject | None, type_: str) -> bool:
    found = (each for each in sequence(obj, "status", "conditions") if text(each, "type") == type_)
    return any(text(each, "status") == "True" for each in found)


def _message(obj: JsonObject, type_: str) -> str:
    found = (each for each in sequence(obj, "status", "conditions") if text(each, "type") == type_)
    return next((text(each, "message") for each in found), "")


def _is(stage: Stage, kind: Kind, name: str, type_: str) -> bool:
    return _has(stage.objects.one(kind, NAMESPACE, name), type_)


def _waits(stage: Stage, kind: Kind, name: str) -> bool:
    return _is(stage, kind, name, "Orphan")


def _waits_for_developer(stage: Stage) -> bool:
    return _waits(stage, APPLICATION, "store") and _waits(stage, APPLICATION_AUTH, "store")


SCENARIO = Scenario(
    title="An API in 3scale, applied in the wrong order: each part waits until the parts that it needs exist",
    clouds=(Cloud.THREESCALE,),
    kinds=tuple(reversed(_KINDS)),
    play=play,
    failure=failure,
    areas=("threescale",),
    hints=(
        f"kubectl -n {NAMESPACE} get products,backends,developeraccounts,developerusers,applications",
        f"kubectl -n {NAMESPACE} get product pets -o yaml",
        f"perdure why product {NAMESPACE}/pets",
        'curl -u ":$THREESCALE_TOKEN" "$THREESCALE_ADMIN_URL/admin/api/services.json"',
        f"kubectl -n {NAMESPACE} delete backend pets-backend",
    ),
    look=look,
)
