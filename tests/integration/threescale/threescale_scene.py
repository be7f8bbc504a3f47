"""One of each kind that has a lifecycle: an API with its backend, a policy and a document, and a user of it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from threescale_lab import Shop

from domain.identity import Kind
from localcloud.bench.threescale_all_kinds import DOCUMENT, EVERYTHING, PRODUCT_SPEC, SECRETS, holds

__all__ = ["DOCUMENT", "EVERYTHING", "PRODUCT_SPEC", "everything", "holds"]

Json = dict[str, Any]


async def everything(shop: Shop, order: random.Random | None = None) -> None:
    """Make all of it, with its Secrets, in some order."""
    steps: list[Callable[[], Awaitable[object]]] = [
        *(_secret(shop, name, values) for name, values in SECRETS.items()),
        *(_creation(shop, *each) for each in EVERYTHING),
    ]
    if order is not None:
        order.shuffle(steps)
    for step in steps:
        await step()


def _secret(shop: Shop, name: str, values: dict[str, str]) -> Callable[[], Awaitable[object]]:
    return lambda: shop.secret(name, **values)


def _creation(shop: Shop, kind: Kind, name: str, spec: Json) -> Callable[[], Awaitable[object]]:
    return lambda: shop.create(kind, name, spec)
