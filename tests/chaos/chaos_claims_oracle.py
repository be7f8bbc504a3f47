"""What must be true of resource claims once everything has settled: claims, handles, resources and workflows agree.

As with accounts, every sentence is something lost, doubled, leaked or not done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from chaos_cluster import Cluster, Workflows
from chaos_worker_log import WorkerLog
from claim_domain import NAMES

USERS = "users"
POOLBOY = "poolboy"
RESOURCES_PER_HANDLE = 2
_KINDS = {"ResourceClaim": "claims", "ResourceHandle": "handles", "ResourcePool": "pools"}

Json = dict[str, Any]


@dataclass
class Expected:
    """What a test has asked for."""

    claims: dict[str, str] = field(default_factory=dict)
    """By name: the size that its resource shows; empty for a claim that has given its handle up."""
    pools: dict[str, int] = field(default_factory=dict)
    """By name: how many free handles there are."""


@dataclass(frozen=True)
class State:
    """The cluster at one moment."""

    claims: Mapping[str, Json]
    handles: Mapping[str, Json]
    pools: Mapping[str, Json]
    things: Mapping[str, Json]
    """The ConfigMaps that bear the name of a handle."""


class ClaimsOracle:
    """Compares what there is with what was asked for, and both sides of every bond."""

    def __init__(self, cluster: Cluster, workflows: Workflows, worker_log: Path) -> None:
        self._cluster = cluster
        self._workflows = workflows
        self._log = WorkerLog(worker_log)

    def violations(self, expected: Expected) -> list[str]:
        """Everything that is not as it should be."""
        try:
            state = self.look()
            return [
                *_claims(state, expected),
                *_handles(state, expected),
                *_things(state),
                *_pools(state, expected),
                *self._running(state),
                *self._log.complaints(),
            ]
        except (httpx.TransportError, httpx.HTTPStatusError) as error:
            return [f"a server does not answer: {error}"]

    def look(self) -> State:
        """The cluster now."""
        things = (
            thing
            for thing in self._cluster.list("configmaps", USERS)
            if NAMES.resource_handle_name_annotation in (thing["metadata"].get("annotations") or {})
        )
        return State(
            claims=_named(self._cluster.list("resourceclaims", USERS)),
            handles=_named(self._cluster.list("resourcehandles", POOLBOY)),
            pools=_named(self._cluster.list("resourcepools", POOLBOY)),
            things=_named(things),
        )

    def _running(self, state: State) -> Iterator[str]:
        """A workflow for each object that needs one; none for objects that do not exist."""
        running = self._workflows.running()
        objects = {
            f"{kind}/{each['metadata']['namespace']}/{name}/{each['metadata']['uid']}": each
            for kind, part in _KINDS.items()
            for name, each in getattr(state, part).items()
        }
        looked_after = {id_ for id_, each in objects.items() if not at(each, "spec", "resourceClaim")}
        found = {id_ for id_ in running if id_.split("/")[0] in _KINDS}
        yield from (f"no workflow for {id_}" for id_ in sorted(looked_after - found))
        yield from (f"a workflow without an object: {id_}" for id_ in sorted(found - set(objects)))
        yield from (f"phase {phase}: {id_}" for id_, phase in running.items() if phase in ("Bug", "Stalled"))
        yield from (f"ended badly: {id_}" for id_ in self._workflows.broken())

    def forget(self) -> None:
        """Begin a new case: what the log said before is not held against it."""
        self._log.forget()


def _claims(state: State, expected: Expected) -> Iterator[str]:
    yield from (f"claim {name} is not there" for name in sorted(set(expected.claims) - set(state.claims)))
    yield from (f"claim {name} is still there" for name in sorted(set(state.claims) - set(expected.claims)))
    for name, claim in state.claims.items():
        size = expected.claims.get(name, "")
        handle_name = at(claim, "status", "resourceHandle", "name")
        handle = state.handles.get(handle_name or "")
        if not size:
            if at(claim, "status", "resourceHandle", "detached") is not True:
                yield f"claim {name} is not detached: {at(claim, 'status', 'resourceHandle')}"
            if handle is not None:
                yield f"claim {name} is detached and its handle is still there"
            continue
        if at(claim, "metadata", "deletionTimestamp"):
            yield f"claim {name} is being deleted"
        if at(claim, "status", "ready") is not True or at(claim, "status", "healthy") is not True:
            yield f"claim {name} is not ready: {without_states(claim)}"
        if handle is None:
            yield f"claim {name} names handle {handle_name!r}, which is not there"
        elif at(handle, "spec", "resourceClaim", "name") != name:
            yield f"claim {name} names handle {handle_name}, which names {at(handle, 'spec', 'resourceClaim')}"
        shown = [at(each, "state", "data", "size") for each in at(claim, "status", "resources") or []]
        if shown != [None, size]:
            yield f"claim {name} shows sizes {shown}, not {size}"


def _handles(state: State, expected: Expected) -> Iterator[str]:
    holders = Counter(at(handle, "spec", "resourceClaim", "name") for handle in state.handles.values())
    yield from (f"claim {name} has {n} handles" for name, n in holders.items() if name and n > 1)
    for name, handle in state.handles.items():
        holder, pool = at(handle, "spec", "resourceClaim", "name"), at(handle, "spec", "resourcePool", "name")
        if at(handle, "metadata", "deletionTimestamp"):
            yield f"handle {name} is being deleted"
        if holder and at(state.claims.get(holder), "status", "resourceHandle", "name") != name:
            yield f"handle {name} names claim {holder}, which does not name it"
        if not holder and pool not in expected.pools:
            yield f"handle {name} has no owner"
        if at(handle, "status", "ready") is not True:
            yield f"handle {name} is not ready: {at(handle, 'status')}"
        references = [at(each, "reference", "name") for each in at(handle, "spec", "resources") or []]
        if len(references) != RESOURCES_PER_HANDLE or None in references:
            yield f"handle {name} refers to {references}"
        for reference in references:
            owner = _owner(state.things.get(reference or ""))
            if owner != name:
                yield f"{reference} of handle {name} " + (f"belongs to {owner}" if owner else "is not there")


def _things(state: State) -> Iterator[str]:
    for name, thing in state.things.items():
        handle = state.handles.get(_owner(thing))
        listed = [at(each, "reference", "name") for each in at(handle, "spec", "resources") or []]
        if name not in listed:
            yield f"{name} is left: its handle {_owner(thing)} " + ("does not list it" if handle else "is gone")


def _pools(state: State, expected: Expected) -> Iterator[str]:
    yield from (f"pool {name} is not there" for name in sorted(set(expected.pools) - set(state.pools)))
    yield from (f"pool {name} is still there" for name in sorted(set(state.pools) - set(expected.pools)))
    for name, wanted in expected.pools.items():
        members = [each for each in state.handles.values() if at(each, "spec", "resourcePool", "name") == name]
        free = [each for each in members if not at(each, "spec", "resourceClaim")]
        if len(free) != wanted:
            yield f"pool {name} has {len(free)} free handles, wanted {wanted}"
        counts = at(state.pools.get(name), "status", "resourceHandleCount")
        if counts != {"available": wanted, "ready": wanted}:
            yield f"pool {name} says {counts}, wanted {wanted}"


def _owner(thing: Json | None) -> str:
    return str((at(thing, "metadata", "annotations") or {}).get(NAMES.resource_handle_name_annotation, ""))


def without_states(claim: Json) -> Json:
    """A claim's status without the live objects in it."""
    status: Json = at(claim, "status") or {}
    resources = [{n: v for n, v in each.items() if n != "state"} for each in status.get("resources") or []]
    return {**status, "resources": resources}


def at(obj: object, *path: str) -> Any:
    """The value under a path of mappings, None where it ends early."""
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def _named(objects: Any) -> Mapping[str, Json]:
    return {each["metadata"]["name"]: each for each in objects}
