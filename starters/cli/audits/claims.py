"""Audit of resource claims: compares claims with handles, handles with annotated resources, and all with workflows.

A mismatch counts only if two comparisons both show it: Temporal's lists lag, and the next pass corrects what a crash
left. A kind that cannot be read is reported in one line.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL, RESOURCE_PROVIDER, RESOURCE_WATCH
from domain.claims.domain_names import DomainNames
from domain.identity import Kind, id_prefix
from engine.errors import Absent, Denied
from engine.kube.discovery import Discovery
from engine.kube.json import JsonObject, at, flag, key_of, mapping, sequence, text
from starters.cli.audits import Finding, found_twice
from starters.cli.output import warn
from starters.cli.session import Session

AREA = "claims"
# Seconds between the two comparisons: longer than Temporal's lag and longer than a pass.
APART_SECONDS = 3.0

_LOOK = "see `perdure why`; `perdure wake` reconciles it"
_WORKFLOWS = "ExecutionStatus = 'Running' AND WorkflowType IN ('ResourceClaim', 'ResourceHandle', 'ResourcePool')"


@dataclass(frozen=True)
class Snapshot:
    """What the audit reads. `things` are the managed resources, whose annotations name a handle."""

    names: DomainNames
    claims: Sequence[JsonObject] = ()
    handles: Sequence[JsonObject] = ()
    pools: Sequence[JsonObject] = ()
    things: Sequence[JsonObject] = ()
    workflows: frozenset[str] = frozenset()
    cluster: str = ""
    handles_by_name: Mapping[str, JsonObject] = field(init=False)
    claims_by_path: Mapping[str, JsonObject] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "handles_by_name", {_name(each): each for each in self.handles})
        object.__setattr__(self, "claims_by_path", {_path(each): each for each in self.claims})

    def stays(self, obj: JsonObject) -> bool:
        """False if the object is being deleted, or a label tells Perdure to ignore it."""
        return not text(obj, "metadata", "deletionTimestamp") and not self.ignored(obj)

    def ignored(self, obj: JsonObject) -> bool:
        return self.names.ignore_label in mapping(obj, "metadata", "labels")


async def audit(session: Session, *, thorough: bool) -> list[Finding]:
    discovery = Discovery(session.kube)

    async def look() -> Iterable[Finding]:
        return findings(await _look(session, discovery))

    return await found_twice(look, APART_SECONDS)


def findings(found: Snapshot) -> Iterator[Finding]:
    yield from without_claim(found)
    yield from without_handle(found)
    yield from bound_twice(found)
    yield from orphans(found)
    yield from doubled(found)
    yield from without_workflow(found)
    yield from without_object(found)


# --- claims and handles ---


def without_claim(found: Snapshot) -> Iterator[Finding]:
    for handle in filter(found.stays, found.handles):
        holder = _holder(handle)
        if not holder:
            continue
        claim = found.claims_by_path.get(holder)
        held = _held(claim)
        if claim is None:
            yield _finding(_subject(handle), f"bound to ResourceClaim {holder}, which does not exist", _LOOK)
        elif held != _name(handle) and found.stays(claim) and not _detached(claim):
            shown = f"names {held}" if held else "names no handle"
            yield _finding(_subject(handle), f"bound to ResourceClaim {holder}, which {shown}", _LOOK)


def without_handle(found: Snapshot) -> Iterator[Finding]:
    for claim in filter(found.stays, found.claims):
        held = _held(claim)
        if not held or _detached(claim):
            continue
        handle = found.handles_by_name.get(held)
        if handle is None:
            yield _finding(_subject(claim), f"names ResourceHandle {held}, which does not exist", _LOOK)
        elif found.stays(handle) and _holder(handle) != _path(claim):
            holder = _holder(handle)
            problem = f"names ResourceHandle {held}, which is {f'bound to {holder}' if holder else 'free'}"
            yield _finding(_subject(claim), problem, _LOOK)


def bound_twice(found: Snapshot) -> Iterator[Finding]:
    holders, held = defaultdict(list), defaultdict(list)
    for claim in filter(found.stays, found.claims):
        if _held(claim) and not _detached(claim):
            holders[_held(claim)].append(_path(claim))
    for handle in filter(found.stays, found.handles):
        if _holder(handle):
            held[_holder(handle)].append(_name(handle))
    for name, claims in sorted(holders.items()):
        if len(claims) > 1:
            problem = f"named by several claims: {', '.join(sorted(claims))}"
            advice = "keep the claim that the handle's spec names; delete the others"
            yield _finding(f"ResourceHandle {name}", problem, advice)
    for path, handles in sorted(held.items()):
        if len(handles) > 1:
            problem = f"several handles are bound to it: {', '.join(sorted(handles))}"
            advice = "keep the handle that the claim's status names; delete the others"
            yield _finding(f"ResourceClaim {path}", problem, advice)


# --- managed resources ---


def orphans(found: Snapshot) -> Iterator[Finding]:
    for thing in filter(found.stays, found.things):
        name = _handle_of(found.names, thing)
        handle = found.handles_by_name.get(name)
        if handle is None:
            problem = f"created for ResourceHandle {name}, which does not exist"
            yield _finding(_subject(thing), problem, "delete it, unless it is in use")
        elif found.stays(handle) and _identity(thing) not in set(_references(handle)):
            problem = f"created for ResourceHandle {name}, which does not list it among its resources"
            yield _finding(
                _subject(thing), problem, "compare it with the resource that the handle lists instead; delete one"
            )


def doubled(found: Snapshot) -> Iterator[Finding]:
    entries: dict[tuple[str, str], list[JsonObject]] = defaultdict(list)
    for thing in filter(found.stays, found.things):
        entries[
            _handle_of(found.names, thing),
            text(thing, "metadata", "annotations", found.names.resource_index_annotation),
        ].append(thing)
    for (handle, index), things in sorted(entries.items()):
        if len(things) > 1:
            problem = f"resource {index} exists several times: {', '.join(sorted(map(_subject, things)))}"
            yield _finding(
                f"ResourceHandle {handle}", problem, "keep the one that the handle's spec names; delete the others"
            )


# --- workflows ---


def without_workflow(found: Snapshot) -> Iterator[Finding]:
    for kind, objects in _with_workflows(found):
        for each in objects:
            if key_of(kind.name, each, found.cluster).workflow_id not in found.workflows and not found.ignored(each):
                yield _finding(
                    _subject(each, kind), "it has no running workflow", "use `perdure wake`; check that a watcher runs"
                )


def without_object(found: Snapshot) -> Iterator[Finding]:
    everything = ((RESOURCE_CLAIM, found.claims), (RESOURCE_HANDLE, found.handles), (RESOURCE_POOL, found.pools))
    known = {key_of(kind.name, each, found.cluster).workflow_id for kind, objects in everything for each in objects}
    prefixes = tuple(id_prefix(kind.name, found.cluster) for kind, _ in everything)
    for id_ in sorted(found.workflows - known):
        if id_.startswith(prefixes):
            yield _finding(
                f"workflow {id_}",
                "runs for an object that is gone",
                "send the workflow the signal `wake`: it then ends by itself",
            )


def _with_workflows(found: Snapshot) -> Iterator[tuple[Kind, list[JsonObject]]]:
    yield RESOURCE_CLAIM, [each for each in found.claims if _held(each) or _detached(each)]
    yield RESOURCE_HANDLE, [each for each in found.handles if _holder(each) not in found.claims_by_path]
    yield RESOURCE_POOL, list(found.pools)


# --- snapshots ---


async def _look(session: Session, discovery: Discovery) -> Snapshot:
    namespace = session.settings.claims_namespace
    kube = session.kube
    before = (await kube.list(RESOURCE_HANDLE, namespace)).items
    watches = await _watches(session)
    providers = (await kube.list(RESOURCE_PROVIDER, namespace)).items
    things = await _things(session, discovery, kinds_named(before, watches, providers))
    workflows = frozenset([row.id async for row in session.temporal.list_workflows(_WORKFLOWS)])
    # A handle is created before its resources, and listed after them, so no new resource looks orphaned.
    claims, handles, pools = await asyncio.gather(
        kube.list(RESOURCE_CLAIM), kube.list(RESOURCE_HANDLE, namespace), kube.list(RESOURCE_POOL, namespace)
    )
    names = DomainNames(domain=session.settings.claims_domain)
    return Snapshot(names, claims.items, handles.items, pools.items, things, workflows, session.settings.cluster)


async def _watches(session: Session) -> Sequence[JsonObject]:
    try:
        return (await session.kube.list(RESOURCE_WATCH, session.settings.claims_namespace)).items
    except (Absent, Denied) as error:
        warn(f"skipped: {RESOURCE_WATCH.name}: {error.message}")
        return []


def kinds_named(
    handles: Iterable[JsonObject], watches: Iterable[JsonObject], providers: Iterable[JsonObject]
) -> set[tuple[str, str]]:
    """The kinds of managed resources; templates that need rendering are skipped."""
    entries = [
        entry for handle in handles for part in ("spec", "status") for entry in sequence(handle, part, "resources")
    ]
    named = [at(entry, part) for entry in entries for part in ("reference", "template")]
    named += [at(watch, "spec") for watch in watches]
    for provider in providers:
        named += [at(provider, "spec", "override"), at(provider, "spec", "template", "definition")]
        named += [at(provider, "spec", "default"), at(provider, "spec", "match")]
    found = {(text(each, "apiVersion"), text(each, "kind")) for each in named}
    return {(version, kind) for version, kind in found if version and kind and "{" not in version + kind}


async def _things(session: Session, discovery: Discovery, kinds: Iterable[tuple[str, str]]) -> list[JsonObject]:
    names = DomainNames(domain=session.settings.claims_domain)
    found: list[JsonObject] = []
    for api_version, name in sorted(kinds):
        try:
            served = await discovery.served(api_version, name)
            async for page in session.kube.pages(served.kind):
                named = {"apiVersion": api_version, "kind": name}
                found += [{**_slim(each), **named} for each in page.items if _handle_of(names, each)]
        except (Absent, Denied) as error:
            warn(f"skipped: {name} of {api_version}: {error.message}")
    return found


def _slim(thing: JsonObject) -> JsonObject:
    metadata = mapping(thing, "metadata")
    return {"metadata": {key: metadata[key] for key in _METADATA_FIELDS if key in metadata}}


_METADATA_FIELDS = ("namespace", "name", "annotations", "deletionTimestamp")


# --- fields of objects ---


def _held(claim: JsonObject | None) -> str:
    return text(claim, "status", "resourceHandle", "name")


def _detached(claim: JsonObject) -> bool:
    return flag(claim, "status", "resourceHandle", "detached")


def _holder(handle: JsonObject) -> str:
    name = text(handle, "spec", "resourceClaim", "name")
    return f"{text(handle, 'spec', 'resourceClaim', 'namespace')}/{name}" if name else ""


def _handle_of(names: DomainNames, thing: JsonObject) -> str:
    return text(thing, "metadata", "annotations", names.resource_handle_name_annotation)


def _references(handle: JsonObject) -> Iterator[tuple[str, str, str]]:
    for part in ("spec", "status"):
        for entry in sequence(handle, part, "resources"):
            reference = mapping(entry, "reference")
            yield text(reference, "kind"), text(reference, "namespace"), text(reference, "name")


def _identity(thing: JsonObject) -> tuple[str, str, str]:
    return text(thing, "kind"), text(thing, "metadata", "namespace"), _name(thing)


def _name(obj: JsonObject) -> str:
    return text(obj, "metadata", "name")


def _path(obj: JsonObject) -> str:
    return f"{text(obj, 'metadata', 'namespace')}/{_name(obj)}"


def _subject(obj: JsonObject, kind: Kind | None = None) -> str:
    namespace = text(obj, "metadata", "namespace")
    return f"{kind.name if kind else text(obj, 'kind')} {f'{namespace}/' if namespace else ''}{_name(obj)}"


def _finding(subject: str, problem: str, advice: str) -> Finding:
    return Finding(area=AREA, subject=subject, problem=problem, advice=advice)
