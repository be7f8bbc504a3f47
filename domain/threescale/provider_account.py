"""The provider account (3scale tenant) that an object uses, found as in the replaced operator.

    Application          its DeveloperAccount's
    ProxyConfigPromote   its Product's
    Tenant               its master's (`tenant.py`)
    other kinds          their own

The source is the Secret that the object names; otherwise the Secret `threescale-provider-account`, if it exists;
otherwise the APIManager, with the Secret `system-seed`. If the source lacks a key, no other source is used. After a
move to another tenant an object is searched for by name, because its id may belong to another object there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from domain.model import Model
from domain.resource import CustomResource
from domain.threescale.calls import SecretKey
from domain.threescale.normalize import with_port
from domain.threescale.resources import Application, DeveloperAccount
from domain.threescale.resources.shared import InTenant

DEFAULT_SECRET = "threescale-provider-account"  # noqa: S105 - a name, no secret
SEED_SECRET = "system-seed"  # noqa: S105 - a name, no secret
ADDRESS_KEY = "adminURL"
TOKEN_KEY = "token"  # noqa: S105 - a name, no secret
SEED_TOKEN_KEY = "ADMIN_ACCESS_TOKEN"  # noqa: S105 - a name, no secret


class SecretView(Model):
    """A Secret's keys that have a value. Of the values, only the tenant's address is included."""

    name: str
    keys: tuple[str, ...] = ()
    admin_url: str = ""
    version: str = ""


class Installation(Model):
    tenant_name: str = "3scale"
    wildcard_domain: str = ""


class ProviderAccount(Model):
    url: str
    token: SecretKey
    version: str = ""


class NoAccount(Model):
    """Why there is no tenant to call. `incomplete` is True if the Secret exists but lacks a key."""

    why: str
    waits_for: str
    incomplete: bool = False

    @property
    def url(self) -> str:
        return ""


def tenant_secret(each: CustomResource, accounts: Mapping[tuple[str, str], DeveloperAccount]) -> str:
    """The name of the tenant's Secret; empty for the namespace's default tenant."""
    if isinstance(each, Application):
        return named_secret(accounts.get((each.metadata.namespace, each.spec.account_cr.name)))
    return named_secret(each)


def named_secret(resource: CustomResource | None) -> str:
    spec: object = getattr(resource, "spec", None)
    return spec.tenant_secret if isinstance(spec, InTenant) else ""


def provider_account(
    namespace: str, named: str, secrets: Mapping[str, SecretView], installation: Installation | None = None
) -> ProviderAccount | NoAccount:
    """The tenant's address and token, or why there is no tenant. `named` is the referenced Secret; empty without a
    reference.
    """
    chosen = named or DEFAULT_SECRET
    secret = secrets.get(chosen)
    if secret is not None:
        return _in_secret(namespace, secret)
    waits_for = f"Secret/{namespace}/{chosen}"
    if named:
        return NoAccount(why=f"LookupProviderAccount: Secret {named} not found", waits_for=waits_for)
    if installation is None:
        return NoAccount(why="LookupProviderAccount: no provider account found", waits_for=waits_for)
    seed = secrets.get(SEED_SECRET)
    if seed is None or SEED_TOKEN_KEY not in seed.keys:
        why = f"LookupProviderAccount: Secret {SEED_SECRET} with the key {SEED_TOKEN_KEY} not found"
        return NoAccount(why=why, waits_for=f"Secret/{namespace}/{SEED_SECRET}", incomplete=seed is not None)
    url = f"https://{installation.tenant_name}-admin.{installation.wildcard_domain}"
    token = SecretKey(namespace=namespace, name=SEED_SECRET, key=SEED_TOKEN_KEY)
    return ProviderAccount(url=url, token=token, version=seed.version)


def same_tenant(one: str | None, other: str | None) -> bool:
    return bool(one) and bool(other) and plain(one or "") == plain(other or "")


def known_at(url: str, host: str | None, id_: int | None) -> int:
    """The recorded id; 0 if it is missing, or if the status's address `host` belongs to another tenant than `url`."""
    elsewhere = bool(host) and not same_tenant(host, url)
    return 0 if elsewhere else id_ or 0


def _in_secret(namespace: str, secret: SecretView) -> ProviderAccount | NoAccount:
    missing = [key for key in (ADDRESS_KEY, TOKEN_KEY) if key not in secret.keys]
    if missing:
        why = f"LookupProviderAccount: Secret {secret.name} has no {' and '.join(missing)}"
        return NoAccount(why=why, waits_for=f"Secret/{namespace}/{secret.name}", incomplete=True)
    token = SecretKey(namespace=namespace, name=secret.name, key=TOKEN_KEY)
    return ProviderAccount(url=secret.admin_url, token=token, version=secret.version)


@lru_cache(maxsize=4096)
def plain(address: str) -> tuple[str, str, str]:
    """The parts by which tenants' addresses are compared."""
    try:
        parts = urlsplit(with_port(address.strip()))
    except ValueError:
        return "", "", address.strip()
    return parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/")
