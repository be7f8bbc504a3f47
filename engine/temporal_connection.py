"""The connection to Temporal: TLS, client certificates and API keys, all of which may change while it is in use.

Address and credentials come from Temporal's own environment variables and profiles (`temporalio.envconfig`). An API key
may also come from a file (`PERDURE_TEMPORAL_API_KEY_FILE`), because a process's variables never change. Long-running
processes read all of them again every 30 s. A new API key is used from the next call on. New certificates lead to a new
connection under the same client: workers switch to it, and calls under way end on the old connection.

If changed credentials do not work, this is logged, the old connection stays, and the credentials are tried again 30 s
later.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from google.protobuf.message import Message
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.service import ConnectConfig, ServiceClient, TLSConfig

from engine.settings import Settings

DEFAULT_ADDRESS = "localhost:7233"
REREAD = timedelta(seconds=30)

log = logging.getLogger(__name__)


class TemporalRefused(RuntimeError):  # noqa: N818
    """No connection. The message says what was tried, what came back, and what a person can do."""


class Connection(ServiceClient):
    def __init__(self, config: ConnectConfig, made: ServiceClient, namespace: str) -> None:
        super().__init__(config)
        self.namespace = namespace
        self._made = made
        self._followers: list[Callable[[], None]] = []
        self._keeping: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, settings: Settings, **details: Any) -> Connection:
        """Connect to Temporal. `details` are further fields of `ConnectConfig`; raises TemporalRefused."""
        read = read_config(settings)
        namespace = read.get("namespace", "default")
        config = ConnectConfig(**_without_namespace(read), **details)
        return cls(config, await _connected(config), namespace)

    @property
    def worker_service_client(self) -> Any:
        """The client for the SDK's workers, which have to be notified when it is replaced (`follow`)."""
        return self._made.worker_service_client

    def update_rpc_metadata(self, metadata: Mapping[str, str | bytes]) -> None:
        self._made.update_rpc_metadata(metadata)

    def update_api_key(self, api_key: str | None) -> None:
        self._made.update_api_key(api_key)

    async def _rpc_call(self, rpc: str, req: Message, resp_type: Any, **details: Any) -> Any:
        return await self._made._rpc_call(rpc, req, resp_type, **details)

    def follow(self, follower: Callable[[], None]) -> None:
        self._followers.append(follower)

    def keep(self, settings: Settings, *, every: timedelta = REREAD) -> None:
        """Check for renewed certificates and API keys, until the event loop ends."""
        self._keeping = self._keeping or asyncio.create_task(
            self._keep(settings, every), name="renew the connection to Temporal"
        )

    async def _keep(self, settings: Settings, every: timedelta) -> None:
        while True:
            await asyncio.sleep(every.total_seconds())
            try:
                await self.renew(settings)
            except TemporalRefused as refused:
                log.warning("changed credentials cannot be used; the old connection to Temporal stays: %s", refused)

    async def renew(self, settings: Settings) -> bool:
        """Use changed credentials; True if any have changed. Raises TemporalRefused if they cannot be used."""
        read = read_config(settings)
        config = dataclasses.replace(self.config, **{"api_key": None, "tls": None, **_proofs(read)})
        if (config.tls, config.api_key) == (self.config.tls, self.config.api_key):
            return False
        if config.tls == self.config.tls and config.api_key:
            self.update_api_key(config.api_key)
            log.info("Temporal is called with the new API key from now on")
        else:
            self._made = await _connected(config)
            log.info("connected to Temporal again, with %s", _described(config))
        self.config = config
        for follower in self._followers:
            follower()
        return True


