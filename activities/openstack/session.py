"""The calls of one project, over one connection with one token (`keystone_connection.py`).

A read that fails quickly is repeated once. Redirects are not followed: they would carry the token elsewhere. Nothing is
logged: bodies contain user data.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qsl, urlsplit

from keystoneauth1 import exceptions
from keystoneauth1.access import AccessInfo

from activities.openstack import call_metrics
from activities.openstack.call_limits import Guard
from activities.openstack.credentials import Credentials
from activities.openstack.errors import Call, no_answer, refusal, unreadable
from activities.openstack.keystone_connection import Connected, Token, body_of, lowered
from domain.refusal import OBSERVE_MODE
from engine import metrics
from engine.errors import Absent, ApiError, Denied, Unavailable
from engine.kube.json import JsonObject, text
from engine.pauses import refuse_if_paused
from engine.settings import Settings

_QUICK_SECONDS = 5.0

Query = Sequence[tuple[str, str]]


class Api(StrEnum):
    NOVA = "nova"
    NEUTRON = "neutron"
    GLANCE = "glance"


_SERVICE_TYPES = {Api.NOVA: "compute", Api.NEUTRON: "network", Api.GLANCE: "image"}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: object


class Project:
    def __init__(self, credentials: Credentials, guard: Guard, settings: Settings) -> None:
        self.name = credentials.project
        self.place = credentials.place
        self.guard = guard
        self._observing = settings.observing
        self._connected = Connected(credentials, settings)

    @property
    def token(self) -> Token:
        return self._connected.token

    def close(self) -> None:
        self._connected.close()

    def get(
        self,
        api: Api,
        kind: str,
        path: str,
        *,
        what: str,
        holds: str,
        operation: str = "get",
        query: Query = (),
        version: str = "",
    ) -> object:
        """The object or list at the key `holds` of the answer; raises Absent if the object does not exist."""
        return self._held(_Request(self._call(api, kind, operation, what), "GET", path, query, version=version), holds)

    def pages(self, api: Api, kind: str, path: str, plural: str, *, query: Query = ()) -> list[JsonObject]:
        """All objects, counted as one call. A query to Neutron names the project, because Neutron shows administrators
        the objects of all projects.
        """
        call = self._call(api, kind, "list", ", ".join(f"{name}={value}" for name, value in query)[:200])
        found: list[JsonObject] = []
        rest, first = query, True
        asked: set[str] = set()
        while True:
            own = first and api is Api.NEUTRON
            answer = self._object(_Request(call, "GET", path, rest, counted=first, own=own))
            first = False
            objects = answer.get(plural)
            if not isinstance(objects, list):
                raise unreadable(call, f"it has no {plural}")
            found += [each for each in objects if isinstance(each, dict)]
            following = _next(answer, plural)
            if not following or not objects:
                return found
            if following in asked:
                raise unreadable(call, "its pages repeat")
            asked.add(following)
            # Only the link's query is used: a service behind a proxy may link to its internal host.
            rest = tuple(parse_qsl(urlsplit(following).query, keep_blank_values=True))

    def post(
        self, api: Api, kind: str, path: str, body: Mapping[str, object], *, what: str, holds: str, version: str = ""
    ) -> object:
        return self._held(
            _Request(self._call(api, kind, "create", what), "POST", path, body=body, version=version), holds
        )

    def put(self, api: Api, kind: str, path: str, body: Mapping[str, object], *, what: str, holds: str) -> object:
        return self._held(_Request(self._call(api, kind, "update", what), "PUT", path, body=body), holds)

    def delete(self, api: Api, kind: str, path: str, *, what: str) -> bool:
        """False if the object was gone already."""
        try:
            self._send(_Request(self._call(api, kind, "delete", what), "DELETE", path))
        except Absent:
            return False
        return True

    def _call(self, api: Api, kind: str, operation: str, what: str) -> Call:
        return Call(api=api.value, object=kind, operation=operation, what=what, project=self.name)

    def _held(self, request: _Request, holds: str) -> object:
        found = self._object(request).get(holds)
        if not isinstance(found, list) and not text(found, "id"):
            raise unreadable(request.call, f"it has no {holds}")
        return found

    def _object(self, request: _Request) -> JsonObject:
        answer = self._send(request)
        if not isinstance(answer.body, dict):
            raise unreadable(request.call, "it is not a JSON object")
        return answer.body

    def _send(self, request: _Request) -> Answer:
        if self._observing and request.method != "GET":
            raise Denied(f"{request.call}: not sent, Perdure runs in observe mode", code=OBSERVE_MODE)
        if request.method != "GET":
            refuse_if_paused(request.call)
        with self.guard.calling():
            try:
                return self._ask(request)
            except ApiError as error:
                call_metrics.refused(request.call, error)
                raise

    def _ask(self, request: _Request) -> Answer:
        access = self.token.access()
        began = time.monotonic()
        try:
            answer = self._exchange(request, access)
        except Unavailable:
            if request.method != "GET" or time.monotonic() - began > _QUICK_SECONDS:
                raise
            answer = self._exchange(request, access)
        if answer.status == 401:
            answer = self._exchange(request, self.token.renew(access))
        if not 200 <= answer.status < 300:
            raise refusal(request.call, answer.status, answer.body, answer.headers)
        return answer

    def _exchange(self, request: _Request, access: AccessInfo) -> Answer:
        service = self._connected.service(request.call, _SERVICE_TYPES[Api(request.call.api)], access)
        own = [("project_id", access.project_id)] if request.own and access.project_id else []
        if request.counted:
            call_metrics.CALLS.count(request.call)
        call = request.call
        called = f"openstack {call.api} {call.operation} {call.object}"
        with metrics.requesting(request.method, urlsplit(str(service.endpoint_override)).netloc, called) as metric:
            try:
                response = service.request(
                    request.path,
                    request.method,
                    json=request.body,
                    params=[*request.query, *own],
                    headers={**request.headers, "X-Auth-Token": access.auth_token},
                    authenticated=False,
                    raise_exc=False,
                    log=False,
                    redirect=False,
                )
                metric.status = response.status_code
                return Answer(response.status_code, lowered(response.headers), body_of(response))
            except (exceptions.ClientException, OSError) as error:  # requests' own errors are OSErrors
                raise no_answer(request.call, error) from None


@dataclass(frozen=True, slots=True)
class _Request:
    call: Call
    method: str
    path: str
    query: Query = ()
    body: Mapping[str, object] | None = None
    version: str = ""  # the microversion of Nova
    counted: bool = True  # False for further pages of a list
    own: bool = False  # only the project's own objects are listed

    @property
    def headers(self) -> Mapping[str, str]:
        if self.method == "DELETE":
            return {}
        version = {"OpenStack-API-Version": f"compute {self.version}", "X-OpenStack-Nova-API-Version": self.version}
        return {"Accept": "application/json", **(version if self.version else {})}


def _next(answer: JsonObject, plural: str) -> str:
    links = answer.get(f"{plural}_links")
    found = [text(each, "href") for each in links if text(each, "rel") == "next"] if isinstance(links, list) else []
    return found[0] if found else text(answer, "next")  # Glance's way
