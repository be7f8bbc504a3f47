"""Who calls OpenStack: one token per credential and process, and the calls of one project.

A token is asked for when the first call needs it, used by every thread, renewed two minutes before it ends, and once
when a service answers 401: nobody acts on a request whose token was refused, so that repeating it repeats no effect.
Credentials that Keystone refuses are not tried again for a minute, since it may lock a user out who is refused too
often.

No service is asked for its versions. The catalog that comes with the token has the addresses (public interface, the
Secret's region): Nova's is used as it is, Neutron's and Glance's with their only versions, 2.0 and 2, behind it. Nova
is spoken to in its first microversion, 2.1, unless a call says another.

A read that fails quickly is repeated once; everything else is left to the activity's next attempt, which looks first
what has happened. Redirects are not followed: they would carry the token elsewhere. Nothing is logged here, since the
library's log has the bodies of requests, and with them user data.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

import requests
from keystoneauth1 import exceptions
from keystoneauth1.access import AccessInfo
from keystoneauth1.identity import v3
from keystoneauth1.session import Session, TCPKeepAliveAdapter

from activities.openstack import counting
from activities.openstack.credentials import Credentials
from activities.openstack.errors import Call, no_answer, refusal, shortened, unreadable
from activities.openstack.guard import Guard
from engine import metrics
from engine.errors import Absent, ApiError, Denied, Invalid, Unavailable
from engine.kube.json import JsonObject, text
from engine.settings import Settings

NO_ENDPOINT = "NoEndpoint"

_LOCKED_OUT_SECONDS = 60.0
_QUICK_SECONDS = 5.0

Query = Sequence[tuple[str, str]]


class Api(StrEnum):
    """The APIs that are called, by the names that the replaced system's metrics have."""

    NOVA = "nova"
    NEUTRON = "neutron"
    GLANCE = "glance"


