"""What the resource claims area watches: its kinds, claims' Namespaces, and the kinds that handles manage.

`domain/claims/__init__.py` says which workflow does an object's work, `domain/claims/relations.py` which further
lifecycles a change wakes. A managed kind is watched once per cluster while a handle's resources name it (`declares`). A
provider's change may concern every claim, and edits come in bursts, so those wakes are gathered.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from domain.claims import (
    RESOURCE_CLAIM,
    RESOURCE_HANDLE,
    RESOURCE_POOL,
    RESOURCE_POOL_SCALING,
    RESOURCE_PROVIDER,
    binder,
)
from domain.claims.constants import RESOURCE_FIELD_MANAGER
from domain.claims.domain_names import DomainNames
from domain.claims.relations import relations_of
from domain.identity import Key, Kind
from engine.kube.store import Followed
from engine.settings import Settings
from starters.watch.claim_endings import claim_ending, handle_ending, managed_ending
from starters.watch.claim_readings import Readings
from starters.watch.index import Index
from starters.watch.kinds import LINGERS, Carried, Watched, read_nothing
from starters.watch.projection import Projection, own_write

AREA = "claims"

# Seconds in which a set of providers is applied; their effect is delayed as much.
PROVIDER_EDITS_GATHER = 0.5
# Seconds. The binder opens claims' workflows when no claim waits, after fifteen seconds at most; one that is not open
# by then was lost in a crash. Opening them sooner would slow a burst down. A pool opens the workflows of its new
# handles, except of those whose resources could not be made.
RELIEVED = 20.0
MADE_BY_POOL = 5.0

# Carriers.


def handle_carrier(handle: Projection, index: Index) -> Key:
    """The bound claim, unless either is ignored or the claim has given the handle up."""
    claim = _at(index, RESOURCE_CLAIM, handle.fact("claim"))
    return claim.key if claim and not handle.fact("ignored") and not _gives_up(claim) else handle.key


def _gives_up(claim: Projection) -> bool:
    return bool(claim.fact("detached") or claim.fact("ignored") or claim.fact("paused"))


def _at(index: Index, kind: Kind, path: str) -> Projection | None:
    namespace, _, name = path.partition("/")
    return index.get(kind.name, namespace, name) if name else None


def _keys(*found: Projection | None) -> set[Key]:
    return {known.key for known in found if known is not None}


def _existing(before: Projection | None, after: Projection | None) -> list[Projection]:
    return [side for side in (after, before) if side is not None]


# Managed kinds.


def _misses(handle: Projection, kind: str, there: set[str]) -> Iterator[bool]:
    for reference in handle.fact("references").splitlines():
        yield reference.startswith(f"{kind} ") and reference not in there


class ClaimsWatch:
    def __init__(self, settings: Settings) -> None:
        self._domain = settings.claims_domain
        self._namespace = settings.claims_namespace
        self._readings = Readings(settings)
        self._relations = relations_of(DomainNames(domain=settings.claims_domain), settings.claims_namespace)
        self._entries: dict[str, Watched] = {}  # managed kinds, each with its one watch

    def watched(self) -> tuple[Watched, ...]:
        readings, relations = self._readings, self._relations
        return (
            Watched(
                Followed(RESOURCE_CLAIM),
                read=readings.claim,
                relations=relations,
                carried=Carried(self.claim_carrier, relieved=RELIEVED),
                ending=claim_ending,
            ),
            Watched(
                Followed(RESOURCE_HANDLE, self._namespace),
                read=readings.handle,
                relations=relations,
                carried=Carried(handle_carrier, from_birth=True, relieved=MADE_BY_POOL),
                ending=handle_ending,
                declares=self.managed_kinds,
            ),
            Watched(Followed(RESOURCE_POOL, self._namespace), read=readings.pool, relations=relations),
            Watched(
                Followed(RESOURCE_POOL_SCALING, self._namespace),
                read=readings.scaling,
                relations=relations,
            ),
            Watched(
                Followed(RESOURCE_PROVIDER, self._namespace),
                read=read_nothing,
                relations=relations,
                gathers=PROVIDER_EDITS_GATHER,
            ),
        )

    def claim_carrier(self, claim: Projection, _: Index) -> Key:
        """The binder carries the claim while it has no handle."""
        return self._binder(claim) if claim.fact("unbound") else claim.key

    def _binder(self, seen: Projection) -> Key:
        """The binder has no custom resource."""
        return binder(self._domain, seen.key.cluster)

    def managed_kinds(self, handle: Projection) -> tuple[Watched, ...]:
        return tuple(self.managed(kind) for kind in handle.fact("kinds").splitlines())

    def managed(self, kind: str) -> Watched:
        """The watch covers the cluster; the kind is given by apiVersion and kind."""
        if kind not in self._entries:
            self._entries[kind] = self._managed(kind)
        return self._entries[kind]

    def _managed(self, kind: str) -> Watched:
        api_version, _, name = kind.partition(" ")
        group, _, version = api_version.rpartition("/")

        def dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
            """The handle that a managed object names, and those that recorded it.

            Writes of handles' own lifecycles are excluded.
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
            Followed(
                Kind(name=name, group=group, version=version, plural="", area="", lifecycle=False),
                called=f"{name} of {api_version}, managed",
            ),
            read=self._readings.managed,
            dependents=dependents,
            ending=partial(managed_ending, namespace=self._namespace),
            missed_by=missed_by,
            writer=RESOURCE_FIELD_MANAGER,
            lingers=LINGERS,
        )
        return entry


def watched_for(settings: Settings) -> tuple[Watched, ...]:
    return ClaimsWatch(settings).watched()
