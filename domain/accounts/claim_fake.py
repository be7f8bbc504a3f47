"""A fake claim (annotation `managed.openshift.com/fake: "true"`): no account, only a Secret with dummy keys.

    "" --> Secret --> Ready      deleted --> Secret deleted --> gone

It is for trying out what stands around claims. No Account is linked and no cloud is asked.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.actions.fake import FakeSecret
from domain.accounts.claim_steps import DELETING, invalid, patched, status_written, taken_in_hand, waiting, working
from domain.accounts.claim_validation import spec_fault
from domain.accounts.constants import FINALIZER
from domain.accounts.finalizers import given_up
from domain.accounts.resources import ClaimState
from domain.accounts.status import with_claim_state
from domain.accounts.worlds import ClaimWorld
from domain.decision import Decision, Outcome

FULFILLED = "Fake ccount claim fulfilled"  # the replaced operator's spelling, which clients may compare


def decide(world: ClaimWorld, now: datetime) -> Decision:
    """What a fake claim needs now."""
    claim = world.claim
    if claim.metadata.deleting:
        return _ending(world)
    if step := taken_in_hand(world):
        return step
    if fault := spec_fault(claim):
        return invalid(world, *fault, now)
    if claim.status.state == ClaimState.READY:
        return Decision(phase=ClaimState.READY, outcome=Outcome.SETTLED, why="a fake claim: its Secret opens nothing")
    if not world.known.fake_secret:
        return working(claim, "write dummy keys into its Secret", _secret(world, wanted=True))
    status = with_claim_state(claim.status, ClaimState.READY, "Claimed", "AccountClaimed", FULFILLED, now)
    return working(claim, "its Secret exists", status_written(world, status))


def _ending(world: ClaimWorld) -> Decision:
    claim = world.claim
    if over := given_up(claim.metadata):
        return waiting(claim, *over, DELETING)
    if spec_fault(claim) is None and world.known.fake_secret is not False:
        return working(claim, "delete its Secret", _secret(world, wanted=False), phase=DELETING)
    remaining = claim.metadata.finalizers_without(FINALIZER)
    drop = patched(world, {"metadata": {"finalizers": remaining}}, note="drop the finalizer")
    return working(claim, "its Secret is deleted", drop, phase=DELETING)


def _secret(world: ClaimWorld, *, wanted: bool) -> FakeSecret:
    claim = world.claim
    return FakeSecret(claim=claim.key, secret=claim.secret_name, wanted=wanted)
