"""The cluster and Temporal as tests look at them: blocking, and unmoved by servers that are dead for the moment."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable
from typing import Any

import httpx

from domain.threescale import CUSTOM_KINDS
from localcloud.deployment import Deployment
from localcloud.kubernetes.certificates import Certificates
from tests.running.temporal_client import temporal_http

ACCOUNTS = "/apis/aws.managed.openshift.io/v1alpha1"
CLAIMS = "/apis/poolboy.gpte.redhat.com/v1"
LOAD_BALANCERS = "/apis/yawol.stackit.cloud/v1beta1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
THREESCALE = {kind.plural: f"/apis/{kind.api_version}" for kind in CUSTOM_KINDS}
INFRASTRUCTURE = "/apis/infrastructure.cluster.x-k8s.io/v1beta2"
MACHINES = "/apis/cluster.x-k8s.io/v1beta1"
COORDINATION = "/apis/coordination.k8s.io/v1"
PERDURE = "/apis/perdure.dev/v1alpha1"
CORE = ("secrets", "namespaces", "configmaps", "serviceaccounts", "nodes", "pods")
OPERATOR = "aws-account-operator"
# How long a server may be away (killed, started again) before a test gives up on it.
PATIENCE_SECONDS = 60.0


def administrator(deployment: Deployment) -> ssl.SSLContext:
    """The administrator's credentials for the deployment's API server."""
    certificates = Certificates(deployment.state.certificates)
    context = ssl.create_default_context(cafile=str(certificates.authority))
    context.load_cert_chain(certificates.certificate("admin"), certificates.key("admin"))
    return context


class Cluster:
    """The API server, as its administrator."""

    def __init__(self, deployment: Deployment) -> None:
        url = deployment.service("kube-apiserver").url
        assert url is not None
        self.url = url
        self._http = httpx.Client(base_url=url, verify=administrator(deployment), trust_env=False, timeout=10)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def list(self, plural: str, namespace: str = "") -> list[dict[str, Any]]:
        """All objects of a kind."""
        where = f"/namespaces/{namespace}" if namespace else ""
        found: list[dict[str, Any]] = self._ask("GET", f"{self._group(plural)}{where}/{plural}")["items"]
        return found

    def get(self, plural: str, namespace: str, name: str) -> dict[str, Any] | None:
        """One object, None if there is none."""
        return self._ask("GET", self._path(plural, namespace, name)) or None

    def versions(self, plural: str, namespace: str, name: str, since: str) -> list[dict[str, Any]]:
        """An object after each of its changes since a version, the oldest first."""
        path = self._path(plural, namespace, "").rstrip("/")
        query = {"fieldSelector": f"metadata.name={name}", "resourceVersion": since, "timeoutSeconds": "1"}
        answer = self._http.get(path, params={"watch": "true", **query})
        events = [json.loads(line) for line in answer.raise_for_status().text.splitlines()]
        assert all(event["type"] in {"ADDED", "MODIFIED"} for event in events), events
        return [event["object"] for event in events]

    def create(self, plural: str, namespace: str, obj: dict[str, Any]) -> None:
        """Create an object; an existing one is left unchanged."""
        where = f"/namespaces/{namespace}" if namespace else ""
        self._ask("POST", f"{self._group(plural)}{where}/{plural}", obj)

    def patch(self, plural: str, namespace: str, name: str, patch: dict[str, Any], subresource: str = "") -> None:
        """Merge-patch an object."""
        path = self._path(plural, namespace, name) + (f"/{subresource}" if subresource else "")
        self._ask("PATCH", path, patch)

    def delete(self, plural: str, namespace: str, name: str) -> None:
        """Ask for an object's deletion."""
        self._ask("DELETE", self._path(plural, namespace, name))

    @staticmethod
    def _group(plural: str) -> str:
        if plural in CORE:
            return "/api/v1"
        if plural in THREESCALE:
            return THREESCALE[plural]
        groups = (
            ("resource", CLAIMS),
            ("loadbalancer", LOAD_BALANCERS),
            ("role", RBAC),
            ("awsmachine", INFRASTRUCTURE),
            ("machine", MACHINES),
            ("interruptionpolicies", PERDURE),
            ("leases", COORDINATION),
        )
        for beginning, group in groups:
            if plural.startswith(beginning):
                return group
        return ACCOUNTS

    def _path(self, plural: str, namespace: str, name: str) -> str:
        where = f"/namespaces/{namespace}" if namespace else ""
        return f"{self._group(plural)}{where}/{plural}/{name}"

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self._http.request(method, path, json=body, headers={"Content-Type": kind})
            except httpx.TransportError:
                if time.monotonic() > until:
                    raise
            else:
                if answer.status_code == 404 or (answer.status_code == 409 and method == "POST"):
                    return {}
                # A server that has just started serves before its own preparations are done.
                if answer.status_code not in (403, 429, 500, 503) or time.monotonic() > until:
                    if answer.is_error:
                        raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
                    found: dict[str, Any] = answer.json()
                    return found
            time.sleep(0.2)


class Workflows:
    """Temporal's list of workflows, over its HTTP API."""

    def __init__(self, deployment: Deployment) -> None:
        self._http = temporal_http(deployment)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def running(self) -> dict[str, str]:
        """Phase by workflow id of all that run."""
        return {
            item["execution"]["workflowId"]: _attribute(item, "OpPhase")
            for item in self._list("ExecutionStatus='Running'")
        }

    def broken(self) -> list[str]:
        """Ids of those that ended by failing."""
        query = "ExecutionStatus='Failed' OR ExecutionStatus='TimedOut' OR ExecutionStatus='Canceled'"
        return [item["execution"]["workflowId"] for item in self._list(query)]

    def _list(self, query: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        token = ""
        while True:
            parameters = {"query": query, "pageSize": "200", **({"nextPageToken": token} if token else {})}
            answer = self._http.get("/api/v1/namespaces/default/workflows", params=parameters)
            answer.raise_for_status()
            content = answer.json()
            found += content.get("executions", [])
            token = content.get("nextPageToken", "")
            if not token:
                return found


def _attribute(execution: dict[str, Any], name: str) -> str:
    fields = execution.get("searchAttributes", {}).get("indexedFields", {})
    content = fields.get(name, {}).get("data", "")
    return str(json.loads(base64.b64decode(content))) if content else ""


def secret_entry(secret: dict[str, Any], name: str) -> str:
    """An entry of a Secret, decoded."""
    return base64.b64decode(secret.get("data", {}).get(name, "")).decode()


def until(check: Callable[[], bool], what: str, seconds: float) -> None:
    """Poll until it holds; fail with `what` otherwise."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.05)
