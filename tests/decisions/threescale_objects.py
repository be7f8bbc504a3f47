"""Objects of the 3scale area for the tables of its decisions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from domain.refusal import ErrorType, Refusal
from domain.threescale import BACKEND, PRODUCT
from domain.threescale.calls import SecretKey
from domain.threescale.providers import NoAccount, ProviderAccount
from domain.threescale.resources import Backend, Product
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
