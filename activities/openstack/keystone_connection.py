"""The connection, token, catalog and services of one set of credentials.

All threads share one token. It is renewed two minutes before it expires, and once after a 401: the refused request had
no effect and is repeated. Refused credentials are not tried again for a minute, because Keystone may lock a user out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import requests
from keystoneauth1 import exceptions
from keystoneauth1.access import AccessInfo
from keystoneauth1.identity import v3
from keystoneauth1.session import Session, TCPKeepAliveAdapter

from activities.openstack import call_metrics
from activities.openstack.credentials import Credentials
from activities.openstack.errors import Call, no_answer, refusal, shortened
from engine.errors import Absent, ApiError, Denied, Invalid, Unavailable
from engine.settings import Settings

if TYPE_CHECKING:
    from activities.openstack.sdk import Service

NO_ENDPOINT = "NoEndpoint"
CALL_TIMEOUT = timedelta(seconds=20)
# Fewer than a worker's concurrent OpenStack activities, so that one hanging project cannot block all of them.
CALLS_PER_PROJECT = 16

_LOCKED_OUT_SECONDS = 60.0
_VERSIONS = {"compute": "", "network": "/v2.0", "image": "/v2"}


class Connected:
    def __init__(self, credentials: Credentials, settings: Settings) -> None:
        from activities.openstack import sdk

        self._adapter = sdk.adapter
        self._region = credentials.region
        self._pool = _pool(CALLS_PER_PROJECT)
        timeout = (settings.call_timeout or CALL_TIMEOUT).total_seconds()
        plugin = _password(credentials)
        self._connection = sdk.connection(credentials, plugin, self._pool, timeout)
        self._services: dict[tuple[str, str], Service] = {}
        self._lock = threading.Lock()
        self.token = Token(self._connection.session, plugin, credentials, timeout)

    def close(self) -> None:
        self._connection.close()
        self._pool.close()

    def service(self, call: Call, service_type: str, access: AccessInfo) -> Service:
        """The adapter of a service, at the address in the token's catalog; raises Invalid if there is no address."""
        endpoint = self._endpoint(call, service_type, access)
        with self._lock:
            if (service_type, endpoint) not in self._services:
                self._services[(service_type, endpoint)] = self._adapter(self._connection, service_type, endpoint)
            return self._services[(service_type, endpoint)]

    def _endpoint(self, call: Call, service_type: str, access: AccessInfo) -> str:
        try:
            found = access.service_catalog.url_for(
                service_type=service_type, interface="public", region_name=self._region or None
            )
        except exceptions.CatalogException as error:
            raise Invalid(
                f"{call}: {shortened(str(error))}. Check the region in the Secret and the cloud's catalog.",
                code=NO_ENDPOINT,
            ) from None
        bare = str(found).rstrip("/")
        return bare if bare.endswith(_VERSIONS[service_type]) else bare + _VERSIONS[service_type]


class Token:
    def __init__(self, session: Session, plugin: v3.Password, credentials: Credentials, timeout_seconds: float) -> None:
        self._session = session
        self._plugin = plugin
        self._timeout_seconds = timeout_seconds
        self._call = Call(api="keystone", object="token", operation="create", project=credentials.project)
        self._lock = threading.Lock()
        self._refused: tuple[float, Denied] | None = None

    @property
    def refused(self) -> bool:
        return self._refused is not None and time.monotonic() < self._refused[0]

    def access(self) -> AccessInfo:
        """The token and catalog; raises Denied if Keystone refuses the credentials."""
        with self._held():
            if self._refused is not None and time.monotonic() < self._refused[0]:
                known = self._refused[1]
                raise Denied(known.message, code=known.code)
            return self._requested()

    def renew(self, used: AccessInfo) -> AccessInfo:
        """Replace a refused token, unless another thread has replaced it."""
        with self._held():
            if self._plugin.auth_ref is used:
                self._plugin.invalidate()
        return self.access()

    def _requested(self) -> AccessInfo:
        known = self._plugin.auth_ref
        try:
            access = self._plugin.get_access(self._session)
        except (exceptions.ClientException, OSError) as error:
            call_metrics.TOKENS.inc()
            # Not chained: Keystone's exception has the request, and with it the password.
            mapped = _keystones(self._call, error)
            call_metrics.refused(self._call, mapped)
            if isinstance(mapped, Denied):
                self._refused = (time.monotonic() + _LOCKED_OUT_SECONDS, mapped)
            raise mapped from None
        if access is not known:
            call_metrics.TOKENS.inc()
            self._refused = None
        return access

    @contextmanager
    def _held(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=self._timeout_seconds):
            raise Unavailable(
                f"{self._call}: not sent, because another request for a token has had no answer for "
                f"{self._timeout_seconds:g} s",
                code="Busy",
            )
        try:
            yield
        finally:
            self._lock.release()


def _pool(most: int) -> requests.Session:
    pool = requests.Session()
    for scheme in ("https://", "http://"):
        pool.mount(scheme, TCPKeepAliveAdapter(pool_maxsize=most))
    return pool


def _password(credentials: Credentials) -> v3.Password:
    return v3.Password(
        credentials.auth_url,
        username=credentials.username,
        password=credentials.password,
        user_domain_id=credentials.domain_id or None,
        user_domain_name=credentials.domain_name or None,
        project_id=credentials.project_id or None,
        project_name=credentials.project_name or None,
        # A project's id is unique, its name only in its domain.
        project_domain_id=credentials.domain_id or None if not credentials.project_id else None,
        project_domain_name=credentials.domain_name or None if not credentials.project_id else None,
    )


def _keystones(call: Call, error: Exception) -> ApiError:
    if not isinstance(error, exceptions.HttpError):
        return no_answer(call, error)
    response = error.response
    if response is None:
        return refusal(call, error.http_status or 500, "", {})
    mapped = refusal(call, response.status_code, body_of(response), lowered(response.headers))
    # Keystone reports an unknown project or domain as not found, which must not look like a missing object of ours.
    return Denied(mapped.message, code=mapped.code) if isinstance(mapped, Absent) else mapped


def body_of(response: requests.Response) -> object:
    if not response.content:
        return {}
    try:
        return cast(object, response.json())
    except ValueError:
        return response.text[:2000]


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers.items()}
