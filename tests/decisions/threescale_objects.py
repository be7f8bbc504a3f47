"""Objects of the 3scale area for the tables of its decisions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.decision import Decision
from domain.refusal import ErrorType, Refusal
from domain.resource import CustomResource
from domain.threescale import BACKEND, PRODUCT
from domain.threescale.actions import ClusterWrite, DeleteObject, DropFinalizer, PatchObject, ShowStatus
from domain.threescale.active_doc import ObservedDocument
from domain.threescale.application import ObservedApplication
from domain.threescale.application_auth import ObservedAuth
from domain.threescale.backend import ObservedBackend
from domain.threescale.calls import Read, SecretKey, Write
from domain.threescale.config_promotion import ObservedPromotion
from domain.threescale.custom_policy import ObservedPolicy
from domain.threescale.developer_account import ObservedAccount
from domain.threescale.developer_user import ObservedUser
from domain.threescale.observed import Observed, Phase
from domain.threescale.open_api import ObservedOpenApi
from domain.threescale.product import ObservedProduct
from domain.threescale.provider_account import NoAccount, ProviderAccount
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
from domain.threescale.tenant import ObservedTenant
from domain.writes import JsonPatch, merge

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=1)
URL = "https://3scale-admin.example.com"
ACCOUNT = ProviderAccount(
    url=URL, token=SecretKey(namespace="shop", name="threescale-provider-account", key="token"), version="1"
)
NO_ACCOUNT = NoAccount(why="no provider account found", waits_for="Secret/shop/threescale-provider-account")
HITS = {"friendlyName": "Hits", "unit": "hit", "description": "Number of API hits"}
APICAST = {"name": "apicast", "version": "builtin", "enabled": True, "configuration": {}}

# A DeveloperUser of the account `acme`.
ANN_SPEC = {
    "username": "ann",
    "email": "ann@example.com",
    "role": "admin",
    "passwordCredentialsRef": {"name": "ann-password"},
    "developerAccountRef": {"name": "acme"},
}


def metadata(name: str, *finalizers: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "generation": 3,
        "creationTimestamp": LONG_AGO.isoformat(),
        "finalizers": list(finalizers),
        **more,
    }


def backend(name: str = "stock", *, meta: dict[str, Any] | None = None, synced: bool = True, **spec: Any) -> Backend:
    status = {"backendId": 7, "providerAccountHost": URL, "conditions": [{"type": "Synced", "status": "True"}]}
    return Backend.model_validate(
        {
            "metadata": metadata(name, BACKEND.finalizer, **(meta or {})),
            "spec": {
                "name": name,
                "systemName": name,
                "privateBaseURL": "https://stock.example.com",
                "metrics": {"hits": HITS},
                **spec,
            },
            "status": status if synced else {},
        }
    )


def product(name: str = "shop", *, meta: dict[str, Any] | None = None, product_id: int = 0, **spec: Any) -> Product:
    return Product.model_validate(
        {
            "metadata": metadata(name, PRODUCT.finalizer, **(meta or {})),
            "spec": {"name": name, "systemName": name, "metrics": {"hits": HITS}, "policies": [APICAST], **spec},
            "status": {"productId": product_id, "providerAccountHost": URL} if product_id else {},
        }
    )


def after(resource: Any, patch: JsonPatch, status: JsonPatch | None = None) -> Any:
    """The object with the patches written."""
    body = merge(resource.model_dump(mode="json"), patch)
    return type(resource).model_validate(merge(body, {"status": status} if status else {}))


def remembers(resource: Any, **digests: str | None) -> Any:
    """The object with these digests of what was last brought to 3scale, besides those that it has."""
    return after(resource, {}, {"digests": digests})


def states(status: JsonPatch) -> str:
    """The conditions that are True in a patch of a status."""
    listed: Any = status.get("conditions", ())
    return " ".join(each["type"] for each in listed if each["status"] == "True")


def message(status: JsonPatch, type_: str) -> str:
    listed: Any = status.get("conditions", ())
    return next(str(each["message"]) for each in listed if each["type"] == type_)


def refusal(type_: ErrorType, text: str, attempts: int = 1) -> Refusal:
    return Refusal(type=type_, message=text, at=NOW, attempts=attempts)


@dataclass(frozen=True)
class Requested:
    """What a decision asks for, by what it does."""

    phase: Phase
    why: str
    patch: JsonPatch  # of the object
    status: JsonPatch
    effects: tuple[Any, ...]  # other objects of the cluster
    reads: tuple[Read, ...]
    writes: tuple[Write, ...]
    deletes: bool  # the object itself
    drops_finalizer: bool
    left: tuple[str, ...]  # what stays in 3scale when the object goes
    waits_for: tuple[str, ...]
    deadline: datetime | None

    @property
    def idle(self) -> bool:
        done = (self.patch, self.status, self.effects, self.reads, self.writes)
        return not any(done) and not self.deletes and not self.drops_finalizer


_OBSERVED: dict[type[CustomResource], type[Observed]] = {
    ActiveDoc: ObservedDocument,
    Application: ObservedApplication,
    ApplicationAuth: ObservedAuth,
    Backend: ObservedBackend,
    CustomPolicyDefinition: ObservedPolicy,
    DeveloperAccount: ObservedAccount,
    DeveloperUser: ObservedUser,
    OpenApi: ObservedOpenApi,
    Product: ObservedProduct,
    ProxyConfigPromote: ObservedPromotion,
    Tenant: ObservedTenant,
}


def observed(resource: CustomResource, *, provider: Any = ACCOUNT, **seen: Any) -> Any:
    """The object with what is seen beside it."""
    return _OBSERVED[type(resource)](key=resource.key, resource=resource, provider=provider, **seen)


def decided(resource: CustomResource, *, now: datetime = NOW, **seen: Any) -> Requested:
    """What is decided on the object with what is seen beside it."""
    return requested(observed(resource, **seen).decide(now))


def requested(decision: Decision) -> Requested:
    """What a decision asks for."""
    by_type: dict[type, list[Any]] = {
        kind: [each for each in decision.actions if isinstance(each, kind)]
        for kind in (PatchObject, ShowStatus, ClusterWrite, Read, Write, DeleteObject, DropFinalizer)
    }
    assert sum(map(len, by_type.values())) == len(decision.actions)
    (patch,) = by_type[PatchObject] or [None]
    (status,) = by_type[ShowStatus] or [None]
    return Requested(
        phase=Phase(decision.phase),
        why=decision.why,
        patch=patch.patch if patch else {},
        status=status.patch["status"] if status else {},
        effects=tuple(by_type[ClusterWrite]),
        reads=tuple(by_type[Read]),
        writes=tuple(by_type[Write]),
        deletes=bool(by_type[DeleteObject]),
        drops_finalizer=bool(by_type[DropFinalizer]),
        left=tuple(what for each in by_type[DropFinalizer] for what in each.left),
        waits_for=decision.waits_for,
        deadline=decision.deadline,
    )