def read_config(settings: Settings) -> ClientConnectConfig:
    """Read address and credentials from variables, profiles and files.

    Raises:
        TemporalRefused: a file cannot be read, or the variables contradict each other.
    """
    try:
        found = ClientConfig.load_client_connect_config()
        if settings.temporal_api_key_file:
            found["api_key"] = Path(settings.temporal_api_key_file).read_text().strip()
    except (OSError, RuntimeError, ValueError) as error:
        raise TemporalRefused(f"the settings of the connection to Temporal cannot be read: {error}") from error
    if found.get("api_key"):
        found.setdefault("tls", True)
    found.setdefault("target_host", DEFAULT_ADDRESS)
    tls = found.get("tls")
    if isinstance(tls, TLSConfig) and bool(tls.client_cert) != bool(tls.client_private_key):
        raise TemporalRefused(
            "a client certificate was given without its key, or a key without its certificate: set both "
            "TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH"
        )
    return found


def temporal_address() -> str:
    return str(ClientConfig.load_client_connect_config().get("target_host", DEFAULT_ADDRESS))


async def _connected(config: ConnectConfig) -> ServiceClient:
    try:
        return await ServiceClient.connect(config)
    except ValueError as error:
        raise TemporalRefused(f"{config.target_host!r} is no address, such as host:7233: {error}") from error
    except RuntimeError as error:
        message, credentials = str(error), _described(config)
        meaning = meaning_of(message, by_tls=_by_tls(config))
        raise TemporalRefused(
            f"Temporal at {config.target_host} {meaning}; tried with {credentials}: {message}"
        ) from error


_WANTS_CERTIFICATE = "closes the connection: it requires a client certificate of an authority that it trusts"
_WANTS_TLS = "seems to require TLS (TEMPORAL_TLS=true)"
# Parts of the SDK's messages, and their meaning; the first match is used.
_MEANINGS = (
    ("Unauthenticated", "refuses the API key"),
    ("PermissionDenied", "accepts the credentials, but denies access"),
    ("UnknownIssuer", "has a certificate of an unknown authority (TEMPORAL_TLS_SERVER_CA_CERT_PATH)"),
    ("BadSignature", "has a certificate of an unknown authority (TEMPORAL_TLS_SERVER_CA_CERT_PATH)"),
    ("NotValidForName", "has a certificate for another name (TEMPORAL_TLS_SERVER_NAME)"),
    ("Expired", "has an expired certificate, or refuses the client certificate as expired"),
    # In TLS 1.3 a server checks our certificate after the handshake has succeeded on our side. If it refuses the
    # certificate, it only closes the connection.
    ("connection closed", _WANTS_CERTIFICATE),
    ("fatal alert", _WANTS_CERTIFICATE),
    ("h2 protocol error", _WANTS_TLS),
    ("InvalidContentType", "does not use TLS (TEMPORAL_TLS=false)"),
)
# A server that refuses the handshake sends an alert and closes; either may be noticed first.
_HUNG_UP = ("BrokenPipe", "ConnectionReset", "connection closed", "connection was not ready")


def meaning_of(message: str, *, by_tls: bool) -> str:
    hung_up = any(part in message for part in _HUNG_UP)
    if hung_up and not by_tls:
        return _WANTS_TLS
    known = next((meaning for part, meaning in _MEANINGS if part in message), "")
    return known or (f"{_WANTS_CERTIFICATE}, it seems" if hung_up else "does not answer")


def _proofs(read: ClientConnectConfig) -> dict[str, Any]:
    return {name: value for name, value in read.items() if name in ("api_key", "tls")}


def _without_namespace(read: ClientConnectConfig) -> dict[str, Any]:
    return {name: value for name, value in read.items() if name != "namespace"}


def _by_tls(config: ConnectConfig) -> bool:
    return bool(config.tls or (config.tls is None and config.api_key))


def _described(config: ConnectConfig) -> str:
    tls = config.tls
    parts = ["TLS" if _by_tls(config) else "no TLS"]
    if isinstance(tls, TLSConfig):
        parts += ["a client certificate"] if tls.client_cert else []
        parts += ["the given authority"] if tls.server_root_ca_cert else []
    parts += ["an API key"] if config.api_key else []
    return ", ".join(parts)
