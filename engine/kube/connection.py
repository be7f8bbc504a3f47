"""The address of the API server and our credentials, loaded by the `kubernetes` package.

The credentials come from `KUBECONFIG` or `~/.kube/config`, else from the pod's service account, whose token is read
every minute. On a 401 all credentials are loaded again and the request, which had no effect, is repeated.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from kubernetes.aio import client as kubernetes_client
from kubernetes.aio import config as kubernetes_config
from kubernetes.aio.config import ConfigException

_DEFAULT_KUBECONFIG = "~/.kube/config"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Connection:
    def __init__(self, kubeconfig: str = "", *, content: Mapping[str, object] | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._content = content  # a kubeconfig that is not in a file
        self._configuration = kubernetes_client.Configuration()
        self._loading = asyncio.Lock()
        self._loaded = 0
        self.host = ""
        self.ssl: ssl.SSLContext | bool = True
        self.server_hostname: str | None = None
        self.proxy: str | None = None

    @property
    def generation(self) -> int:
        """How many times credentials were loaded. Of many requests refused at once, only the first loads them again."""
        return self._loaded

    @property
    def local(self) -> bool:
        """Whether the API server is on this machine, so that compression would be a waste."""
        return urlsplit(self.host).hostname in _LOOPBACK

    async def load(self, seen: int = 0) -> None:
        """Load the credentials, unless `generation` is past `seen` already. Raises ConfigException."""
        async with self._loading:
            if self._loaded > seen:
                return
            path = self._kubeconfig or _kubeconfig_of_environment()
            try:
                configuration = await self._configured(path)
                host = configuration.host.rstrip("/")
                tls = _tls(configuration) if host.startswith("https") else True
            # For a file that is no kubeconfig, the package raises whatever its code stumbles on.
            except (OSError, ValueError, TypeError, AttributeError, LookupError, yaml.YAMLError) as error:
                raise ConfigException(
                    f"{path or 'the kubeconfig'} cannot be used: {' '.join(str(error).split())}"
                ) from error
            self._configuration, self.host, self.ssl = configuration, host, tls
            self.server_hostname = configuration.tls_server_name or None
            self.proxy = configuration.proxy or _proxy_of_environment(host)
            self._loaded += 1

    async def _configured(self, path: str) -> kubernetes_client.Configuration:
        configuration = kubernetes_client.Configuration()
        if self._content is not None:
            await kubernetes_config.load_kube_config_from_dict(  # type: ignore[no-untyped-call]
                config_dict=dict(self._content), client_configuration=configuration
            )
        elif path:
            await kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=path, client_configuration=configuration, persist_config=False
            )
        else:
            kubernetes_config.load_incluster_config(  # type: ignore[no-untyped-call]
                client_configuration=configuration
            )
        return configuration

    async def authorization(self) -> str:
        """The Authorization header; empty with a client certificate or without credentials."""
        return await self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization") or ""


def _kubeconfig_of_environment() -> str:
    paths = os.environ.get("KUBECONFIG", "") or _DEFAULT_KUBECONFIG
    return paths if any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep)) else ""


def _tls(configuration: kubernetes_client.Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _proxy_of_environment(host: str) -> str | None:
    parts = urlsplit(host)
    if parts.hostname is None or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)
