"""Clients of the simulated clouds' control APIs, below `/perdure/` at each cloud's address; they use no proxies."""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)

_REFUSALS = (400, 404)


class ControlRefusedError(Exception):
    pass


class Closing(ABC):
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        pass


class ControlClient(Closing):
    """A client of a control API; its calls block and are not counted in the cloud's ledger."""

    def __init__(self, url: str, timeout_seconds: float = 30) -> None:
        self.url = url.rstrip("/")
        # Plain HTTP needs no CA certificates, and loading them takes 50 ms of CPU.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        base = f"{self.url}/perdure/"
        self._http = httpx.Client(base_url=base, timeout=timeout_seconds, verify=context, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def request(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Send a request; raises ControlRefusedError for 400 and 404, httpx.HTTPError for other errors or no answer."""
        arguments: dict[str, Any] = {} if body is None else {"json": body}
        response = self._http.request(method, path, **arguments)
        if response.status_code in _REFUSALS:
            raise ControlRefusedError(f"{method} {self.url}/perdure/{path}: {response.text}")
        response.raise_for_status()
        return response

    def _get(self, path: str, model: type[M]) -> M:
        return model.model_validate_json(self.request("GET", path).content)

    def _send(self, method: str, path: str, body: object, model: type[M]) -> M:
        return model.model_validate_json(self.request(method, path, body).content)


class DisturbableCloud(ControlClient):
    def clear(self, fault_id: str | None = None) -> None:
        self.request("DELETE", f"faults/{fault_id}" if fault_id else "faults")

    def reset_ledger(self) -> None:
        self.request("DELETE", "ledger")
