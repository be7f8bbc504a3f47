"""The table of routes. A handler gets a `Call` and returns an `Answer`, or raises a refusal, which rolls the
transaction of the call back.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from localcloud.threescale import refusals
from localcloud.threescale.answers import Answer, Page
from localcloud.threescale.contract import Config, JsonObject
from localcloud.threescale.parameters import Parameters
from localcloud.threescale.store import Record, Store

ACCOUNT_MANAGEMENT = "account_management"
POLICY_REGISTRY = "policy_registry"
FINANCE = "finance"
CMS = "cms"

MAX_PER_PAGE = 500


@dataclass(frozen=True)
class Call:
    store: Store
    config: Config
    tenant: Record
    token: Record
    parameters: Parameters
    path: Mapping[str, str]
    base_url: str
    listening_on: str

    def id(self, name: str) -> int:
        try:
            return int(self.path[name])
        except ValueError:
            raise refusals.not_found() from None

    def find(self, table: str, **where: JsonValue) -> Record:
        found = self.store.find(table, **where)
        if found is None:
            raise refusals.not_found()
        return found

    def page(self, table: str, **where: JsonValue) -> tuple[list[Record], Page]:
        return self.store.page(table, self.wanted_page(), self._born_before(), **where)

    def all(self, table: str, order: str = "id", /, **where: JsonValue) -> list[Record]:
        latest = self._born_before()
        return [
            record
            for record in self.store.all(table, order, **where)
            if latest is None or float(record.text("born")) <= latest
        ]

    def links(self, path: str, **more: str) -> list[JsonValue]:
        return [{"rel": name, "href": f"{self.base_url}{where}"} for name, where in {"self": path, **more}.items()]

    def wanted_page(self, total: int = 0) -> Page:
        number = self.parameters.integer("page") or 1
        size = self.parameters.integer("per_page") or MAX_PER_PAGE
        if not 1 <= size <= MAX_PER_PAGE:
            size = MAX_PER_PAGE
        return Page(max(1, number), min(size, self.config.page_size or size), total)

    def _born_before(self) -> float | None:
        return time.time() - self.config.stale_list_seconds if self.config.stale_list_seconds else None


Handler = Callable[[Call], Answer]


@dataclass(frozen=True)
class Route:
    methods: tuple[str, ...]
    path: str
    handler: Handler
    scope: str
    json_only: bool

    @property
    def name(self) -> str:
        return re.sub(r":[^{}]*\}", "}", self.path)

    @property
    def of_master(self) -> bool:
        return self.path.startswith("/master/")


class Routes:
    def __init__(self) -> None:
        self.all: list[Route] = []

    def add(
        self, methods: str, *paths: str, scope: str = ACCOUNT_MANAGEMENT, json_only: bool = False
    ) -> Callable[[Handler], Handler]:
        def enter(handler: Handler) -> Handler:
            self.all += [Route(tuple(methods.split()), path, handler, scope, json_only) for path in paths]
            return handler

        return enter


def shown(call: Call, record: Record, path: str, fields: JsonObject, **links: str) -> JsonObject:
    return {
        **fields,
        "created_at": record.text("created_at"),
        "updated_at": record.text("updated_at"),
        "links": call.links(path, **links),
    }
