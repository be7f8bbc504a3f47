"""What the resource claims area watches: its kinds, the Namespaces of claims, and every kind that handles manage.

Who does an object's work is said in `domain/claims/__init__.py`: a claim without a handle is carried by the binder, a
handle by the claim that holds it, unless that is left alone; everything else carries itself.

| change of | wakes, besides whoever carries the object |
|---|---|
| ResourceClaim: gone, detached, left alone, or not any more | the handle that it holds, which then carries itself |
| ResourceHandle, in what its pool counts | its pool; not for one that the pool has just made |
| ResourceHandle: free now, or fit in another way | the binder, while claims have no handle |
| ResourceHandle: deleted, left alone | the claim that it names, and those that name it |
| ResourcePool | nothing |
| ResourcePoolScaling | its pool, which does all its work |
| ResourceProvider | whatever uses it, or a provider that links to it; the binder, while claims have no handle |
| Namespace: who asked for it | the claims in it that have a handle |
| a managed object, by others than handles | the handle that it names, and those that have recorded it |

A managed kind is watched for as long as a handle's resources name it (`declares`), once for the whole cluster however
many handles there are. A change of a provider may concern every claim there is, and edits come in bursts (a bundle of
providers is applied at once), so those wakes are gathered for half a second. What an end does is no news to whoever
carries it out (`claim_endings.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from domain import built_in_kinds as built_in
from domain.claims import (
    RESOURCE_CLAIM,
    RESOURCE_HANDLE,
    RESOURCE_POOL,
    RESOURCE_POOL_SCALING,
    RESOURCE_PROVIDER,
    binder,
)
from domain.claims.constants import RESOURCE_FIELD_MANAGER
from domain.identity import Key, Kind
from engine.settings import Settings
from starters.watch.claim_endings import claim_ending, handle_ending, managed_ending
from starters.watch.claim_readings import Readings, read_namespace
from starters.watch.index import Index
from starters.watch.kinds import Watched
from starters.watch.projection import Projection, own_write

AREA = "claims"

# A bundle of providers is applied within this, and nobody waits for it at a screen.
PROVIDER_EDITS_GATHER = 0.5
# The binder opens claims' workflows when nobody waits any more, fifteen seconds at most; one that is not open by then
# was forgotten in a crash. To open them sooner would have a burst wait for it, the more so the slower the machine is.
# A pool opens those of the handles that it makes, but of those whose resources could not be made.
RELIEVED = 20.0
MADE_BY_POOL = 5.0
# Claims of a kind come and go; listing their kind anew each time would cost more than watching on.
DECLARED_LINGERS = 300.0

# Who does the work.


def handle_carrier(handle: Projection, index: Index) -> Key:
    """The claim that holds the handle, unless either is left alone or the claim has given it up."""
    claim = _at(index, RESOURCE_CLAIM, handle.fact("claim"))
    return claim.key if claim and not handle.fact("ignored") and not _gives_up(claim) else handle.key


def _gives_up(claim: Projection) -> bool:
    return bool(claim.fact("detached") or claim.fact("ignored") or claim.fact("paused"))


# Whom a change concerns.


def claim_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The handle of a claim, when the claim's workflow stops or begins to look after it."""
    if before is not None and after is not None and _gives_up(before) == _gives_up(after):
        return set()
    if before is None and after is not None and not _gives_up(after):
        return set()
    side = after or before
    return {handle.key for handle in _handles_of(side, index)} if side else set()


def _handles_of(claim: Projection, index: Index) -> list[Projection]:
    return index.find(RESOURCE_HANDLE.name, "claim", "/".join(claim.name))


def _counts(handle: Projection | None) -> str:
    """How a handle counts for its pool; bound ones and those on their way out do not."""
    return handle.fact("counts") if handle is not None and handle.fact("pool") else ""


def _made_by_pool(before: Projection | None, after: Projection | None) -> bool:
    """True for a new handle that only Perdure has written: the pass of its pool that made it has counted it."""
    new = before is None and after is not None and after.ours
    return new and after is not None and not after.fact("healthy") and not after.fact("ready")


def _left(handle: Projection | None) -> bool:
    """Whether a handle is none to work with: gone, on its way out, or left alone."""
    return handle is None or handle.deleting or bool(handle.fact("ignored"))


