"""Kubeconfigs of service accounts: what a pod would see, for processes of tests that run under real roles."""

from __future__ import annotations

import base64
from contextlib import suppress
from pathlib import Path

import yaml
from waiting import eventually

from engine.errors import Conflict
from engine.kube import SECRET, KubeApi
from engine.kube.json import text

TOKEN_TYPE = "kubernetes.io/service-account-token"


async def kubeconfig_of(kube: KubeApi, admin: Path, namespace: str, account: str, path: Path) -> Path:
    """A kubeconfig with a token of the service account, which must exist, for its only credentials."""
    name = f"{account}-token"
    metadata = {"name": name, "annotations": {"kubernetes.io/service-account.name": account}}
    with suppress(Conflict):
        await kube.create(SECRET, {"metadata": metadata, "type": TOKEN_TYPE}, namespace)

    async def issued() -> bool:
        return bool(text(await kube.get(SECRET, namespace, name), "data", "token"))

    await eventually(issued, "the token controller issues the token")
    token = base64.b64decode(text(await kube.get(SECRET, namespace, name), "data", "token")).decode()
    config = yaml.safe_load(admin.read_text())
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    path.write_text(yaml.safe_dump(config))
    return path
