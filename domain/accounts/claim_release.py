"""The release of an AccountClaim on a pool.

    deleted --> other finalizers are gone --> keys rotated --> cleaned in the claim's regions
            --> account free for its legal entity --> gone

The tenant's key is deleted before the clean-up, so that the tenant creates nothing during it. If the clean-up keeps
failing, the Account becomes Failed and loses its link to the claim, and the clean-up continues.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts import claim_byoc, claim_fleet
from domain.accounts.account_closing import closing, has_begun, why_freed
from domain.accounts.actions.account_cleanup import CleanGlobal, CleanRegion
from domain.accounts.actions.handover import Release, ReleaseAccount
from domain.accounts.actions.iam_identities import RotateKeys
from domain.accounts.claim_first_writes import uid_recorded
from domain.accounts.claim_holder import unclean
from domain.accounts.force_release import release_reason
from domain.accounts.naming import secret_of
from domain.accounts.observed import ClaimWorld
from domain.accounts.protected_accounts import left_alone
from domain.accounts.resources import Account
from domain.decision import Action, Decision
from domain.refusal import ErrorType

CLEANUP_TRIES = 3  # refusals until the Account becomes Failed (cleaning continues)
DEFAULT_REGIONS = {"aws": "us-east-1", "aws-us-gov": "us-gov-east-1"}


def releasing(world: ClaimWorld, now: datetime) -> Decision:
    account = world.held
    if waits := world.given_up():
        return waits
    if others := world.others_finalizers:
        return world.waiting(f"the release waits for other finalizers: {others}", "other finalizers")
    if claim_byoc.of_customer(world):
        return claim_byoc.releasing(world, now)
    if account is None:
        return world.working("it holds no Account any more", world.drop_finalizer())
    if protected := left_alone(world, account.spec.aws_account_id, "a person"):
        return protected
    if unclean(account) and (recording := uid_recorded(world, account)):
        return recording
    # Only the Account's annotation counts: a tenant can annotate its own claim, and would keep a working key.
    if why := release_reason(account):
        return world.working(f"release without a clean-up: {why}", _release(world, account, Release.UNCLEANED))
    if stopped := world.paused(account) or world.lacking("fedramp"):
        return stopped
    if cleaning := () if has_begun(world, account) else _cleaning(world, account):
        return _clean(world, account, cleaning)
    release = _release(world, account, Release.FREE)
    why = f"{account.metadata.name} is clean{why_freed(world)}"
    return closing(world, account, release, now) or world.working(why, release)


def _cleaning(world: ClaimWorld, account: Account) -> tuple[Action, ...]:
    claim, known = world.claim, world.known
    member, key = world.member_of(account), account.spec.iam_user_secret
    if not (key or claim.of_fleet_manager or known.fleet_principal):  # a person blanked the Secret's name
        key = secret_of(account.metadata.name)
    if not account.spec.aws_account_id:
        return ()
    if stripping := claim_fleet.strip(world, account):
        return stripping
    if key and world.rotate_keys and not known.keys_rotated:
        return (RotateKeys(**member, owner=account.key, iam_user_id=account.iam_user_id, secret=key),)
    if world.stands_in(account):  # a shared development account
        return ()
    named = tuple(dict.fromkeys(r.name for r in claim.spec.aws.regions if r.name))
    regions = named or (DEFAULT_REGIONS[world.config.partition],)
    actions: list[Action] = [CleanRegion(**member, region=region) for region in regions if region not in known.cleaned]
    if "global" not in known.cleaned:
        actions.append(CleanGlobal(**member, region=regions[0]))
    return tuple(actions)


def _clean(world: ClaimWorld, account: Account, cleaning: tuple[Action, ...]) -> Decision:
    refusals = [refusal for action in cleaning if (refusal := world.refused(action.slot)) is not None]
    stuck = [r for r in refusals if r.attempts >= CLEANUP_TRIES and r.type is not ErrorType.BUG]
    why = "; ".join(refusal.message for refusal in refusals) or f"clean {account.metadata.name}"
    release = (_release(world, account, Release.FAILED),) if stuck and not unclean(account) else ()
    return world.working(why, *cleaning, *release)


def _release(world: ClaimWorld, account: Account, how: Release) -> ReleaseAccount:
    claim = world.claim
    return ReleaseAccount(
        claim=claim.key,
        account=account.metadata.name,
        legal_entity=claim.spec.legal_entity,
        how=how,
        secret_name=claim.secret_name,
    )
