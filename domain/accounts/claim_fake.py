"""A fake claim (annotation `managed.openshift.com/fake: "true"`), for tests: no account, only a Secret with dummy keys.

"" --> Secret --> Ready      deleted --> Secret deleted --> gone
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.actions.claim_secrets import FakeSecret
from domain.accounts.claim_first_writes import taken_in_hand
from domain.accounts.claim_validation import invalid
from domain.accounts.observed import ClaimWorld
from domain.accounts.resources import ClaimState
from domain.decision import Decision

FULFILLED = "Fake ccount claim fulfilled"  # the replaced operator's spelling, which clients may compare


def decide(world: ClaimWorld, now: datetime) -> Decision:
    claim = world.claim
    if claim.metadata.deleting:
        return _ending(world)
    if step := taken_in_hand(world):
        return step
    if fault := invalid(world, now):
        return fault
    if claim.status.state == ClaimState.READY:
        return world.settled("a fake claim: the key in its Secret is a dummy")
    if not world.known.fake_secret:
        return world.working("write dummy keys into the claim's Secret", _secret(world, wanted=True))
    return world.reaching(ClaimState.READY, "Claimed", FULFILLED, now, why="its Secret exists")


def _ending(world: ClaimWorld) -> Decision:
    if waits := world.given_up():
        return waits
    if world.claim.secret_name and world.known.fake_secret is not False:
        return world.working("delete its Secret", _secret(world, wanted=False))
    return world.working("its Secret is deleted", world.drop_finalizer())


def _secret(world: ClaimWorld, *, wanted: bool) -> FakeSecret:
    claim = world.claim
    return FakeSecret(claim=claim.key, secret=claim.secret_name, wanted=wanted)
