"""Claims, handles and providers as plain objects, and the scenes they are rendered in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from claim_domain import NAMES
from memory_kube import MemoryKube
from temporalio.testing import ActivityEnvironment

from activities.claims.handle_reconciliation import Reconciliation
from activities.claims.managed_resources import States
from domain.claims.evaluator_interface import NO_REQUESTER, Fault, HandlePlan, HandleQuestion, Question, Requester
from domain.claims.handle_reconciliation import HandleWorld
from domain.claims.linked_providers import Resources
from domain.claims.template_variables import Scene
from domain.identity import Key

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
OPERATOR_NAMESPACE = "poolboy"

KEY = Key(kind="ResourceHandle", namespace="poolboy", name="guid-abcde", uid="uid-handle")


def provider(name: str = "base", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": OPERATOR_NAMESPACE}
    return {"apiVersion": NAMES.api_version, "kind": "ResourceProvider", "metadata": metadata, "spec": spec}


def claim(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "mine", "namespace": "user-ada", "uid": "claim-uid", "annotations": {"mood": "fine"}}
    made: dict[str, Any] = {
        "apiVersion": NAMES.api_version,
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": spec,
    }
    return made if status is None else {**made, "status": status}


def asking(values: dict[str, Any], accepted: dict[str, Any] | None = None, name: str = "base") -> dict[str, Any]:
    """A claim in provider mode with the values it asks for and those accepted before."""
    status = None if accepted is None else {"provider": {"name": name, "parameterValues": accepted}}
    return claim(status, provider={"name": name, "parameterValues": values})


def handle(*resources: dict[str, Any], status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "guid-b7k2q", "generateName": "guid-", "namespace": OPERATOR_NAMESPACE, "uid": "handle-uid"}
    made: dict[str, Any] = {"apiVersion": NAMES.api_version, "kind": "ResourceHandle", "metadata": metadata}
    made["spec"] = {"resources": list(resources), **spec} if resources else spec
    return made if status is None else {**made, "status": status}


def link(kind: str, namespace: str, name: str) -> dict[str, Any]:
    return {"apiVersion": NAMES.api_version, "kind": kind, "namespace": namespace, "name": name}


BOUND = {"resourceClaim": link("ResourceClaim", "user-ada", "mine")}
POOLED = {"resourcePool": link("ResourcePool", OPERATOR_NAMESPACE, "spare")}


def reference(name: str) -> dict[str, Any]:
    return link("ResourceProvider", OPERATOR_NAMESPACE, name)


def entry(provider_name: str, name: str = "", **more: Any) -> dict[str, Any]:
    """An entry of a resource list."""
    return {**({"name": name} if name else {}), "provider": reference(provider_name), **more}


def config_map(name: str = "", **data: Any) -> dict[str, Any]:
    metadata = {"metadata": {"name": name, "namespace": "things"}} if name else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", **metadata, **({"data": data} if data else {})}


def scene(*providers: dict[str, Any], newer: bool = False, **objects: dict[str, Any]) -> Scene:
    by_name = {each["metadata"]["name"]: each for each in providers}
    return Scene.of(Question(now=NOW, names=NAMES, providers=by_name, newer=newer), **objects)


def resources(
    held: dict[str, Any],
    *providers: dict[str, Any],
    states: list[Any] | None = None,
    requester: Requester = NO_REQUESTER,
    newer: bool = False,
    **objects: dict[str, Any],
) -> Resources:
    asked = scene(*providers, handle=held, newer=newer, **objects)
    answers = {"handle": held, "states": tuple(states or ()), "requester": requester}
    return Resources(asked, HandleQuestion.model_construct(now=NOW, names=NAMES, **answers))


class Parts:
    """All that a pass over a handle works with: nothing is there, and no write changes anything."""

    names = NAMES
    namespace = OPERATOR_NAMESPACE

    async def of(self, *_: object) -> Requester:
        return NO_REQUESTER

    async def providers_for(self, *_: object, **__: object) -> Any:
        return {}

    async def states(self, *_: object, **__: object) -> States:
        return States(())

    async def unknown_kinds(self, *_: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (), ()

    async def show(self, *_: object) -> None:
        pass

    async def take_back(self, *_: object) -> bool:
        return False

    async def put(self, kind: Any, before: Any, after: Any) -> Any:
        return before

    async def put_status(self, kind: Any, before: Any, status: Any) -> Any:
        return before

    api = MemoryKube()  # for Events


def settled(
    handle: Any, claim: Any = None, plan: HandlePlan | None = None, faults: tuple[Fault, ...] = (), now: datetime = NOW
) -> HandleWorld:
    """What a pass over a handle came to."""
    requested = {"now": now, "names": NAMES, "handle": handle, "claim": claim}
    return HandleWorld.of(KEY, answer=plan or HandlePlan(), unevaluated=faults, **requested)


async def settle(api: Any, handle: Any, claim: Any = None, now: datetime = NOW, **fields: Any) -> HandleWorld:
    """A pass over a handle, within an activity; `api` plays everything that it works with."""
    pushed = {"push": claim is not None, "conditional": "autoDelete" in (claim or {}).get("spec", {})} | fields
    pushed["conditional"] = pushed["conditional"] and pushed["push"]
    world = HandleWorld.of(KEY, now=now, names=api.names, handle=handle, claim=claim, **pushed)
    return cast(HandleWorld, await ActivityEnvironment().run(reconciling(api).settle, world))


def reconciling(part: Any) -> Reconciliation:
    """All of a pass's effects, as one object plays them."""
    return Reconciliation(part, part, part, part, part, part)
