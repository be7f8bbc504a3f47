"""The Secret's keys that hold an application's credentials; they depend on the product's authentication.

An ApplicationAuth sets an existing application's credentials. With OIDC, an ApplicationAuth reads `ApplicationKey`,
whereas an Application reads `ClientID` and `ClientSecret`.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.threescale.calls import SecretKey
from domain.threescale.gateway_configuration import backend_version
from domain.threescale.resources import Application, Product

USER_KEY, APPLICATION_ID, APPLICATION_KEY = "UserKey", "ApplicationID", "ApplicationKey"

# 3scale's parameters and the Secret's keys, by the product's authentication.
_CREDENTIALS = {
    "1": {"user_key": USER_KEY},
    "2": {"application_id": APPLICATION_ID, "application_key": APPLICATION_KEY},
    "oidc": {"application_id": "ClientID", "application_key": "ClientSecret"},
}


def credentials(application: Application, product: Product) -> dict[str, SecretKey]:
    reference = application.spec.auth_secret_ref
    if reference is None or not reference.name:
        return {}
    keys = _CREDENTIALS[backend_version(product.spec.deployment) or "1"]
    namespace = application.metadata.namespace
    return {name: SecretKey(namespace=namespace, name=reference.name, key=key) for name, key in keys.items()}


def keys_of_auth(product: Product) -> tuple[str, ...]:
    version = backend_version(product.spec.deployment)
    keys: Mapping[str | None, tuple[str, ...]] = {"1": (USER_KEY,), "2": (APPLICATION_KEY,), "oidc": (APPLICATION_KEY,)}
    return keys.get(version, (USER_KEY, APPLICATION_KEY))
