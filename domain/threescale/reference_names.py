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
from domain.threescale.deletion import RETAIN
from domain.threescale.developer_user import password_of
from domain.threescale.digests import digests_of
from domain.threescale.issuer_and_policy_secrets import secrets_of
from domain.threescale.provider_account import DEFAULT_SECRET, SEED_SECRET, plain
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
from domain.threescale.resources.shared import Document, InTenant
from domain.threescale.tls_verification import INSECURE

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
    """What other objects read from this object. Times and `InSync` are left out, so that they wake no referrer."""
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
    spec: object = getattr(resource, "spec", None)
    return [*(_account(spec, namespace) if isinstance(spec, InTenant) else ()), *_objects(resource, namespace)]


def _objects(resource: CustomResource, namespace: str) -> list[str]:
    match resource:
        case Product(spec=spec):
            secrets = [f"Secret/{key.namespace}/{key.name}" for key in secrets_of(spec, namespace)]
            return [*(f"Backend/{namespace}/{name}" for name in sorted(spec.backend_usages)), *secrets]
        case DeveloperAccount():
            return [users_of_account(namespace, resource.metadata.name)]
        case DeveloperUser(spec=spec):
            password = password_of(resource)
            account = f"DeveloperAccount/{namespace}/{spec.developer_account_ref.name}"
            return [account, f"Secret/{password.namespace}/{password.name}"]
        case ActiveDoc(spec=spec):
            product = f"Product/{namespace}/{spec.product_system_name or ''}"
            return [product, *_document(spec.active_doc_open_api_ref, namespace)]
        case Application(spec=spec):
            return [
                f"DeveloperAccount/{namespace}/{spec.account_cr.name}",
                f"Product/{namespace}/{spec.product_cr.name}",
                f"Secret/{namespace}/{spec.auth_secret_ref.name if spec.auth_secret_ref else ''}",
            ]
        case ApplicationAuth(spec=spec):
            application = f"Application/{namespace}/{spec.application_cr_name}"
            return [application, f"Secret/{namespace}/{spec.auth_secret_ref.name}"]
        case ProxyConfigPromote(spec=spec):
            return [f"Product/{namespace}/{spec.product_cr_name}"]
        case OpenApi(spec=spec):
            return [*_document(spec.openapi_ref, namespace), made_by(namespace, resource.metadata.name)]
        case Tenant(spec=spec):
            named = (spec.master_credentials_ref, spec.password_credentials_ref, spec.tenant_secret_ref)
            return [f"Secret/{each.namespace or namespace}/{each.name}" for each in named]
    return []


def _document(document: Document, namespace: str) -> list[str]:
    secret = document.secret_ref
    return [f"Secret/{secret.namespace or namespace}/{secret.name}"] if secret else []


def _account(spec: InTenant, namespace: str) -> list[str]:
    if spec.tenant_secret:
        return [f"Secret/{namespace}/{spec.tenant_secret}"]
    return [f"Secret/{namespace}/{DEFAULT_SECRET}", f"Secret/{namespace}/{SEED_SECRET}"]
