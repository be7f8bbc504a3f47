"""The simulated world: master and tenants, settings and faults, all in a store that survives restarts."""

from __future__ import annotations

import json
import time
from pathlib import Path

from localcloud.state import LOOPBACK
from localcloud.threescale import places, tables
from localcloud.threescale.contract import (
    ALL_SCOPES,
    DEFAULT_MASTER_TOKEN,
    DEFAULT_TENANT,
    DEFAULT_TOKEN,
    DOMAIN,
    Config,
    Fault,
    JsonObject,
    TenantRecord,
    TenantWorld,
    TokenRecord,
    TokenWish,
)
from localcloud.threescale.faults import FaultBoard
from localcloud.threescale.ledger import ledger_book
from localcloud.threescale.resources import access_tokens, tenants
from localcloud.threescale.store import Record, Store


class World:
    def __init__(self, path: Path, *, host: str = LOOPBACK, port: int = 0, master_port: int = 0) -> None:
        self.host = host
        self.store = Store(path)
        self.config = Config.model_validate_json(self.store.setting("config") or "{}")
        self.store.clock_skew_seconds = self.config.clock_skew_seconds
        self.faults = FaultBoard()
        self.faults.restore(Fault.model_validate(each) for each in json.loads(self.store.setting("faults") or "[]"))
        self.ledger = ledger_book(self.config.recent_calls)
        with self.store.transaction():
            self._establish(port, master_port)
        self.tenants = self._read_tenants()

    def close(self) -> None:
        self.keep_faults()
        self.store.close()

    @property
    def default(self) -> Record:
        return next(tenant for tenant in self.tenants if tenant["name"] == DEFAULT_TENANT)

    def tenant(self, name: str) -> Record:
        for tenant in self.tenants:
            if tenant["name"] == name:
                return tenant
        raise LookupError(f"no tenant {name}")

    def tenant_at(self, host: str, port: int) -> Record | None:
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        for tenant in self.tenants:
            if tenant["host"] == name.lower():
                return tenant
        if name not in ("localhost", self.host, "[::1]") and not name.replace(".", "").isdigit():
            return None
        return next((tenant for tenant in self.tenants if tenant["port"] == port), None)

    def refresh(self) -> list[Record]:
        self.tenants = self._read_tenants()
        return self.tenants

    def add_tenant(self, name: str) -> TenantRecord:
        with self.store.transaction():
            made = tenants.establish(self.store, self.tenant(tenants.MASTER), {"org_name": name})
            admin = {"username": "admin", "email": f"admin@{made['name']}.example.com", "password": "unkept"}
            tenants.establish_admin(self.store, made, {**admin}, [*ALL_SCOPES])
            places.settle(self.store, made, self.host)
        self.tenants = self._read_tenants()
        return self.record_of(self.store.get(tables.ACCOUNTS, made.id))

    def add_token(self, tenant: Record, request: TokenWish) -> TokenRecord:
        with self.store.transaction():
            user = self.store.find(tables.USERS, account_id=tenant.id, role="admin")
            assert user is not None
            made = access_tokens.establish(
                self.store, tenant, user, request.name, [*request.scopes], request.permission
            )
        return _token_record(made)

    def revoke(self, value: str) -> None:
        with self.store.transaction():
            found = self.store.find(tables.TOKENS, value=value)
            if found is None:
                raise LookupError("no such token")
            self.store.delete(found)

    def set_state(self, tenant: Record, state: str) -> None:
        with self.store.transaction():
            self.store.update(tenant, state=state)
        self.tenants = self._read_tenants()

    def set_config(self, config: Config) -> None:
        with self.store.transaction():
            self.store.set_setting("config", config.model_dump_json())
        self.config = config
        self.store.clock_skew_seconds = config.clock_skew_seconds
        self.ledger.keep(config.recent_calls)

    def keep_faults(self) -> None:
        with self.store.transaction():
            self.store.set_setting(
                "faults", json.dumps([fault.model_dump(mode="json") for fault in self.faults.report()])
            )

    def purge(self) -> None:
        before = time.time() - self.config.deletion_seconds
        for table in (tables.SERVICES, tables.BACKENDS):
            self.store.purge(table, before)

    def record_of(self, tenant: Record) -> TenantRecord:
        found = self.store.all(tables.TOKENS, tenant_id=tenant.id)
        return TenantRecord(
            id=tenant.id,
            name=tenant.text("name"),
            state=tenant.text("state"),
            url=tenant.text("url"),
            host=tenant.text("host"),
            tokens=tuple(_token_record(token) for token in found),
        )

    def contents(self, tenant: Record) -> TenantWorld:
        store = self.store
        services = store.all(tables.SERVICES, tenant_id=tenant.id, deleted=None)
        backends = store.all(tables.BACKENDS, tenant_id=tenant.id, deleted=None)
        accounts = store.all(tables.ACCOUNTS, provider_id=tenant.id, kind="buyer")
        rows: dict[str, list[Record]] = {
            tables.SERVICES: services,
            tables.BACKENDS: backends,
            tables.ACCOUNTS: accounts,
        }
        of_services = (
            *(tables.PROXIES, tables.PROXY_CONFIGS, tables.METRICS, tables.MAPPING_RULES),
            *(tables.BACKEND_USAGES, tables.PLANS, tables.APPLICATIONS, tables.SUBSCRIPTIONS, tables.FEATURES),
        )
        for service in services:
            for table in of_services:
                rows.setdefault(table, []).extend(store.all(table, service_id=service.id))
        for backend in backends:
            for table in (tables.METRICS, tables.MAPPING_RULES):
                rows.setdefault(table, []).extend(store.all(table, backend_id=backend.id))
        rows.setdefault(tables.PLANS, []).extend(store.all(tables.PLANS, tenant_id=tenant.id, service_id=None))
        for plan in list(rows[tables.PLANS]):
            for table in (tables.LIMITS, tables.PRICING_RULES):
                rows.setdefault(table, []).extend(store.all(table, plan_id=plan.id))
        for application in rows.get(tables.APPLICATIONS, ()):
            rows.setdefault(tables.KEYS, []).extend(store.all(tables.KEYS, application=application.id))
        for account in (*accounts, tenant):
            rows.setdefault(tables.USERS, []).extend(store.all(tables.USERS, account_id=account.id))
        for table in (tables.ACTIVE_DOCS, tables.POLICIES, tables.FIELDS_DEFINITIONS):
            rows[table] = store.all(table, tenant_id=tenant.id)
        return TenantWorld(
            name=tenant.text("name"),
            tables={table: tuple(_row(each) for each in found) for table, found in rows.items()},
        )

    def _establish(self, port: int, master_port: int) -> None:
        master = self.store.find(tables.ACCOUNTS, name=tenants.MASTER)
        if master is None:
            master = tenants.establish_master(self.store, DEFAULT_MASTER_TOKEN)
            made = tenants.establish(self.store, master, {"org_name": DEFAULT_TENANT})
            admin: JsonObject = {"username": "admin", "email": f"admin@{DEFAULT_TENANT}.{DOMAIN}"}
            tenants.establish_admin(self.store, made, admin, [*ALL_SCOPES], DEFAULT_TOKEN)
        for tenant in self._read_tenants():
            wanted = {tenants.MASTER: master_port, DEFAULT_TENANT: port}.get(tenant.text("name"), 0)
            places.settle(self.store, tenant, self.host, wanted)

    def _read_tenants(self) -> list[Record]:
        return [tenant for kind in ("master", "provider") for tenant in self.store.all(tables.ACCOUNTS, kind=kind)]


def _token_record(token: Record) -> TokenRecord:
    return TokenRecord(
        value=token.text("value"),
        name=token.text("name"),
        scopes=tuple(str(each) for each in token.array("scopes")),
        permission=token.text("permission"),
    )


def _row(record: Record) -> JsonObject:
    return {name: value for name, value in record.values.items() if name not in ("born", "has_password")}
