"""What the resource claims area watches: its kinds, claims' Namespaces, and the kinds that handles manage.

`domain/claims/relations.py` says which lifecycles a change wakes. A provider's change may concern every claim, and
edits come in bursts, so its wakes are gathered.
"""

from __future__ import annotations

from domain.claims import (
    RESOURCE_CLAIM,
    RESOURCE_HANDLE,
    RESOURCE_POOL,
    RESOURCE_POOL_SCALING,
    RESOURCE_PROVIDER,
    binder,
)
from domain.claims.domain_names import DomainNames
from domain.claims.relations import relations_of
from domain.identity import Key
from engine.kube.reflector import Followed
from engine.settings import Settings
from starters.watch.claim_deletions import claim_ending, claim_of, handle_ending
from starters.watch.claim_projections import Readings
from starters.watch.projection import Projection
from starters.watch.projection_index import Index
from starters.watch.watched_kinds import Carried, Pacing, Watched, read_nothing

AREA = "claims"

# Seconds for which the wakes after edits of providers are gathered, because providers are often applied in sets.
PROVIDER_EDITS_GATHER = 0.5
# Seconds until the watcher opens a workflow that the binder or a pool should have opened. The binder opens claims'
# workflows when no claim waits, after fifteen seconds at most; to open them sooner would slow a burst down. A pool
# opens the workflows of its new handles, except handles whose resources could not be created.
RELIEVED = 20.0
MADE_BY_POOL = 5.0


def handle_delegate(handle: Projection, index: Index) -> Key:
    """The object whose workflow is responsible for the handle: the handle's claim, or the handle itself.

    The handle itself is responsible if the claim is absent, detached or paused, or if a label tells Perdure to ignore
    the claim or the handle.
    """
    claim = claim_of(handle, index)
    return claim.key if claim and not handle.fact("ignored") and not _gives_up(claim) else handle.key


def _gives_up(claim: Projection) -> bool:
    return bool(claim.fact("detached") or claim.fact("ignored") or claim.fact("paused"))


def watched_for(settings: Settings) -> tuple[Watched, ...]:
    namespace, readings = settings.claims_namespace, Readings(settings)
    relations = relations_of(DomainNames(domain=settings.claims_domain), namespace)

    def claim_delegate(claim: Projection, _: Index) -> Key:
        return binder(settings.claims_domain, claim.key.cluster) if claim.fact("unbound") else claim.key

    return (
        Watched(
            Followed(RESOURCE_CLAIM),
            read=readings.claim,
            relations=relations,
            carried=Carried(claim_delegate, relieved=RELIEVED),
            ending=claim_ending,
        ),
        Watched(
            Followed(RESOURCE_HANDLE, namespace),
            read=readings.handle,
            relations=relations,
            carried=Carried(handle_delegate, from_birth=True, relieved=MADE_BY_POOL),
            ending=handle_ending,
        ),
        Watched(Followed(RESOURCE_POOL, namespace), read=readings.pool, relations=relations),
        Watched(Followed(RESOURCE_POOL_SCALING, namespace), read=readings.scaling, relations=relations),
        Watched(
            Followed(RESOURCE_PROVIDER, namespace),
            read=read_nothing,
            relations=relations,
            pacing=Pacing(gathers=PROVIDER_EDITS_GATHER),
        ),
    )
