"""The simulator as a process of its own, and a client for it, for the tests of it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import httpx

from localcloud.threescale.control import ThreescaleControl
from tests.running.simulator import Simulator

_SERIAL = itertools.count(1)
# Longer than any answer takes on a busy machine; a test that wants a call to be given up says so itself.
_PATIENCE_SECONDS = 60


@dataclass
class ThreescaleProcess(Simulator):
    module = "localcloud.threescale.__main__"
    name = "threescale"


class Client:
    """One tenant, as a program with a token sees it. Paths are short: `services` is `/admin/api/services.json`."""

    def __init__(self, url: str, token: str, *, seconds: float = _PATIENCE_SECONDS) -> None:
        self.url, self.token = url, token
        self.http = httpx.Client(base_url=url, auth=("", token), timeout=seconds, verify=False, trust_env=False)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.http.close()

    def call(self, method: str, path: str, body: Any = None, /, **more: Any) -> httpx.Response:
        """JSON both ways."""
        arguments = {"json": body} if body is not None else {}
        where = path if path.startswith("/") else f"/admin/api/{path}.json"
        return self.http.request(method, where, **arguments, **more)

    def get(self, path: str, /, **query: Any) -> Any:
        answer = self.call("GET", path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, /, **body: Any) -> Any:
        answer = self.call("POST", path, body)
        assert answer.status_code == 201, answer.text
        (made,) = answer.json().values()
        return made

    def put(self, path: str, /, **body: Any) -> Any:
        answer = self.call("PUT", path, body)
        assert answer.status_code == 200, answer.text
        (changed,) = answer.json().values()
        return changed

    def delete(self, path: str) -> None:
        answer = self.call("DELETE", path)
        assert (answer.status_code, answer.content) == (200, b""), answer.text

    def list(self, path: str, /, **query: Any) -> list[Any]:
        """The objects of a list, out of their wrappers."""
        found = self.get(path, **query)
        entries = (
            found if isinstance(found, list) else next(value for name, value in found.items() if name != "metadata")
        )
        return [entry if len(entry) != 1 else next(iter(entry.values())) for entry in entries]

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and body of a refusal, JSON where it is JSON."""
        answer = self.call(method, path, body)
        assert answer.status_code >= 400, answer.text
        is_json = answer.content and "json" in answer.headers["Content-Type"]
        return answer.status_code, answer.json() if is_json else answer.text

    def service(self, name: str = "", **more: Any) -> Any:
        """A new product."""
        return self.post("services", name=name or fresh("Product"), **more)

    def backend(self, **more: Any) -> Any:
        """A new backend."""
        return self.post(
            "backend_apis", **{"name": fresh("Backend"), "private_endpoint": "https://api.example.com", **more}
        )

    def hits(self, owner: str) -> Any:
        """The first metric of a product (`services/1`) or backend (`backend_apis/1`)."""
        return self.list(f"{owner}/metrics")[0]

    def used_service(self) -> Any:
        """A product with a backend, so that it can be deployed."""
        service = self.service()
        self.post(f"services/{service['id']}/backend_usages", backend_api_id=self.backend()["id"], path="/")
        return service

    def account(self, **more: Any) -> Any:
        """A new developer account with its admin."""
        name = fresh("dev").lower().replace(" ", "")
        body = {"org_name": name, "username": name, "email": f"{name}@example.com", "password": "secret123"}
        return self.post("signup", **{**body, **more})

    def plan(self, service: Any, **more: Any) -> Any:
        """A new application plan."""
        return self.post(f"services/{service['id']}/application_plans", **{"name": fresh("Plan"), **more})


def fresh(word: str) -> str:
    """A name that no other test uses."""
    return f"{word} {next(_SERIAL)}"


def client_of(control: ThreescaleControl, tenant: str = "3scale") -> Client:
    found = control.tenant(tenant)
    return Client(found.url, found.token)