_SERVICE_TYPES = {Api.NOVA: "compute", Api.NEUTRON: "network", Api.GLANCE: "image"}
_VERSIONS = {Api.NOVA: "", Api.NEUTRON: "/v2.0", Api.GLANCE: "/v2"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: object


class Token:
    """A credential's token and catalog: one at a time, for all threads."""

    def __init__(self, session: Session, credentials: Credentials, timeout_seconds: float) -> None:
        self._session = session
        self._timeout_seconds = timeout_seconds
        self._call = Call(api="keystone", object="token", operation="create", project=credentials.project)
        self._lock = threading.Lock()
        self._refused: tuple[float, Denied] | None = None
        self._plugin = v3.Password(
            credentials.auth_url,
            username=credentials.username,
            password=credentials.password,
            user_domain_id=credentials.domain_id or None,
            user_domain_name=credentials.domain_name or None,
            project_id=credentials.project_id or None,
            project_name=credentials.project_name or None,
            # A project's id is unique, its name only within its domain.
            project_domain_id=credentials.domain_id or None if not credentials.project_id else None,
            project_domain_name=credentials.domain_name or None if not credentials.project_id else None,
        )

    @property
    def refused(self) -> bool:
        """True while Keystone does not take the credentials."""
        return self._refused is not None and time.monotonic() < self._refused[0]

    def access(self) -> AccessInfo:
        """The token of the moment, with its catalog.

        Raises:
            Denied: Keystone does not take the credentials.
            Unavailable: Keystone gives no answer.
        """
        with self._held():
            if self._refused is not None and time.monotonic() < self._refused[0]:
                known = self._refused[1]
                raise Denied(known.message, code=known.code)
            return self._asked()

    def renew(self, used: AccessInfo) -> AccessInfo:
        """Another token than the one that was refused, unless another thread has it already."""
        with self._held():
            if self._plugin.auth_ref is used:
                self._plugin.invalidate()
        return self.access()

    def _asked(self) -> AccessInfo:
        known = self._plugin.auth_ref
        try:
            access = self._plugin.get_access(self._session)
        except exceptions.ClientException as error:
            counting.TOKENS.inc()
            # Not chained: what Keystone was sent hangs on its exception.
            mapped = _keystones(self._call, error)
            counting.refused(self._call, mapped)
            if isinstance(mapped, Denied):
                self._refused = (time.monotonic() + _LOCKED_OUT_SECONDS, mapped)
            raise mapped from None
        if access is not known:
            counting.TOKENS.inc()
            self._refused = None
        return access

    @contextmanager
    def _held(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=self._timeout_seconds):
            raise Unavailable(
                f"{self._call}: another call has been asking for {self._timeout_seconds:g} s", code="Busy"
            )
        try:
            yield
        finally:
            self._lock.release()


class Project:
    """The calls of one project under one credential. Thread-safe."""

    def __init__(self, credentials: Credentials, guard: Guard, settings: Settings) -> None:
        self.name = credentials.project
        self.place = credentials.place
        self._region = credentials.region
        self._guard = guard
        self._observing = settings.observing
        pool = requests.Session()
        for scheme in ("https://", "http://"):
            pool.mount(scheme, TCPKeepAliveAdapter(pool_maxsize=settings.worker_openstack_calls_per_project))
        timeout = settings.loadbalancers_openstack_timeout.total_seconds()
        self._pool = pool
        self._session = Session(
            session=pool, verify=credentials.ca_file or True, timeout=timeout, redirect=False, user_agent="perdure"
        )
        self.token = Token(self._session, credentials, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections; calls under way go on."""
        self._pool.close()

    def get(
        self, api: Api, kind: str, path: str, *, what: str, operation: str = "get", query: Query = (), version: str = ""
    ) -> JsonObject:
        """GET: the answer's object. Raises Absent where there is none."""
        return self._object(self._call(api, kind, operation, what), "GET", path, query=query, version=version)

    def pages(self, api: Api, kind: str, path: str, plural: str, *, query: Query = ()) -> list[JsonObject]:
        """All objects of a list, page after page, counted as one call.

        Neutron lists those of the token's project alone, also for an administrator, who would see everybody's.
        """
        call = self._call(api, kind, "list", ", ".join(f"{name}={value}" for name, value in query)[:200])
        found: list[JsonObject] = []
        rest, first = query, True
        while True:
            answer = self._object(call, "GET", path, query=rest, first=first, own=first and api is Api.NEUTRON)
            first = False
            objects = answer.get(plural)
            if not isinstance(objects, list):
                raise unreadable(call, f"it has no {plural}")
            found += [each for each in objects if isinstance(each, dict)]
            following = _next(answer, plural)
            if not following or not objects:
                return found
            # Its host is not believed: proxies make services give inner addresses.
            rest = tuple(parse_qsl(urlsplit(following).query, keep_blank_values=True))

    def post(
        self, api: Api, kind: str, path: str, body: Mapping[str, object], *, what: str, version: str = ""
    ) -> JsonObject:
        """POST: the answer's object."""
        return self._object(self._call(api, kind, "create", what), "POST", path, body=body, version=version)

    def put(self, api: Api, kind: str, path: str, body: Mapping[str, object], *, what: str) -> JsonObject:
        """PUT: the answer's object."""
        return self._object(self._call(api, kind, "update", what), "PUT", path, body=body)

    def delete(self, api: Api, kind: str, path: str, *, what: str) -> bool:
        """DELETE: False if it was gone already."""
        try:
            self._send(_Request(self._call(api, kind, "delete", what), "DELETE", path))
        except Absent:
            return False
        return True

    def _call(self, api: Api, kind: str, operation: str, what: str) -> Call:
        return Call(api=api.value, object=kind, operation=operation, what=what, project=self.name)

    def _object(
        self,
        call: Call,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Mapping[str, object] | None = None,
        version: str = "",
        first: bool = True,
        own: bool = False,
    ) -> JsonObject:
        headers = {"Accept": "application/json"}
        if version:
            headers["OpenStack-API-Version"] = f"compute {version}"
            headers["X-OpenStack-Nova-API-Version"] = version
        answer = self._send(_Request(call, method, path, query, body, headers, counted=first, own=own))
        if not isinstance(answer.body, dict):
            raise unreadable(call, "it is no JSON object")
        return answer.body

    def _send(self, request: _Request) -> Answer:
        if self._observing and request.method != "GET":
            raise Denied(f"{request.call}: not sent, Perdure runs in observe mode", code="ObserveMode")
        with self._guard.calling():
            try:
                return self._ask(request)
            except ApiError as error:
                counting.refused(request.call, error)
                raise

    def _ask(self, request: _Request) -> Answer:
        """Send it; once more where that repeats no effect and may help."""
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
        """One request, one answer."""
        url = self._endpoint(request.call, access) + request.path
        own = [("project_id", access.project_id)] if request.own and access.project_id else []
        if request.counted:
            counting.CALLS.count(request.call)
        with metrics.requesting(request.method, urlsplit(url).netloc) as told:
            try:
                response = self._session.request(
                    url,
                    request.method,
                    json=request.body,
                    params=[*request.query, *own],
                    headers={**request.headers, "X-Auth-Token": access.auth_token},
                    authenticated=False,
                    raise_exc=False,
                    log=False,
                    redirect=False,
                )
                told.status = response.status_code
                return Answer(response.status_code, _lowered(response.headers), _body(response))
            except (exceptions.ClientException, requests.RequestException) as error:
                raise no_answer(request.call, error) from None

    def _endpoint(self, call: Call, access: AccessInfo) -> str:
        """The API's address, without a slash at its end."""
        api = Api(call.api)
        try:
            found = access.service_catalog.url_for(
                service_type=_SERVICE_TYPES[api], interface="public", region_name=self._region or None
            )
        except exceptions.CatalogException as error:
            raise Invalid(
                f"{call}: {shortened(str(error))}. Look at the region in the Secret and at the cloud's catalog.",
                code=NO_ENDPOINT,
            ) from None
        bare = str(found).rstrip("/")
        return bare if bare.endswith(_VERSIONS[api]) else bare + _VERSIONS[api]


@dataclass(frozen=True, slots=True)
class _Request:
    call: Call
    method: str
    path: str
    query: Query = ()
    body: Mapping[str, object] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    counted: bool = True
    own: bool = False


def _keystones(call: Call, error: exceptions.ClientException) -> ApiError:
    if not isinstance(error, exceptions.HttpError):
        return no_answer(call, error)
    response = error.response
    if response is None:
        return refusal(call, error.http_status or 500, "", {})
    mapped = refusal(call, response.status_code, _body(response), _lowered(response.headers))
    # An unknown project or domain is told as not found; the decision must not take it for an object of ours.
    return Denied(mapped.message, code=mapped.code) if isinstance(mapped, Absent) else mapped


def _body(response: requests.Response) -> object:
    if not response.content:
        return {}
    try:
        return response.json()
    except ValueError:
        return response.text[:2000]


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers.items()}


def _next(answer: JsonObject, plural: str) -> str:
    """The address of a list's next page, empty if this was the last."""
    links = answer.get(f"{plural}_links")
    found = [text(each, "href") for each in links if text(each, "rel") == "next"] if isinstance(links, list) else []
    return found[0] if found else text(answer, "next")  # Glance's way
