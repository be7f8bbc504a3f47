"""Row k of `perdure bench threescale`: one 3scale object and its Secret in each of many namespaces."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import psutil
import yaml
from temporalio.service import RPCError

from domain.built_in_kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from domain.identity import Kind
from domain.threescale import BACKEND
from engine.kube import NAMESPACE, SECRET
from engine.kube.json import JsonObject, key_of, text
from localcloud.bench.claims_telling import step, together, told
from localcloud.bench.figures import Figure, Found
from localcloud.bench.laboratory import PATIENCE_SECONDS, Laboratory, laboratory_with
from localcloud.bench.threescale_things import Sizes
from localcloud.services import API_SERVER, SERVERS
from localcloud.state import choose_ports

ACCOUNT = "watcher"
HOME = "perdure"
TENANT = "threescale-provider-account"
_AT_ONCE = 40
_LOOK_SECONDS = 0.02
_SETTLED_LOOKS = 3
_RBAC = "rbac.authorization.k8s.io"
ROLE_BINDING = Kind(name="RoleBinding", group=_RBAC, version="v1", plural="rolebindings", area="")
SERVICE_ACCOUNT = Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area="")
SEES_SECRETS = "bench-secrets"
SEES_THE_REST = "bench-watch"
_READ = ["get", "list", "watch"]
RULES: dict[str, list[JsonObject]] = {
    SEES_SECRETS: [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}],
    SEES_THE_REST: [
        {"apiGroups": ["capabilities.3scale.net", "apps.3scale.net"], "resources": ["*"], "verbs": _READ},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": _READ},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": [*_READ, "create", "update"]},
    ],
}


async def namespaces(sizes: Sizes, _: frozenset[str]) -> Found:
    step(f"a deployment with {sizes.namespaces} namespaces is brought up")
    async with laboratory_with(SERVERS, (), BACKEND) as lab:
        names = [f"tenant-{number:04}" for number in range(sizes.namespaces)]
        await _together(lab, names, _made)
        kubeconfig = await _service_account(lab)
        await _bind(lab, CLUSTER_ROLE_BINDING, SEES_SECRETS)
        found = [told(await _measured(lab, kubeconfig, names, "a right to all Secrets", "1"))]
        await lab.kube.delete(CLUSTER_ROLE_BINDING, "", SEES_SECRETS)
        await _together(lab, names, lambda lab, name: _bind(lab, ROLE_BINDING, SEES_SECRETS, name))
        found.append(told(await _measured(lab, kubeconfig, names, "a right for each namespace", "one each")))
    return together(found)


async def _measured(lab: Laboratory, kubeconfig: Path, names: list[str], rights: str, streams: str) -> Found:
    last = names[-1]
    mark, began = lab.audit_mark(), time.monotonic()
    async with _watcher(lab, kubeconfig) as process:
        ready = time.monotonic() - began
        await _until_calm(lab, mark)
        requests = lab.requests_since(mark)
        connections = _connections(lab, process)
        memory = process.memory_info().rss / 2**20
        of_secret = await _secret_noticed(lab, last)
        of_object = await _object_noticed(lab, _backend(f"late-{mark}"), last)
    of_secrets = _count(requests, "secrets")
    figures = (
        ("watches of Secrets", _count(requests, "secrets", "watch"), "", streams, f"{of_secrets} requests for Secrets"),
        ("connections to the API server", connections, "", "", ""),
        ("requests until ready", sum(requests.values()), "", "", f"{ready:.1f} s"),
        ("a changed Secret of the last namespace is noticed after", round(of_secret, 2), "s", "≤ 1 s", ""),
        ("a new object of the last namespace is noticed after", round(of_object, 2), "s", "≤ 1 s", ""),
        ("memory of the watcher", round(memory), "MiB", "", ""),
    )
    what = f"{len(names)} namespaces, {rights}"
    return Found(
        figures=tuple(
            Figure(row="k", what=f"{what}: {name}", measured=measured, unit=unit, goal=goal, note=note)
            for name, measured, unit, goal, note in figures
        ),
        breakdown={f"k: requests with {rights}": dict(requests)},
    )


# What there is.


async def _made(lab: Laboratory, namespace: str) -> None:
    await lab.kube.create(NAMESPACE, {"metadata": {"name": namespace}})
    token = {"adminURL": "https://tenant.example.com", "token": "one"}
    await lab.kube.create(SECRET, {"metadata": {"name": TENANT}, "stringData": token}, namespace)
    await lab.kube.create(BACKEND, _backend("first"), namespace)


def _backend(name: str) -> JsonObject:
    spec: JsonObject = {
        "name": name,
        "privateBaseURL": "https://api.example.com",
        "providerAccountRef": {"name": TENANT},
    }
    return {"metadata": {"name": name}, "spec": spec}


async def _service_account(lab: Laboratory) -> Path:
    await lab.kube.create(SERVICE_ACCOUNT, {"metadata": {"name": ACCOUNT}}, HOME)
    for role, rules in RULES.items():
        await lab.kube.create(CLUSTER_ROLE, {"metadata": {"name": role}, "rules": rules})
    await _bind(lab, CLUSTER_ROLE_BINDING, SEES_THE_REST)
    request: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await lab.kube.create_under(SERVICE_ACCOUNT, HOME, ACCOUNT, "token", request)
    return _kubeconfig(lab, text(answer, "status", "token"))


def _kubeconfig(lab: Laboratory, token: str) -> Path:
    config = yaml.safe_load(Path(lab.deployment.env()["KUBECONFIG"]).read_text())
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    path = lab.deployment.log("bench-kubeconfig")
    path.write_text(yaml.safe_dump(config))
    return path


async def _bind(lab: Laboratory, kind: Kind, role: str, namespace: str = "") -> None:
    binding: JsonObject = {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": HOME}],
    }
    await lab.kube.create(kind, binding, namespace)


async def _together(lab: Laboratory, names: Iterable[str], work: Callable[[Laboratory, str], Awaitable[None]]) -> None:
    permits = asyncio.Semaphore(_AT_ONCE)

    async def one(name: str) -> None:
        async with permits:
            await work(lab, name)

    await asyncio.gather(*map(one, names))


# The watcher.


@asynccontextmanager
async def _watcher(lab: Laboratory, kubeconfig: Path) -> AsyncIterator[psutil.Process]:
    ports, _ = choose_ports(("bench-watch",), {})
    port = ports["bench-watch"]
    environ = {
        "KUBECONFIG": str(kubeconfig),
        "PERDURE_STATE": "",
        "PERDURE_AREAS": "threescale",
        "PERDURE_HEALTH_PORT": str(port),
    }
    with lab.deployment.log("bench-watch").open("ab") as log:
        running = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "starters.cli.main", "watch"),
            env=lab.deployment.program_env() | environ,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        async with asyncio.timeout(PATIENCE_SECONDS), aiohttp.ClientSession() as session:
            while not await _ready(session, port):
                if running.returncode is not None:
                    raise TimeoutError(f"the watcher ended with {running.returncode}")
                await asyncio.sleep(_LOOK_SECONDS)
        yield psutil.Process(running.pid)
    finally:
        if running.returncode is None:
            running.terminate()
        await running.wait()


async def _ready(session: aiohttp.ClientSession, port: int) -> bool:
    try:
        async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            return answer.status == 200 and "standing by" not in await answer.text()
    except aiohttp.ClientError:
        return False


async def _until_calm(lab: Laboratory, mark: int) -> None:
    calm, before = 0, -1
    async with asyncio.timeout(PATIENCE_SECONDS):
        while calm < _SETTLED_LOOKS:
            await asyncio.sleep(1)
            count = sum(number for name, number in lab.requests_since(mark).items() if "leases" not in name)
            calm, before = (calm + 1 if count == before else 0), count


def _connections(lab: Laboratory, process: psutil.Process) -> int:
    port = lab.deployment.service(API_SERVER).port
    return sum(each.raddr.port == port for each in process.net_connections("tcp") if each.raddr)


def _count(requests: Counter[str], resource: str, verb: str = "") -> int:
    named = ((name.split(" "), number) for name, number in requests.items())
    return sum(number for (did, what), number in named if what == resource and did == (verb or did))


# What it notices.


async def _secret_noticed(lab: Laboratory, namespace: str) -> float:
    obj = await lab.kube.get(BACKEND, namespace, "first")
    before = await _events(lab, obj)
    began = time.monotonic()
    await lab.patch(SECRET, namespace, TENANT, {"stringData": {"token": f"{began}"}})
    await _longer(lab, obj, before)
    return time.monotonic() - began


async def _object_noticed(lab: Laboratory, body: JsonObject, namespace: str) -> float:
    began = time.monotonic()
    obj = await lab.kube.create(BACKEND, body, namespace)
    await _longer(lab, obj, 0)
    return time.monotonic() - began


async def _longer(lab: Laboratory, obj: JsonObject, than: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await _events(lab, obj) <= than:  # noqa: ASYNC110 - Temporal is asked
            await asyncio.sleep(_LOOK_SECONDS)


async def _events(lab: Laboratory, obj: JsonObject) -> int:
    handle = lab.temporal.get_workflow_handle(key_of(BACKEND.name, obj).workflow_id)
    try:
        return (await handle.describe()).history_length
    except RPCError:
        return 0
