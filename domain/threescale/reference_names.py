"""The names by which objects are referenced, and the names that they reference.

A changed object wakes the referrers of its names, so an Orphan is woken when its referent is created. One name covers
all users of an account, another covers all objects that an OpenAPI created.
"""

from __future__ import annotations

from domain.resource import Condition, CustomResource
from domain.threescale import OPEN_API
from domain.threescale.auto_promotion import PROMOTE
from domain.threescale.cascading_deletion import CASCADE
from domain.threescale.conditions import IN_SYNC
from domain.threescale.developer_credentials import password_of
from domain.threescale.digests import RETAIN, digests_of
from domain.threescale.gateway_configuration import secrets_of
from domain.threescale.provider_account import DEFAULT_SECRET, INSECURE, SEED_SECRET, plain
from domain.threescale.resources import (
    ActiveDoc,
    Application,
    ApplicationAuth,
    Backend,
    CustomPolicyDefinition,
    DeveloperAccount,
    DeveloperUser,
    OpenApi,
    Product,
    ProxyConfigPromote,
    Tenant,
)
from domain.threescale.resources.shared import LocalReference

_READ_BY_OTHERS = (CASCADE, RETAIN, PROMOTE, INSECURE)


def known_as(resource: CustomResource) -> tuple[str, ...]:
    kind, meta = resource.kind_of.name, resource.metadata
    names = [f"{kind}/{meta.namespace}/{meta.name}"]
    if isinstance(resource, Product | Backend) and resource.spec.system_name:
        names.append(f"{kind}/{meta.namespace}/{resource.spec.system_name}")
    if isinstance(resource, DeveloperUser):
        names.append(users_of_account(meta.namespace, resource.spec.developer_account_ref.name))
    names += [made_by(meta.namespace, each.name) for each in meta.owner_references if each.kind == OPEN_API.name]
    return tuple(dict.fromkeys(names))


def made_by(namespace: str, open_api: str) -> str:
    return f"Product/{namespace}/* of OpenAPI {open_api}"


def called(resource: CustomResource) -> str:
    """The kind and the name in 3scale, which is unique in a tenant; empty if the object has no such name."""
    kind = resource.kind_of.name
    if isinstance(resource, Product | Backend | ActiveDoc) and resource.spec.system_name:
        return f"{kind} called {resource.spec.system_name}"
    if isinstance(resource, CustomPolicyDefinition):
        return f"{kind} called {resource.spec.name} {resource.spec.version}"
    if isinstance(resource, DeveloperAccount):
        return f"{kind} called {resource.spec.org_name}"
    if isinstance(resource, Tenant):
        return f"{kind} called {resource.spec.organization_name} at {'/'.join(plain(resource.spec.system_master_url))}"
    return ""


def seen_by_others(resource: CustomResource) -> tuple[object, ...]:
    """What other objects read of this object. Times and `InSync` are left out, so that they wake no referrer."""
    meta, status = resource.metadata, getattr(resource, "status", None)
    levers = tuple(meta.annotations.get(each) for each in _READ_BY_OTHERS)
    digests = digests_of(resource).model_dump_json(exclude={"production"})
    shown = status.model_dump_json(exclude={"conditions", "digests"}) if status is not None else ""
    conditions: list[Condition] = getattr(status, "conditions", None) or []
    shown_conditions = sorted(
        (each.type, each.status, each.message or "") for each in conditions if each.type != IN_SYNC
    )
    finalizer_removed = meta.deleting and resource.kind_of.finalizer not in meta.finalizers
    return meta.generation, levers, digests, shown, tuple(shown_conditions), finalizer_removed


def users_of_account(namespace: str, account: str) -> str:
    return f"DeveloperUser/{namespace}/* of {account}"


def refers_to(resource: CustomResource) -> tuple[str, ...]:
    meta = resource.metadata
    named = [name for name in _named(resource, meta.namespace) if not name.endswith("/")]
    return tuple(dict.fromkeys(named))


def _named(resource: CustomResource, namespace: str) -> list[str]:
    if isinstance(resource, Product):
        secrets = [f"Secret/{key.namespace}/{key.name}" for key in secrets_of(resource.spec, namespace)]
        backends = [f"Backend/{namespace}/{name}" for name in sorted(resource.spec.backend_usages)]
        return [*_account(resource.spec.provider_account_ref, namespace), *backends, *secrets]
    if isinstance(resource, Backend | CustomPolicyDefinition):
        return _account(resource.spec.provider_account_ref, namespace)
    if isinstance(resource, DeveloperAccount):
        users = users_of_account(namespace, resource.metadata.name)
        return [*_account(resource.spec.provider_account_ref, namespace), users]
    if isinstance(resource, DeveloperUser):
        password = password_of(resource)
        return [
            *_account(resource.spec.provider_account_ref, namespace),
            f"DeveloperAccount/{namespace}/{resource.spec.developer_account_ref.name}",
            f"Secret/{password.namespace}/{password.name}",
        ]
    if isinstance(resource, ActiveDoc):
        secret = resource.spec.active_doc_open_api_ref.secret_ref
        document = [f"Secret/{secret.namespace or namespace}/{secret.name}"] if secret else []
        product = f"Product/{namespace}/{resource.spec.product_system_name or ''}"
        return [*_account(resource.spec.provider_account_ref, namespace), product, *document]
    return _of_uses(resource, namespace)


def _of_uses(resource: CustomResource, namespace: str) -> list[str]:
    if isinstance(resource, Application):
        spec = resource.spec
        secret = spec.auth_secret_ref.name if spec.auth_secret_ref else ""
        return [
            f"DeveloperAccount/{namespace}/{spec.account_cr.name}",
            f"Product/{namespace}/{spec.product_cr.name}",
            f"Secret/{namespace}/{secret}",
        ]
    if isinstance(resource, ApplicationAuth):
        return [
            *_account(resource.spec.provider_account_ref, namespace),
            f"Application/{namespace}/{resource.spec.application_cr_name}",
            f"Secret/{namespace}/{resource.spec.auth_secret_ref.name}",
        ]
    if isinstance(resource, ProxyConfigPromote):
        return [f"Product/{namespace}/{resource.spec.product_cr_name}"]
    if isinstance(resource, OpenApi):
        secret_ref = resource.spec.openapi_ref.secret_ref
        document = [f"Secret/{secret_ref.namespace or namespace}/{secret_ref.name}"] if secret_ref else []
        made = made_by(namespace, resource.metadata.name)
        return [*_account(resource.spec.provider_account_ref, namespace), *document, made]
    if isinstance(resource, Tenant):
        return _secrets_of(resource)
    return []


def _secrets_of(tenant: Tenant) -> list[str]:
    spec, namespace = tenant.spec, tenant.metadata.namespace
    references = (spec.master_credentials_ref, spec.password_credentials_ref, spec.tenant_secret_ref)
    return [f"Secret/{each.namespace or namespace}/{each.name}" for each in references]


def _account(reference: LocalReference | None, namespace: str) -> list[str]:
    if reference is not None and reference.name:
        return [f"Secret/{namespace}/{reference.name}"]
    return [f"Secret/{namespace}/{DEFAULT_SECRET}", f"Secret/{namespace}/{SEED_SECRET}"]
