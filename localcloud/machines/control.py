"""The typed client of the machine host."""

from __future__ import annotations

from typing import Self

from localcloud.control import ControlClient
from localcloud.deployment import Deployment
from localcloud.machines.contract import Fare, Fares, HostView
from localcloud.services import MACHINES


class MachineHost(ControlClient):
    @classmethod
    def of(cls, deployment: Deployment) -> Self:
        return cls(str(deployment.service(MACHINES).url))

    def view(self) -> HostView:
        return self._get("machines", HostView)

    def fare(self, *fares: Fare) -> None:
        self.request("PUT", "fares", Fares(fares=fares).model_dump(mode="json"))

    def fares(self) -> tuple[Fare, ...]:
        return self._get("fares", Fares).fares
