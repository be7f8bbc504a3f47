"""The typed client of the machine host, for tests, demos and benchmarks.

Example:
    >>> machines = MachineHost.of(deployment)
    >>> machines.fare(Fare(server="^web-", boot_delay=60))
    >>> machines.view().machine("web-1").state
    <MachineState.BOOTING: 'booting'>
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpx

from localcloud.deployment import Deployment
from localcloud.machines.contract import Fare, Fares, HostView
from localcloud.services import MACHINES


class MachineHost:
    """The machine host, as a test steers it. Calls block."""

    def __init__(self, url: str, timeout_seconds: float = 30) -> None:
        self._http = httpx.Client(base_url=f"{url}/perdure/", timeout=timeout_seconds, trust_env=False)

    @classmethod
    def of(cls, deployment: Deployment) -> Self:
        """That of a deployment."""
        return cls(str(deployment.service(MACHINES).url))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def view(self) -> HostView:
        """Machines and addresses, as they are now."""
        answer = self._http.get("machines")
        answer.raise_for_status()
        return HostView.model_validate_json(answer.content)

    def fare(self, *fares: Fare) -> None:
        """Have machines fare so from now on; the first that speaks of a machine counts. Without any all goes well."""
        answer = self._http.put("fares", content=Fares(fares=fares).model_dump_json())
        answer.raise_for_status()

    def fares(self) -> tuple[Fare, ...]:
        """How machines fare."""
        answer = self._http.get("fares")
        answer.raise_for_status()
        return Fares.model_validate_json(answer.content).fares