def unbound_claims(index: Index) -> bool:
    """Whether a claim waits for the binder."""
    return bool(index.find(RESOURCE_CLAIM.name, "unbound", "true"))


def pool_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """Nobody: what a pool changes it changes itself."""
    return set()


def scaling_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The pool, unless it has written this itself."""
    if own_write(before, after):
        return set()
    return _keys(*(_at(index, RESOURCE_POOL, side.fact("pool")) for side in _existing(before, after)))


def _linking(name: str, index: Index) -> set[str]:
    """The provider and all that link to it, through whichever others."""
    reached: set[str] = set()
    ahead = [name]
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += [provider.key.name for provider in index.find(RESOURCE_PROVIDER.name, "links", name)]
    return reached


def namespace_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The claims in a namespace whose requester is another now."""
    if after is None or (before is not None and before.fingerprint == after.fingerprint):
        return set()
    claims = index.find(RESOURCE_CLAIM.name, "namespace", after.key.name)
    return {claim.key for claim in claims if not claim.fact("unbound")}


def _at(index: Index, kind: Kind, path: str) -> Projection | None:
    namespace, _, name = path.partition("/")
    return index.get(kind.name, namespace, name) if name else None


def _keys(*found: Projection | None) -> set[Key]:
    return {known.key for known in found if known is not None}


def _existing(before: Projection | None, after: Projection | None) -> list[Projection]:
    return [side for side in (after, before) if side is not None]


# Who misses what is not there.


def handles_without_claim(index: Index) -> set[Key]:
    """The handles whose claim does not exist (any more)."""
    held = ((handle, handle.fact("claim")) for handle in index.all(RESOURCE_HANDLE.name) if handle.fact("claim"))
    return {handle.key for handle, claim in held if _at(index, RESOURCE_CLAIM, claim) is None}


# The kinds that handles manage.


def _misses(handle: Projection, kind: str, there: set[str]) -> Iterator[bool]:
    for reference in handle.fact("references").splitlines():
        yield reference.startswith(f"{kind} ") and reference not in there


# Watched while there are claims: whoever has none need not be allowed to.
NAMESPACES = Watched(
    kind=built_in.NAMESPACE,
    name="Namespaces of claims",
    read=read_namespace,
    dependents=namespace_dependents,
    has_workflow=False,
    lingers=DECLARED_LINGERS,
)


