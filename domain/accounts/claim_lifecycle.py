"""The lifecycle of an AccountClaim: dispatch by its kind, and the lifecycle of a claim on a pool.

    "" --> Pending --the pool's workflow binds an account--> (OU, Secret) --> Ready
    deleted --> keys rotated --> cleaned in every region --> account free for its legal entity --> gone

The Account must name the claim as its holder before anything is copied. While a deleted claim has other finalizers,
nothing is released. The tenant's key is deleted first, so that nothing new is created during the clean-up. If the
clean-up keeps failing, the Account becomes Failed and loses its link to the claim, and the clean-up continues.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.accounts import claim_byoc, claim_fake, claim_fleet
from domain.accounts.account_closing import closing, has_begun, why_freed
from domain.accounts.actions.account_cleanup import CleanGlobal, CleanRegion
from domain.accounts.actions.handover import Fulfil, Release, ReleaseAccount
from domain.accounts.actions.iam_identities import RotateKeys
from domain.accounts.claim_steps import invalid, taken_in_hand, uid_recorded
from domain.accounts.claim_validation import spec_fault
from domain.accounts.config import key_faults
from domain.accounts.force_release import release_reason
from domain.accounts.naming import secret_of, support_role_arn
from domain.accounts.observed import ClaimWorld
from domain.accounts.problem_conditions import with_claim_conditions
from domain.accounts.resources import Account, ClaimState
from domain.accounts.state_conditions import with_claim_state
from domain.decision import Action, Decision
from domain.refusal import ErrorType
from domain.resource import condition_of

# How long a new claim waits, so that the pool's pass can bind it without a write conflict.
POOLS_TURN = timedelta(seconds=2)
# How long a bound claim waits for the pool's pass, which also hands the account over. That takes at most five seconds.
HAND_OVER_TURN = timedelta(seconds=7)
CLEANUP_TRIES = 3  # refusals until the Account becomes Failed (cleaning continues)
PENDING_MESSAGE = "Attempting to claim account"
NOT_MOVED = frozenset({"", "ROOT"})
DEFAULT_REGIONS = {"aws": "us-east-1", "aws-us-gov": "us-gov-east-1"}


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
        return _releasing(world, now)
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
    # A claim that is being handed over becomes Ready in one write; only a claim that waits shows Pending.
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
    until = born + (HAND_OVER_TURN if bound else POOLS_TURN) if born else None
    return until if until and now < until else None


def _unbound(world: ClaimWorld) -> Decision:
    claim = world.claim
    pool = claim.spec.account_pool or world.config.default_pool
    if not pool:
        problem = world.config.problems.get("accountpool") or "marks no pool as default"
        why = f"spec.accountPool is empty, and {key_faults({'accountpool': problem})}"
        return world.waiting(why, "ConfigMap")
    if not world.pool_exists:
        return world.waiting(f"AccountPool {pool} does not exist", f"AccountPool/{pool}")
    why = "can't find a suitable account to claim"
    return world.waiting(f"{why}: {world.unserved}" if world.unserved else why, f"AccountPool/{pool}")


def _bound(world: ClaimWorld, now: datetime) -> Decision:
    claim, account = world.claim, world.account
    if account is None:
        why = f"Account {claim.spec.account_link} does not exist: blank spec.accountLink to get another account"
        return world.waiting(why, f"Account/{claim.spec.account_link}")
    if world.held is None:
        why = f"Account {account.metadata.name} does not name this claim in spec.claimLink: it is not handed over"
        return world.waiting(why, "spec.accountLink or the Account's spec.claimLink")
    if stopped := world.forbidden(account.spec.aws_account_id) or world.paused(account):
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


def _releasing(world: ClaimWorld, now: datetime) -> Decision:
    account = world.held
    if waits := world.given_up():
        return waits
    if others := world.others_finalizers:
        return world.waiting(f"the release waits for other finalizers: {others}", "other finalizers")
    if claim_byoc.of_customer(world):
        return claim_byoc.releasing(world, now)
    if account is None:
        return world.working("it holds no Account any more", world.drop_finalizer())
    if forbidden := world.forbidden(account.spec.aws_account_id, "a person"):
        return forbidden
    if account.unclean and (recording := uid_recorded(world, account)):
        return recording
    # Only the Account's annotation counts: a tenant can annotate its own claim, and would keep a working key.
    if why := release_reason(account):
        return world.working(f"release without a clean-up: {why}", _release(world, account, Release.UNCLEANED))
    if paused := world.paused(account):
        return paused
    if cleaning := () if has_begun(world, account) else _cleaning(world, account):
        return _clean(world, account, cleaning)
    release = _release(world, account, Release.FREE)
    if closed := closing(world, account, release, now):
        return closed
    why = f"{account.metadata.name} is clean{why_freed(world)}"
    return world.working(why, release)


def _cleaning(world: ClaimWorld, account: Account) -> tuple[Action, ...]:
    claim, known = world.claim, world.known
    member = world.member_of(account)
    if not account.spec.aws_account_id:
        return ()
    if stripping := claim_fleet.strip(world, account):
        return stripping
    if world.rotate_keys and not known.keys_rotated and account.spec.iam_user_secret:
        return (
            RotateKeys(
                **member, owner=account.key, iam_user_id=account.iam_user_id, secret=account.spec.iam_user_secret
            ),
        )
    if world.stands_in(account):  # a shared development account
        return ()
    regions = tuple(dict.fromkeys(r.name for r in claim.spec.aws.regions if r.name)) or (
        DEFAULT_REGIONS[world.config.partition],
    )
    actions: list[Action] = [CleanRegion(**member, region=region) for region in regions if region not in known.cleaned]
    if "global" not in known.cleaned:
        actions.append(CleanGlobal(**member, region=regions[0]))
    return tuple(actions)


def _clean(world: ClaimWorld, account: Account, cleaning: tuple[Action, ...]) -> Decision:
    refusals = [refusal for action in cleaning if (refusal := world.refused(action.slot)) is not None]
    stuck = [r for r in refusals if r.attempts >= CLEANUP_TRIES and r.type is not ErrorType.BUG]
    why = "; ".join(refusal.message for refusal in refusals) or f"clean {account.metadata.name}"
    if stuck and not account.unclean:
        return world.working(why, *cleaning, _release(world, account, Release.FAILED))
    return world.working(why, *cleaning)


def _release(world: ClaimWorld, account: Account, how: Release) -> ReleaseAccount:
    claim = world.claim
    return ReleaseAccount(
        claim=claim.key,
        account=account.metadata.name,
        legal_entity=claim.spec.legal_entity,
        how=how,
        secret_name=claim.secret_name,
    )
