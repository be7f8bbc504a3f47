"""Routes of resources that products and backends both have. The routes of backends answer only in JSON."""

from __future__ import annotations

from collections.abc import Callable

from localcloud.threescale import tables
from localcloud.threescale.answers import Answer, Page
from localcloud.threescale.call import Call, Routes
from localcloud.threescale.store import Record

Handler = Callable[[Call, Record], Answer]


class OwnedRoutes:
    def __init__(self, below_product: str, below_backend: str) -> None:
        self.routes = Routes()
        self._product = f"/admin/api/services/{{service}}/{below_product}"
        self._backend = f"/admin/api/backend_apis/{{backend}}/{below_backend}"

    def add(self, methods: str, path: str = "") -> Callable[[Handler], Handler]:
        def enter(handler: Handler) -> Handler:
            def handle(call: Call) -> Answer:
                return handler(call, _owner_of(call))

            self.routes.add(methods, f"{self._product}{path}")(handle)
            self.routes.add(methods, f"{self._backend}{path}", json_only=True)(handle)
            return handler

        return enter


def listed(
    call: Call, owner: Record, table: str, order: str = "id", **where: int | None
) -> tuple[list[Record], Page | None]:
    """For a product all records, in `order`; for a backend one page, by id."""
    if owner.table == tables.SERVICES:
        return call.all(table, order, **owned_by(owner), **where), None
    return call.page(table, **owned_by(owner), **where)


def owned_by(owner: Record) -> dict[str, int | None]:
    if owner.table == tables.SERVICES:
        return {"service_id": owner.id, "backend_id": None}
    return {"service_id": None, "backend_id": owner.id}


def path_of(owner: Record) -> str:
    return f"/admin/api/{'services' if owner.table == tables.SERVICES else 'backend_apis'}/{owner.id}"


def _owner_of(call: Call) -> Record:
    table, name = (tables.SERVICES, "service") if "service" in call.path else (tables.BACKENDS, "backend")
    return call.find(table, id=call.id(name), tenant_id=call.tenant.id, deleted=None)
