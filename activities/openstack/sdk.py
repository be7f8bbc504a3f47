"""The parts of openstacksdk in use: a connection's configuration, authentication and session, an adapter per service.

Importing this module takes a fifth of a second and 15 MB, so it is imported only for the first connection.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from openstack.config.cloud_region import CloudRegion
from openstack.config.defaults import get_defaults
from openstack.connection import Connection
from openstack.proxy import Proxy

from activities.openstack.credentials import Credentials


class Service(Proxy):
    """One service's adapter, without the SDK's own caching of requests."""

    def request(
        self,
        url: str,
        method: str,
        error_message: str | None = None,
        raise_exc: bool = False,
        connect_retries: int | None = None,
        global_request_id: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> requests.Response:
        return Adapter.request(self, url, method, raise_exc=raise_exc, **kwargs)


def connection(credentials: Credentials, plugin: v3.Password, pool: requests.Session, timeout: float) -> Connection:
    settings: dict[str, Any] = {
        **get_defaults(),
        "interface": "public",
        "api_timeout": timeout,
        "image_status_code_retries": 0,  # five by default; an activity's next attempt is enough
        "auth": {},  # the plugin exists already, and the password must not be stored twice
    }
    settings.update({"cacert": credentials.ca_file} if credentials.ca_file else {"verify": True})
    cloud = CloudRegion(
        name=credentials.project,
        region_name=credentials.region or None,
        config=settings,
        auth_plugin=plugin,
        # Redirects would carry the token elsewhere.
        session_constructor=cast(type[Session], partial(Session, session=pool, redirect=False)),
        app_name="perdure",
        force_ipv4=True,  # else the SDK scans all interfaces for a field that is never read
    )
    return Connection(config=cloud)


def adapter(of: Connection, service_type: str, endpoint: str) -> Service:
    of.config.set_service_value("endpoint_override", service_type, endpoint)
    return of.config.get_session_client(service_type, constructor=Service)
