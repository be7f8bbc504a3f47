"""3scale objects end to end: the deployment with the product at work, the simulator, and a namespace for each test."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from threescale_process import Client
from waiting import eventually

from domain.identity import Kind
from domain.threescale import BACKEND, PRODUCT
from engine.errors import Absent
from engine.kube import NAMESPACE, SECRET, KubeApi
from engine.kube.json import mapping, sequence, text

Json = dict[str, Any]

SLOW_MACHINE = 180.0


class Shop:
    """A namespace with the Secret of a tenant, in which a test's objects stand."""

    def __init__(self, kube: KubeApi, tenant: Client) -> None:
        self.kube = kube
        self.tenant = tenant
        self.namespace = f"shop-{uuid4().hex[:6]}"

    async def open(self) -> Shop:
        await self.kube.create(NAMESPACE, {"metadata": {"name": self.namespace}})
        await self.secret("threescale-provider-account", adminURL=self.tenant.url, token=self.tenant.token)
        return self

    async def secret(self, name: str, /, **values: str) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        await self.kube.create(SECRET, {"metadata": {"name": name}, "data": data}, self.namespace)

    async def change_secret(self, name: str, /, **values: str) -> None:
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        await self.kube.patch(SECRET, self.namespace, name, {"data": data}, field_manager="kubectl")

    async def secret_values(self, name: str) -> dict[str, str]:
        found = await self.kube.get(SECRET, self.namespace, name)
        return {key: base64.b64decode(str(value)).decode() for key, value in mapping(found, "data").items()}

    async def create(self, kind: Kind, name: str, spec: Mapping[str, object], **metadata: object) -> Json:
        return await self.kube.create(kind, {"metadata": {"name": name, **metadata}, "spec": spec}, self.namespace)

    async def get(self, kind: Kind, name: str) -> Json | None:
        try:
            return await self.kube.get(kind, self.namespace, name)
        except Absent:
            return None

    async def change(self, kind: Kind, name: str, spec: Mapping[str, object]) -> Json:
        return await self.kube.patch(kind, self.namespace, name, {"spec": spec}, field_manager="kubectl")

    async def annotate(self, kind: Kind, name: str, **annotations: str | None) -> Json:
        patch = {"metadata": {"annotations": annotations}}
        return await self.kube.patch(kind, self.namespace, name, patch, field_manager="kubectl")

    async def delete(self, kind: Kind, name: str) -> None:
        await self.kube.delete(kind, self.namespace, name)

    async def backend(self, name: str = "stock", **spec: object) -> Json:
        wanted = {"name": name, "systemName": name, "privateBaseURL": "https://stock.example.com", **spec}
        return await self.create(BACKEND, name, wanted)

    async def product(self, name: str = "goods", **spec: object) -> Json:
        return await self.create(PRODUCT, name, {"name": name, "systemName": name, **spec})

    # --- what comes of it ---

    async def shown(self, kind: Kind, name: str, type_: str) -> Json:
        """The object once that condition is True for its newest spec."""

        async def holds() -> Json | None:
            found = await self.get(kind, name)
            if found is None or type_ not in true_conditions(found):
                return None
            observed = mapping(found, "status").get("observedGeneration", found["metadata"]["generation"])
            return found if observed == found["metadata"]["generation"] else None

        what = f"{kind.name} {name} is {type_}"
        try:
            found: Json = await eventually(holds, what, SLOW_MACHINE)
        except BaseException:
            print(f"{what}: {await self.get(kind, name)}")
            raise
        return found

    async def synced(self, kind: Kind, name: str) -> Json:
        return await self.shown(kind, name, "Synced")

    async def ready(self, kind: Kind, name: str) -> Json:
        return await self.shown(kind, name, "Ready")

    async def gone(self, kind: Kind, name: str) -> None:
        async def is_gone() -> bool:
            return await self.get(kind, name) is None

        await eventually(is_gone, f"{kind.name} {name} is gone", SLOW_MACHINE)

    async def message(self, kind: Kind, name: str, type_: str) -> str:
        found = await self.get(kind, name)
        return next(text(each, "message") for each in _conditions(found or {}) if text(each, "type") == type_)


def true_conditions(obj: Json) -> set[str]:
    return {text(each, "type") for each in _conditions(obj) if text(each, "status") == "True"}


def _conditions(obj: Json) -> Iterable[object]:
    return sequence(obj, "status", "conditions")
