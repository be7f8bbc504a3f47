"""The typed client of the simulator's control API, for tests, demos and benchmarks."""

from __future__ import annotations

from typing import Self

from localcloud.control import ControlRefusedError, DisturbableCloud
from localcloud.deployment import Deployment
from localcloud.threescale.contract import (
    Config,
    Fault,
    FaultKind,
    Health,
    Ledger,
    TenantRecord,
    TenantWorld,
    TokenRecord,
)


class ThreescaleControl(DisturbableCloud):
    @classmethod
    def of(cls, deployment: Deployment) -> Self:
        return cls(str(deployment.service("threescale").url))

    def health(self) -> Health:
        return self._get("health", Health)

    def config(self, **changes: object) -> Config:
        return self._send("PUT", "config", changes, Config) if changes else self._get("config", Config)

    def reset_config(self) -> Config:
        return self._send("DELETE", "config", None, Config)

    def fault(
        self, method: str = "*", path: str = "", *, kind: FaultKind | str = FaultKind.REFUSE, **more: object
    ) -> Fault:
        fault = Fault.model_validate({"method": method, "path": path, "kind": kind, **more})
        return self._send("POST", "faults", fault.model_dump(mode="json"), Fault)

    def faults(self) -> list[Fault]:
        return [Fault.model_validate(each) for each in self.request("GET", "faults").json()]

    def ledger(self, *, recent: bool = False) -> Ledger:
        return self._get("ledger?recent=1" if recent else "ledger", Ledger)

    def tenants(self) -> list[TenantRecord]:
        return [TenantRecord.model_validate(each) for each in self.request("GET", "tenants").json()]

    def tenant(self, name: str) -> TenantRecord:
        for tenant in self.tenants():
            if tenant.name == name:
                return tenant
        raise ControlRefusedError(f"no tenant {name}")

    def add_tenant(self, name: str) -> TenantRecord:
        return self._send("POST", "tenants", {"name": name}, TenantRecord)

    def suspend(self, name: str) -> None:
        self.request("PUT", f"tenants/{name}/state", {"state": "suspended"})

    def resume(self, name: str) -> None:
        self.request("PUT", f"tenants/{name}/state", {"state": "approved"})

    def add_token(self, tenant: str, **request: object) -> TokenRecord:
        return self._send("POST", f"tenants/{tenant}/tokens", request, TokenRecord)

    def revoke(self, value: str) -> None:
        self.request("DELETE", f"tokens/{value}")

    def world(self, tenant: str) -> TenantWorld:
        return self._get(f"tenants/{tenant}/world", TenantWorld)
