"""The lifecycle of an AccountClaim: dispatch by type of claim, and the lifecycle of a claim on a pool.

    "" --> Pending --the pool's workflow binds an account--> (OU, Secret) --> Ready
    deleted --> released (`claim_release.py`) --> gone

The Account must name the claim as its holder (`claim_holder.py`) before anything is copied.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.accounts import claim_byoc, claim_fake, claim_fleet
from domain.accounts.actions.handover import BindWithoutPool, Fulfil
from domain.accounts.claim_first_writes import taken_in_hand
from domain.accounts.claim_release import releasing
from domain.accounts.claim_validation import invalid, spec_fault
from domain.accounts.config import key_faults
from domain.accounts.naming import secret_of
from domain.accounts.observed import ClaimWorld
from domain.accounts.problem_conditions import with_claim_conditions
from domain.accounts.protected_accounts import left_alone
from domain.accounts.resources import Account, ClaimState
from domain.accounts.state_conditions import with_claim_state
from domain.accounts.support_role import support_role_arn
from domain.decision import Decision
from domain.resource import condition_of

# How long a new claim waits, so that the pool's pass can bind it without a write conflict.
POOLS_TURN = timedelta(seconds=2)
# How long a bound claim waits for the pool's pass, which also hands the account over. That takes at most five seconds.
HAND_OVER_TURN = timedelta(seconds=7)
PENDING_MESSAGE = "Attempting to claim account"
NOT_MOVED = frozenset({"", "ROOT"})


def decide(world: ClaimWorld, now: datetime) -> Decision:
    if not world.exists:
        return world.gone()
    return with_claim_conditions(world, _decide(world, now), now)


def _decide(world: ClaimWorld, now: datetime) -> Decision:
    claim = world.claim
    # A claim that holds an account is not handled as a fake: the account is returned even if the claim becomes fake.
    if claim.fake and world.held is None:
        return claim_fake.decide(world, now)
    if claim.metadata.deleting:
        return releasing(world, now)
    if claim_byoc.of_customer(world):
        return claim_byoc.decide(world, now)
    return _on_pool(world, now)


def _on_pool(world: ClaimWorld, now: datetime) -> Decision:
    claim = world.claim
    if until := _pools_turn(world, now):
        why = "a new claim waits a moment for its pool to bind it"
        return world.waiting(why, "AccountPool", deadline=until, at="the claim shows Pending")
    if step := taken_in_hand(world):
        return step
    satisfied = claim.spec.account_link and claim.status.state == ClaimState.READY
    if satisfied and claim.spec.account_ou not in NOT_MOVED:
        return world.settled(f"holds {claim.spec.account_link}")
    if fault := invalid(world, now):
        return fault
    step = _bound(world, now) if claim.spec.account_link else _unbound(world)
    # A claim whose account is being handed over becomes Ready in one write; only a claim that waits shows Pending.
    idle = claim.status.state == ClaimState.NEW and all(world.refused(action.slot) for action in step.actions)
    if idle or claim.status.state == ClaimState.ERROR:
        return world.reaching(ClaimState.PENDING, "Unclaimed", PENDING_MESSAGE, now, why="search for an account")
    return step


def _pools_turn(world: ClaimWorld, now: datetime) -> datetime | None:
    claim = world.claim
    if world.by_pool or claim.status.state != ClaimState.NEW or spec_fault(claim):
        return None
    born = claim.metadata.creation_timestamp  # whole seconds
    bound = bool(claim.spec.account_link) and world.held is not None
    turn = HAND_OVER_TURN if bound else POOLS_TURN
    until = born + turn if born else None
    # The API server's clock may be ahead of ours.
    return until if until and now < until <= now + turn else None


def _unbound(world: ClaimWorld) -> Decision:
    claim = world.claim
    if account := world.held:
        link = world.write({"spec": {"accountLink": account.metadata.name}}, note="record accountLink")
        return world.working(f"link {account.metadata.name} again", link)
    pool = claim.spec.account_pool or world.config.default_pool
    if not pool:
        problem = world.config.problems.get("accountpool") or "marks no pool as default"
        why = f"spec.accountPool is empty, and {key_faults({'accountpool': problem})}"
        return world.waiting(why, "ConfigMap")
    if not world.pool_exists:
        bind = BindWithoutPool(claim=claim.key, pool=pool)
        refusal = world.refused(bind.slot)
        found = f"; {refusal.message}" if refusal else ""
        return world.waiting(f"AccountPool {pool} does not exist{found}", f"AccountPool/{pool}", bind)
    why = "can't find a suitable account to claim"
    return world.waiting(f"{why}: {world.unserved}" if world.unserved else why, f"AccountPool/{pool}")


def _bound(world: ClaimWorld, now: datetime) -> Decision:
    claim, account = world.claim, world.account
    if account is None:
        why = f"Account {claim.spec.account_link} does not exist: blank spec.accountLink to get another account"
        return world.waiting(why, f"Account/{claim.spec.account_link}")
    if world.held is None:
        why = f"Account {account.metadata.name} does not name this claim in spec.claimLink, so it is not handed over"
        return world.waiting(why, "spec.accountLink or the Account's spec.claimLink")
    if stopped := left_alone(world, account.spec.aws_account_id) or world.paused(account):
        return stopped
    if lacking := world.lacking("root", "base", "fedramp"):
        return lacking
    if world.known.fulfilled != account.metadata.name:
        return world.working(f"hand over {account.metadata.name}", _fulfil(world, account))
    if equipping := claim_fleet.equip(world, account):
        return equipping
    message = f"Account claim fulfilled by {account.metadata.name}"
    status = claim.status
    if condition_of(status.conditions, "Unclaimed") is None:  # clients expect both conditions
        status = with_claim_state(status, ClaimState.PENDING, "Unclaimed", "AccountClaimed", PENDING_MESSAGE, now)
    return world.reaching(ClaimState.READY, "Claimed", message, now, status=status)


def _fulfil(world: ClaimWorld, account: Account) -> Fulfil:
    claim = world.claim
    own = support_role_arn(world.config.partition, account.spec.aws_account_id, account.iam_user_id)
    # If the claim names its own role, `supportRoleARN` does not show whether the account was moved.
    names_role = claim.spec.manual_sts_mode or claim.spec.sts_role_arn
    placed = claim.spec.account_ou not in NOT_MOVED and claim.spec.support_role_arn == own and not names_role
    key = account.spec.iam_user_secret or secret_of(account.metadata.name)
    return Fulfil(
        claim=claim.key,
        account=account.metadata.name,
        account_id=account.spec.aws_account_id,
        legal_entity=claim.spec.legal_entity,
        root=world.config.root,
        base=world.config.base,
        secret_name=claim.secret_name,
        source_secret="" if claim.of_fleet_manager else key,
        support_role_arn=claim.spec.support_role_arn if names_role else own,
        placed=placed,
    )