class ClaimsWatch:
    """What is watched for one installation."""

    def __init__(self, settings: Settings) -> None:
        self._domain = settings.claims_domain
        self._namespace = settings.claims_namespace
        self._readings = Readings(settings)
        self._entries: dict[str, Watched] = {}  # the kinds that handles manage, each with its one watch

    def watched(self) -> tuple[Watched, ...]:
        """The area's own kinds."""
        readings = self._readings
        return (
            Watched(
                kind=RESOURCE_CLAIM,
                read=readings.claim,
                dependents=claim_dependents,
                carrier=self.claim_carrier,
                ending=claim_ending,
                relieved=RELIEVED,
                missed_by=handles_without_claim,
                declares=lambda _: (NAMESPACES,),
            ),
            Watched(
                kind=RESOURCE_HANDLE,
                read=readings.handle,
                dependents=self.handle_dependents,
                carrier=handle_carrier,
                ending=handle_ending,
                made_by_others=True,
                relieved=MADE_BY_POOL,
                namespace=self._namespace,
                missed_by=self.claims_without_handle,
                declares=self.managed_kinds,
            ),
            Watched(kind=RESOURCE_POOL, read=readings.pool, dependents=pool_dependents, namespace=self._namespace),
            Watched(
                kind=RESOURCE_POOL_SCALING,
                read=readings.scaling,
                dependents=scaling_dependents,
                has_workflow=False,
                namespace=self._namespace,
            ),
            Watched(
                kind=RESOURCE_PROVIDER,
                read=readings.provider,
                dependents=self.provider_dependents,
                has_workflow=False,
                gathers=PROVIDER_EDITS_GATHER,
                namespace=self._namespace,
            ),
        )

    def claim_carrier(self, claim: Projection, _: Index) -> Key:
        """The binder, while the claim has no handle."""
        return self._binder(claim) if claim.fact("unbound") else claim.key

    def _binder(self, seen: Projection) -> Key:
        """The one workflow that gives handles to claims; no custom resource stands behind it."""
        return binder(self._domain, seen.key.cluster)

    def handle_dependents(self, before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
        """Pool, claim and binder of a handle."""
        keys: set[Key] = set()
        if _counts(before) != _counts(after) and not _made_by_pool(before, after):
            for side in _existing(before, after):
                keys |= _keys(_at(index, RESOURCE_POOL, side.fact("pool")))
        fits = after is not None and after.fact("fit") and (before is None or before.fact("fit") != after.fact("fit"))
        if after is not None and fits and unbound_claims(index):
            keys.add(self._binder(after))
        # A claim waits for the end of one that is left alone, which no change before that tells it of.
        if before is not None and (_left(before) != _left(after) or (after is None and before.fact("ignored"))):
            for side in _existing(before, after):
                keys |= _keys(_at(index, RESOURCE_CLAIM, side.fact("claim")))
                keys |= _keys(*index.find(RESOURCE_CLAIM.name, "handle", side.key.name))
        return keys

    def provider_dependents(self, before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
        """Everything that uses the provider, or one that links to it; the binder, as any claim may match it now."""
        if before is not None and after is not None and before.fingerprint == after.fingerprint:
            return set()
        keys: set[Key] = set()
        for side in _existing(before, after)[:1]:
            for name in _linking(side.key.name, index):
                for kind in (RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL):
                    keys |= _keys(*index.find(kind.name, "providers", name))
            if unbound_claims(index):
                keys.add(self._binder(side))
        return keys

    def claims_without_handle(self, index: Index) -> set[Key]:
        """The claims whose handle does not exist (any more)."""
        claims = index.all(RESOURCE_CLAIM.name)
        bound = (
            (claim, claim.fact("handle")) for claim in claims if claim.fact("handle") and not claim.fact("detached")
        )
        return {claim.key for claim, name in bound if not index.get(RESOURCE_HANDLE.name, self._namespace, name)}

    def managed_kinds(self, handle: Projection) -> tuple[Watched, ...]:
        """What has to be watched for a handle."""
        return tuple(self.managed(kind) for kind in handle.fact("kinds").splitlines())

    def managed(self, kind: str) -> Watched:
        """The one watch of a kind, named by apiVersion and kind, over the whole cluster."""
        if kind not in self._entries:
            self._entries[kind] = self._managed(kind)
        return self._entries[kind]

    def _managed(self, kind: str) -> Watched:
        api_version, _, name = kind.partition(" ")
        group, _, version = api_version.rpartition("/")

        def dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
            """The handle that a managed object names, and any that has recorded it: they may wait for each other.

            Whoever looks after them knows what handles have written.
            """
            if own_write(before, after):
                return set()
            keys: set[Key] = set()
            for side in _existing(before, after):
                keys |= set(index.keys(RESOURCE_HANDLE.name, self._namespace, [side.fact("handle")]))
                keys |= _keys(*index.find(RESOURCE_HANDLE.name, "references", f"{kind} {'/'.join(side.name)}"))
            return keys

        def missed_by(index: Index) -> set[Key]:
            """The handles whose recorded object of this kind does not exist."""
            there = {f"{kind} {'/'.join(known)}" for known in index.of(entry.name)}
            handles = index.find(RESOURCE_HANDLE.name, "kinds", kind)
            return {handle.key for handle in handles if any(_misses(handle, kind, there))}

        entry = Watched(
            kind=Kind(name=name, group=group, version=version, plural="", area=""),
            name=f"{name} of {api_version}, managed",
            read=self._readings.managed,
            dependents=dependents,
            ending=partial(managed_ending, namespace=self._namespace),
            has_workflow=False,
            missed_by=missed_by,
            writer=RESOURCE_FIELD_MANAGER,
            lingers=DECLARED_LINGERS,
        )
        return entry


def watched_for(settings: Settings) -> tuple[Watched, ...]:
    """What is watched for resource claims."""
    return ClaimsWatch(settings).watched()
