"""Temporal's client for tests: as a process of the deployment reaches it, with its certificate and its keys, if any."""

from __future__ import annotations

import ssl

import httpx
from temporalio.client import Client
from temporalio.envconfig import ClientConfig

from engine.encryption import data_converter
from engine.settings import Settings
from localcloud.deployment import Deployment


async def temporal_of(deployment: Deployment) -> Client:
    """A client of the deployment's Temporal."""
    env = deployment.env()
    settings = Settings().model_copy(update={"temporal_keys": env.get("PERDURE_TEMPORAL_KEYS", "")})
    found = ClientConfig.load_client_connect_config(disable_file=True, override_env_vars=env)
    return await Client.connect(**found, data_converter=data_converter(settings))


def temporal_http(deployment: Deployment) -> httpx.Client:
    """A client of its HTTP API."""
    env, port = deployment.env(), deployment.state.ports()["temporal-http"]
    authority = env.get("TEMPORAL_TLS_SERVER_CA_CERT_PATH")
    if authority is None:
        return httpx.Client(base_url=f"http://127.0.0.1:{port}", verify=False, timeout=10)
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(env["TEMPORAL_TLS_CLIENT_CERT_PATH"], env["TEMPORAL_TLS_CLIENT_KEY_PATH"])
    return httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=context, trust_env=False, timeout=10)
