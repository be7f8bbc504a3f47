"""The lifecycle of an Account of a pool.

    ""  --permit, CreateAccount--> Creating --credentials--> InitializingRegions --every region--> PendingVerification
    PendingVerification --case resolved, quotas settled--> Ready
    InitializingRegions --every region, if the Account was Ready before--> Ready
    Creating --with feature.opt_in_regions--> OptingInRegions --> OptInRegionsEnabled --> Creating

People and tools may write any state. If they blank it, the lifecycle starts again with the same AWS account. Failed
stays until it is blanked or retried. Deadlines are 25 minutes in Creating and 51 in InitializingRegions, from the
latest entry into the state (its condition's lastProbeTime).
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from domain.accounts import customer_account
from domain.accounts.account_creation import create_account, creation_timed_out, discard
from domain.accounts.account_deletion import LEFT_LAUNCHES, deleting, launches_to_end
from domain.accounts.actions.account_creation import TagAccount
from domain.accounts.admin_user import key_and_regions, recreated_user, refused_by_iam, secret_recorded
from domain.accounts.aws_account_tags import tags_at_creation
from domain.accounts.claim_holder import lost_link, never_held, unclean, unlinked
from domain.accounts.constants import CREATION_TIMEOUT, FINALIZER, IAM_USER_ID_LABEL, PAUSE_ANNOTATION
from domain.accounts.naming import iam_user_id
from domain.accounts.observed import AccountWorld
from domain.accounts.opt_in_regions import before_credentials, of_ready_account, opting_in
from domain.accounts.pending_verification import (
    READY_MESSAGE,
    pending_verification,
    quotas_of_ready_account,
    to_pending_verification,
)
from domain.accounts.problem_conditions import with_account_conditions
from domain.accounts.protected_accounts import left_alone, only_shown
from domain.accounts.region_initialization import Done, entered_at, initializing, regions_done
from domain.accounts.resources import OPT_IN_STATES, PROGRESSING_STATES, AccountState
from domain.accounts.state_conditions import failure_of, released, with_condition
from domain.accounts.support_role import support_role, without_jump_role
from domain.control_annotations import retry_wanted
from domain.decision import Action, Decision, Outcome
from domain.writes import JsonPatch

# States with work inside the AWS account.
_WITHIN_THE_ACCOUNT = frozenset(
    {AccountState.CREATING, AccountState.OPT_IN_REGIONS_ENABLED, AccountState.INITIALIZING_REGIONS}
)


def decide(world: AccountWorld, now: datetime) -> Decision:
    if not world.exists:
        return world.gone()
    return with_account_conditions(world, _decide(world, now), now)


def _decide(world: AccountWorld, now: datetime) -> Decision:
    account = world.account
    if account.metadata.deleting:
        return deleting(world, now)
    if account.paused:
        why = f"Account {account.metadata.name} is paused: remove its annotation {PAUSE_ANNOTATION} to continue"
        return world.waiting(why, "removal of the annotation", phase="Paused")
    if not only_shown(world) and (protected := left_alone(world, account.spec.aws_account_id)):
        return protected
    if lacking := world.lacking("fedramp"):
        return lacking
    if retry_wanted(account.metadata):
        return _retry(world, now)
    if account.failed:
        return _failed(world)
    if FINALIZER not in account.metadata.finalizers or not account.iam_user_id:
        return _prepare(world)
    if account.customers:
        return customer_account.decide(world, now)
    if account.status.state in PROGRESSING_STATES | OPT_IN_STATES and not account.spec.aws_account_id:
        return _unrecorded(world)
    steps: dict[str, Done] = {
        AccountState.NEW: create_account,
        AccountState.CREATING: _creating,
        AccountState.OPTING_IN_REGIONS: opting_in,
        AccountState.OPT_IN_REGIONS_ENABLED: _credentials,  # without a deadline: opting in takes hours
        AccountState.INITIALIZING_REGIONS: partial(initializing, done=_initialized),
        AccountState.PENDING_VERIFICATION: pending_verification,
        AccountState.READY: _ready,
    }
    step = steps.get(account.status.state)
    if only_shown(world) and account.status.state in _WITHIN_THE_ACCOUNT:
        step = _shown_as_ready
    if step is None:
        why = f"status.state {account.status.state!r} is unknown to this version of Perdure: blank it to start again"
        return world.waiting(why, "a change of status.state")
    return step(world, now)


def _prepare(world: AccountWorld) -> Decision:
    meta = world.account.metadata
    patch: JsonPatch = {
        "metadata": {
            "finalizers": [*meta.finalizers, *([] if FINALIZER in meta.finalizers else [FINALIZER])],
            "labels": {IAM_USER_ID_LABEL: world.account.iam_user_id or iam_user_id(meta.name, meta.uid)},
        },
        "spec": world.account.always_written,
    }
    return world.working("set finalizer and IAM user id", world.write(patch, note="finalizer, iamUserId"))


def _unrecorded(world: AccountWorld) -> Decision:
    """Blank the state of an Account whose AWS account id the replaced operator did not record. The organization's
    workflow then searches for the AWS account by name and e-mail address.
    """
    blank = world.account.status.model_copy(update={"state": AccountState.NEW})
    why = f"state {world.account.status.state}, but spec.awsAccountID is empty: search AWS for the account by its name"
    return world.working(why, world.write_status(blank, note="blank status.state"))


def _creating(world: AccountWorld, now: datetime) -> Decision:
    account = world.account
    entered = entered_at(account, AccountState.CREATING)
    if entered is None:  # the state was set by hand: the deadline starts now
        message = "AWS account already created"
        return world.entering(AccountState.CREATING, message, now, why="start the creation deadline")
    if decision := before_credentials(world, now) or creation_timed_out(world, entered, now):
        return decision
    deadline = entered + CREATION_TIMEOUT
    return _credentials(world, now, deadline, "the account fails with CreationTimeout")


def _shown_as_ready(world: AccountWorld, now: datetime) -> Decision:
    why = f"development mode: nothing is done in {world.account.spec.aws_account_id}, a payer or protected account"
    return world.entering(AccountState.READY, READY_MESSAGE, now, why=why)


def _credentials(world: AccountWorld, now: datetime, deadline: datetime | None = None, at: str = "") -> Decision:
    account, known = world.account, world.known
    if decision := without_jump_role(world, "ami-owner", deadline=deadline, at=at) or refused_by_iam(world, now):
        return decision
    if actions := _credential_actions(world):
        return world.working("create credentials and list the regions", *actions, deadline=deadline, at=at)
    if account.spec.iam_user_secret != known.admin_secret:
        return world.working("record the Secret", secret_recorded(world), deadline=deadline, at=at)
    message, why = "Initializing Regions", "the credentials are ready"
    return world.entering(AccountState.INITIALIZING_REGIONS, message, now, why=why)


def _credential_actions(world: AccountWorld) -> list[Action]:
    account, known = world.account, world.known
    actions: list[Action] = []
    if not known.tagged:
        fresh, tags = bool(known.created_account_id), tags_at_creation(world.config)
        actions.append(TagAccount(account_id=account.spec.aws_account_id, tags=tags, fresh=fresh))
    if not known.support_role:
        actions.append(support_role(world))
    return [*actions, *key_and_regions(world)]


def _initialized(world: AccountWorld, now: datetime) -> Decision:
    return to_pending_verification(world, now, regions_done(world))


def _ready(world: AccountWorld, now: datetime) -> Decision:
    account = world.account
    spec, status = account.spec, account.status
    if spec.claim_link and not status.claimed:
        holder = f"{spec.claim_link} (Namespace: {spec.claim_link_namespace})"
        message = f"Account {account.metadata.name} was claimed: {holder}"
        # The replaced operator writes this reason.
        conditions = with_condition(status.conditions, "Claimed", "InitializingRegions", message, now)
        claimed = status.model_copy(update={"claimed": True, "conditions": conditions})
        return world.working(message, world.write_status(claimed, note="claimed"))
    if (claim := world.claim) and lost_link(claim, account):
        why = f"spec.claimLink is empty, but claim {claim.key.path} still has this Account: no other claim gets it"
        return world.waiting(why, "a restored spec.claimLink, or the release of the claim")
    if unlinked(account) and not never_held(account):  # a release was interrupted between its two writes
        return world.working("complete the release", world.write_status(released(status, now), note="released"))
    if decision := recreated_user(world) or of_ready_account(world, now) or quotas_of_ready_account(world, now):
        return decision
    if unlinked(account):
        why = "status.claimed is true, but no claim ever held this Account: no claim gets it"
        return world.waiting(why, "status.claimed")
    holder = f"held by claim {spec.claim_link_namespace}/{spec.claim_link}"
    return world.settled(holder if spec.claim_link else "ready to be claimed")


def _failed(world: AccountWorld) -> Decision:
    account = world.account
    given_by_pool = account.pool_owned and not account.spec.byoc
    if not account.spec.aws_account_id and given_by_pool and not world.known.request_id:
        return discard(world, "it failed before it had an AWS account")
    if ends := launches_to_end(world):
        return world.working(LEFT_LAUNCHES, *ends)
    failure = failure_of(account.status)
    why = f"{failure.reason}: {failure.message}" if failure else f"status.state is {account.status.state}"
    if claim := _cleaning_claim(world):
        return world.waiting(f"{why}; the release of {claim} repeats the clean-up", claim)
    return Decision(
        phase=AccountState.FAILED,
        outcome=Outcome.FAILED,
        why=why,
        waits_for=("perdure retry, or an empty status.state",),
        owner=world.owner,
    )


def _cleaning_claim(world: AccountWorld) -> str:
    return world.claim.key.path if world.claim is not None and unclean(world.account) else ""


def _retry(world: AccountWorld, now: datetime) -> Decision:
    account = world.account
    if account.failed and not _cleaning_claim(world):
        if account.status.claimed and account.spec.claim_link and not account.customers:
            # Only a Ready account gets a claim. Its regions are not initialised again, because it may be in use.
            why = "Ready again, because a retry was requested"
            return world.entering(AccountState.READY, READY_MESSAGE, now, why=why)
        blank = account.status.model_copy(update={"state": AccountState.NEW})
        written = world.write_status(blank, note="retry: blank status.state")
        return world.working("start again, because a retry was requested", written)
    return world.retried(retry_wanted(account.metadata))
