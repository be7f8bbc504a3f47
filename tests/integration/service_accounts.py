"""Roles, and kubeconfigs of service accounts: what a pod would see, for what tests run under real roles."""

from __future__ import annotations

import base64
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from waiting import eventually

from domain.accounts import ACCOUNT_POOL
from domain.identity import Kind
from engine.errors import Conflict
from engine.kube import NAMESPACE, SECRET, KubeApi
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


def _kind(name: str, group: str, plural: str) -> Kind:
    return Kind(name=name, group=group, version="v1", plural=plural, area="")


RBAC_GROUP = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io"
POLICY = _kind("ValidatingAdmissionPolicy", ADMISSION, "validatingadmissionpolicies")
KINDS = {
    kind.name: kind
    for kind in (
        POLICY,
        _kind("ValidatingAdmissionPolicyBinding", ADMISSION, "validatingadmissionpolicybindings"),
        _kind("ClusterRole", RBAC_GROUP, "clusterroles"),
        _kind("ClusterRoleBinding", RBAC_GROUP, "clusterrolebindings"),
        _kind("Role", RBAC_GROUP, "roles"),
        _kind("RoleBinding", RBAC_GROUP, "rolebindings"),
        _kind("ServiceAccount", "", "serviceaccounts"),
        _kind("Deployment", "apps", "deployments"),
        ACCOUNT_POOL,
        NAMESPACE,
        SECRET,
    )
}


DEPLOY = Path(__file__).parents[2] / "deploy"


def documents(*files: str) -> list[dict[str, Any]]:
    """The objects in files of deploy/."""
    return [obj for file in files for obj in yaml.safe_load_all((DEPLOY / file).read_text())]


async def apply(api: KubeApi, obj: dict[str, Any]) -> None:
    """Create an object as its file has it, or update the existing one."""
    kind, metadata = KINDS[obj["kind"]], obj["metadata"]
    try:
        await api.create(kind, obj, metadata.get("namespace", ""))
    except Conflict:
        body = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}
        await api.patch(kind, metadata.get("namespace", ""), metadata["name"], body)
