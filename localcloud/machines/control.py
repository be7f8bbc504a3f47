"""The typed client of the machine host, for tests, demos and benchmarks.

Example:
    >>> machines = MachineHost.of(deployment)
    >>> machines.fare(Fare(server="^web-", boot_delay=60))
    >>> machines.view().machine("web-1").state
    <MachineState.BOOTING: 'booting'>
"""

from __future__ import annotations

from typing import Self

from localcloud.control import ControlClient
from localcloud.deployment import Deployment
from localcloud.machines.contract import Fare, Fares, HostView
from localcloud.services import MACHINES


class MachineHost(ControlClient):
    """The machine host, as a test steers it. Calls block."""

    @classmethod
    def of(cls, deployment: Deployment) -> Self:
        """That of a deployment."""
        return cls(str(deployment.service(MACHINES).url))

    def view(self) -> HostView:
        """Machines and addresses, as they are now."""
        return self._get("machines", HostView)

    def fare(self, *fares: Fare) -> None:
        """Have machines fare so from now on; the first that speaks of a machine counts. Without any all goes well."""
        self.request("PUT", "fares", Fares(fares=fares).model_dump(mode="json"))

    def fares(self) -> tuple[Fare, ...]:
        """How machines fare."""
        return self._get("fares", Fares).fares
