"""The typed client of the control APIs in front of OpenStack's services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from localcloud.control import Closing, ControlClient
from localcloud.deployment import Deployment
from localcloud.openstack.configuration import APIS
from localcloud.openstack.contract import BootFaults, Call, CallCount, Fault, FaultKind, Ledger


class OpenStackControl(Closing):
    def __init__(self, urls: Mapping[str, str], timeout_seconds: float = 30) -> None:
        self._services = {name: ControlClient(url, timeout_seconds) for name, url in urls.items()}

    @classmethod
    def of(cls, deployment: Deployment) -> Self:
        return cls({name: str(deployment.service(name).url) for name in APIS})

    def close(self) -> None:
        for service in self._services.values():
            service.close()

    def fault(
        self,
        service: str,
        method: str = "*",
        path: str = "",
        *,
        kind: FaultKind | str = FaultKind.BEFORE,
        **more: object,
    ) -> Fault:
        fault = Fault.model_validate({"method": method, "path": path, "kind": kind, **more})
        answer = self._request(service, "POST", "faults", fault.model_dump(mode="json"))
        return Fault.model_validate(answer)

    def faults(self, service: str) -> list[Fault]:
        return [Fault.model_validate(fault) for fault in self._request(service, "GET", "faults")]

    def clear(self) -> None:
        for name in self._services:
            self._request(name, "DELETE", "faults")
        self._request("nova", "PUT", "boots", BootFaults().model_dump(mode="json"))

    def boots(self, **changes: object) -> BootFaults:
        if not changes:
            return BootFaults.model_validate(self._request("nova", "GET", "boots"))
        return BootFaults.model_validate(self._request("nova", "PUT", "boots", changes))

    def ledger(self, *, recent: bool = False) -> Ledger:
        counts: list[CallCount] = []
        calls: list[Call] = []
        for name in self._services:
            report = self._request(name, "GET", "ledger?recent=1" if recent else "ledger")
            counts += [CallCount.model_validate({"service": name, **entry}) for entry in report["counts"]]
            calls += [Call.model_validate({"service": name, **entry}) for entry in report["recent"]]
        return Ledger(counts=tuple(counts), recent=tuple(sorted(calls, key=lambda call: call.at)))

    def reset_ledger(self) -> None:
        for name in self._services:
            self._request(name, "DELETE", "ledger")

    def _request(self, service: str, method: str, path: str, body: object = None) -> Any:
        return self._services[service].request(method, path, body).json()
