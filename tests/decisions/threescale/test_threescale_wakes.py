"""An object that waits for another refers to it by a name that the other has."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_objects import ANN_SPEC, backend, decided, metadata, product

from domain.resource import CustomResource
from domain.threescale.provider_account import provider_account
from domain.threescale.reference_names import known_as, refers_to
from domain.threescale.resources import (
    ActiveDoc,
    Application,
    ApplicationAuth,
    DeveloperAccount,
    DeveloperUser,
    ProxyConfigPromote,
)

DEFAULT = "Secret/shop/threescale-provider-account"
SEED = "Secret/shop/system-seed"


def whole(name: str, spec: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        "metadata": metadata(name, f"{kind}.capabilities.3scale.net/finalizer", "perdure.dev/activedoc"),
        "spec": spec,
    }


SHOP = product(
    backendUsages={"stock": {"path": "/"}},
    policies=[
        {"name": "x", "version": "1", "enabled": True, "configuration": {}, "configurationRef": {"name": "policy"}},
        {"name": "apicast", "version": "builtin", "enabled": True, "configuration": {}},
    ],
)
ACME = DeveloperAccount.model_validate(whole("acme", {"orgName": "Acme"}, "developeraccount"))
ANN = DeveloperUser.model_validate(whole("ann", ANN_SPEC, "developeruser"))
APP = Application.model_validate(
    whole(
        "app",
        {"accountCR": {"name": "acme"}, "productCR": {"name": "shop"}, "authSecretRef": {"name": "keys"}},
        "application",
    )
)
AUTH = ApplicationAuth.model_validate(
    whole("auth", {"applicationCRName": "app", "authSecretRef": {"name": "keys"}}, "applicationauth")
)
DOC = ActiveDoc.model_validate(
    whole(
        "doc",
        {
            "name": "Doc",
            "systemName": "doc",
            "productSystemName": "shop",
            "activeDocOpenAPIRef": {"secretRef": {"name": "body", "namespace": "shop"}},
        },
        "activedoc",
    )
)
GO = ProxyConfigPromote.model_validate(whole("go", {"productCRName": "shop"}, "proxyconfigpromote"))


@pytest.mark.parametrize(
    ("object_", "names"),
    [
        (SHOP, [DEFAULT, SEED, "Backend/shop/stock", "Secret/shop/policy"]),
        (backend(), [DEFAULT, SEED]),
        (backend(providerAccountRef={"name": "own"}), ["Secret/shop/own"]),
        (ACME, [DEFAULT, SEED, "DeveloperUser/shop/* of acme"]),
        (ANN, [DEFAULT, SEED, "DeveloperAccount/shop/acme", "Secret/shop/ann-password"]),
        (APP, ["DeveloperAccount/shop/acme", "Product/shop/shop", "Secret/shop/keys"]),
        (AUTH, [DEFAULT, SEED, "Application/shop/app", "Secret/shop/keys"]),
        (DOC, [DEFAULT, SEED, "Product/shop/shop", "Secret/shop/body"]),
        (GO, ["Product/shop/shop"]),
    ],
    ids=lambda value: value.kind_of.name if isinstance(value, CustomResource) else "",
)
def test_an_object_refers_to_these(object_: CustomResource, names: list[str]) -> None:
    assert list(refers_to(object_)) == names


def test_backends_and_products_are_known_by_their_system_names_too() -> None:
    assert known_as(backend("stock-backend", systemName="stock")) == (
        "Backend/shop/stock-backend",
        "Backend/shop/stock",
    )
    assert known_as(ANN) == ("DeveloperUser/shop/ann", "DeveloperUser/shop/* of acme")
    assert known_as(SHOP) == ("Product/shop/shop",)


NOTHING = provider_account("shop", "", {})


@pytest.mark.parametrize(
    ("object_", "seen"),
    [
        (SHOP, {"provider": NOTHING}),
        (product(backendUsages={"stock": {"path": "/"}}), {}),
        (SHOP, {"backends": (backend(),)}),
        *((each, {}) for each in (ACME, ANN, APP, AUTH, DOC, GO)),
    ],
    ids=lambda value: value.kind_of.name if isinstance(value, CustomResource) else "",
)
def test_an_awaited_object_is_referred_to_and_so_wakes(object_: CustomResource, seen: dict[str, Any]) -> None:
    waits_for = decided(object_, **seen).waits_for
    assert waits_for
    assert set(waits_for) <= set(refers_to(object_))
