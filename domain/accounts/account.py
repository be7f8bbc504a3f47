"""The lifecycle of an Account of a pool.

    ""  --permit, CreateAccount--> Creating --credentials--> InitializingRegions --every region--> PendingVerification
                                   |     ^                                           |                  | case resolved,
                         (feature) v     | no deadline                               |                  | quotas settled
                     OptingInRegions --> OptInRegionsEnabled                         |                  v
                                                 (was Ready before) Ready <----------+                Ready

Any state may be written by people and tools: a blank one starts again (an AWS account id is kept), Failed stays until
somebody blanks it or asks for a retry. Deadlines are absolute: 25 minutes in Creating, 51 in InitializingRegions, both
counted from the moment the state was entered last (its condition's lastProbeTime).
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from domain.accounts import ACCOUNT_POOL, customer_account
from domain.accounts.account_steps import (
    out_of_bounds,
    ownership_tags,
    patched,
    protected,
    spec_written,
    status_written,
    waiting,
    working,
)
from domain.accounts.actions.creation import LIMIT_CODES, TRANSIENT_REASONS, AwaitAccount, CreateAccount, TagAccount
from domain.accounts.actions.identities import EnsureSupportRole
from domain.accounts.claim_steps import still_names
from domain.accounts.config_condition import told_by_account
from domain.accounts.constants import (
    AT_LIMIT_CONDITION,
    AT_LIMIT_REASON,
    CREATION_TIMEOUT,
    DEVELOPMENT_ACCOUNT,
    DEVELOPMENT_CASE,
    FINALIZER,
    IAM_USER_ID_LABEL,
    OWNER_TAG,
)
from domain.accounts.deletion import deleting, region_sweeps
from domain.accounts.initialization import (
    Done,
    admin_user,
    entered_at,
    iam_failure,
    initializing,
    list_regions,
    none_initialized,
    refused_for_good,
    refused_regions,
)
from domain.accounts.naming import email_of, iam_user_id, secret_of
from domain.accounts.opt_in import before_credentials, of_ready_account, opting_in
from domain.accounts.resources import PROGRESSING_STATES, Account, AccountState
from domain.accounts.status import failure_of, released, with_account_state, with_condition, with_failure
from domain.accounts.verification import (
    READY_MESSAGE,
    pending_verification,
    quotas_of_ready_account,
    to_pending_verification,
)
from domain.accounts.worlds import AccountWorld, Verdict
from domain.decision import Action, Decision, Outcome
from domain.identity import Key
from domain.levers import RETRIED, retry_wanted
from domain.refusal import ErrorType
from domain.resource import condition_of
from domain.writes import Delete, JsonPatch

# The states in which something is made in the AWS account.
_WITHIN_THE_ACCOUNT = frozenset(
    {AccountState.CREATING, AccountState.OPT_IN_REGIONS_ENABLED, AccountState.INITIALIZING_REGIONS}
)


def decide(world: AccountWorld, now: datetime) -> Decision:
    """What an Account needs now."""
    if not world.exists:
        return Decision(phase="Gone", outcome=Outcome.GONE, why="the Account does not exist any more")
    decision = told_by_account(world, _decide(world, now), now)
    return decision.model_copy(update={"owner": _owner(world.account)})


def _decide(world: AccountWorld, now: datetime) -> Decision:
    account = world.account
    if account.metadata.deleting:
        return deleting(world, now)
    if account.paused:
        return waiting(
            account,
            "reconciliation is paused by an annotation of the Account",
            "removal of the annotation",
            phase="Paused",
        )
    if protected(world) and not out_of_bounds(world):
        return waiting(
            account,
            f"AWS account {account.spec.aws_account_id} is a payer or protected account: nothing is done in it",
            "its removal",
        )
    if not world.config.present:
        return waiting(account, "the operator's ConfigMap does not exist", "ConfigMap")
    if world.config.missing("fedramp"):
        return waiting(account, f"ConfigMap key fedramp: {world.config.problems['fedramp']}", "ConfigMap")
    if retry_wanted(account.metadata):
        return _retry(world)
    if account.failed:
        return _failed(world)
    if FINALIZER not in account.metadata.finalizers or not account.iam_user_id:
        return _prepare(world)
    if account.customers:
        return customer_account.decide(world, now)
    if account.status.state in PROGRESSING_STATES and not account.spec.aws_account_id:
        return _unrecorded(world)
    steps: dict[str, Done] = {
        AccountState.NEW: _new,
        AccountState.CREATING: _creating,
        AccountState.OPTING_IN_REGIONS: opting_in,
        AccountState.OPT_IN_REGIONS_ENABLED: _opted_in,
        AccountState.INITIALIZING_REGIONS: partial(initializing, done=_initialized),
        AccountState.PENDING_VERIFICATION: pending_verification,
        AccountState.READY: _ready,
    }
    step = steps.get(account.status.state)
    if out_of_bounds(world) and account.status.state in _WITHIN_THE_ACCOUNT:
        step = _only_shown
    if step is None:
        return waiting(
            account, f"state {account.status.state!r} is not served by this version", "a change of status.state"
        )
    return step(world, now)


# --- from nothing to Creating ---


def _prepare(world: AccountWorld) -> Decision:
    meta = world.account.metadata
    patch: JsonPatch = {
        "metadata": {
            "finalizers": [*meta.finalizers, *([] if FINALIZER in meta.finalizers else [FINALIZER])],
            "labels": {IAM_USER_ID_LABEL: world.account.iam_user_id or iam_user_id(meta.name, meta.uid)},
        },
        "spec": world.account.always_written,
    }
    return working(world.account, "set finalizer and IAM user id", patched(world, patch, note="finalizer, iamUserId"))


def _new(world: AccountWorld, now: datetime) -> Decision:
    account, known = world.account, world.known
    if account.status.claimed:
        return waiting(account, "status.claimed is true, but status.state is empty", "status.state or status.claimed")
    if account.spec.aws_account_id:
        status = with_account_state(account.status, AccountState.CREATING, _creating_message(world), now)
        if world.dev_mode and account.spec.aws_account_id == DEVELOPMENT_ACCOUNT:
            status = status.model_copy(update={"support_case_id": DEVELOPMENT_CASE})
        return working(account, "the AWS account exists", status_written(world, status))
    if created := DEVELOPMENT_ACCOUNT if world.dev_mode else known.created_account_id:
        # The Secret's name is known by now: a write less than when the Secret is there. In development mode there may
        # never be one, and an account that names none is given to no claim.
        secret = account.spec.iam_user_secret if world.dev_mode else secret_of(account.metadata.name)
        spec = account.spec.model_copy(update={"aws_account_id": created, "iam_user_secret": secret})
        return working(account, f"record {created}", spec_written(world, spec, note="record awsAccountID"))
    email = email_of(account.metadata.name, world.email_domain)
    if known.request_id:
        wait = AwaitAccount(name=account.metadata.name, email=email, request_id=known.request_id)
        return working(account, f"AWS is creating the account ({known.request_id})", wait)
    if known.failure and known.failure not in LIMIT_CODES | TRANSIENT_REASONS:
        failed = with_failure(
            account.status, "AccountCreationFailed", known.failure, "Failed to create AWS Account", now
        )
        return working(account, f"AWS refused to create the account: {known.failure}", status_written(world, failed))
    if (refusal := world.refused(CreateAccount.activity, ErrorType.INVALID)) is not None:
        failed = with_failure(
            account.status, "AccountCreationFailed", refusal.code, "Failed to create AWS Account", now
        )
        return working(account, f"AWS refused to create the account: {refusal.message}", status_written(world, failed))
    return _wanting(world, now, email)


def _wanting(world: AccountWorld, now: datetime, email: str) -> Decision:
    """No AWS account yet: created when the organization permits it."""
    account, permit = world.account, world.known.permit
    if permit and permit.verdict is Verdict.GRANTED and permit.until and now < permit.until:
        create = CreateAccount(
            name=account.metadata.name,
            email=email,
            until=permit.until,
            search=bool(world.known.inherited),
        )
        return working(
            account, "ask AWS for the account", create, deadline=permit.until, at="the permit to create it expires"
        )
    asks = "the organization's permit to create an account"
    born = account.metadata.creation_timestamp
    zombie_at = born + CREATION_TIMEOUT if born and account.pool_owned else None
    at = "without an AWS account it is deleted and the pool makes another" if zombie_at else ""
    if permit is None or permit.verdict is Verdict.GRANTED:
        limit = world.known.failure  # AWS's own: the organization's permits do not know of it
        if limit not in LIMIT_CODES:
            return waiting(account, f"waits for {asks}", "Organization")
        if zombie_at and now >= zombie_at:
            return _discard(world, f"AWS gave no account within 25 minutes: {limit}")
        why = f"AWS refused to create the account ({limit}): waits for {asks}"
        return waiting(account, why, "Organization", zombie_at, at)
    if zombie_at and now >= zombie_at:
        return _discard(world, "no AWS account within 25 minutes")
    why = permit.message or f"waits for {asks}"
    actions: tuple[Action, ...] = ()
    if permit.verdict is Verdict.LIMIT_REACHED and condition_of(account.status.conditions, AT_LIMIT_CONDITION) is None:
        conditions = with_condition(
            account.status.conditions,
            AT_LIMIT_CONDITION,
            AT_LIMIT_REASON,
            "AWS account limit reached, waiting for capacity",
            now,
        )
        actions = (status_written(world, account.status.model_copy(update={"conditions": conditions})),)
    return Decision(
        phase="Pending",
        outcome=Outcome.WAITING,
        why=why,
        actions=actions,
        waits_for=("Organization", permit.verdict.value),
        deadline=zombie_at,
        at_deadline=at,
    )


def _unrecorded(world: AccountWorld) -> Decision:
    """A state that only an AWS account can have, without its id: the replaced operator wrote the state first.

    From the blank state the organization is searched by name and e-mail address, and what died there is adopted.
    """
    blank = world.account.status.model_copy(update={"state": AccountState.NEW})
    why = f"state {world.account.status.state}, but spec.awsAccountID is empty: search AWS for the account by its name"
    return working(world.account, why, status_written(world, blank, note="blank status.state"))


def _creating_message(world: AccountWorld) -> str:
    return "Creating" if world.known.created_account_id else "AWS account already created"


# --- from Creating to Ready ---


def _creating(world: AccountWorld, now: datetime) -> Decision:
    account = world.account
    entered = entered_at(account, AccountState.CREATING)
    if entered is None:  # set by hand: the clock starts now
        status = with_account_state(account.status, AccountState.CREATING, "AWS account already created", now)
        return working(account, "start the creation deadline", status_written(world, status))
    if decision := before_credentials(world, now):
        return decision
    deadline = entered + CREATION_TIMEOUT
    if now >= deadline:
        failed = with_failure(
            account.status,
            "AccountCreationFailed",
            "CreationTimeout",
            "Creation pending for longer than 25 minutes",
            now,
        )
        return working(account, "creation took longer than 25 minutes", status_written(world, failed))
    return _credentials(world, now, deadline, "the account fails with CreationTimeout")


def _opted_in(world: AccountWorld, now: datetime) -> Decision:
    """Opting in has taken as long as it took: no deadline runs."""
    return _credentials(world, now, None, "")


def _only_shown(world: AccountWorld, now: datetime) -> Decision:
    """Development mode on what is the payer's own account: Ready without identities and regions."""
    why = f"development mode: nothing is done in {world.account.spec.aws_account_id}, a payer or protected account"
    ready = with_account_state(world.account.status, AccountState.READY, READY_MESSAGE, now)
    return working(world.account, why, status_written(world, ready))


def _credentials(world: AccountWorld, now: datetime, deadline: datetime | None, at: str) -> Decision:
    account, known = world.account, world.known
    if not account.spec.aws_account_id:
        why = f"state {account.status.state}, but spec.awsAccountID is empty"
        return waiting(account, why, "spec.awsAccountID", deadline, at)
    if missing := world.config.missing("ami-owner", "support-jump-role"):
        return waiting(account, f"missing in the operator's ConfigMap: {', '.join(missing)}", "ConfigMap", deadline, at)
    if refusal := refused_for_good(world):
        return working(
            account, f"IAM refused: {refusal.message}", status_written(world, iam_failure(account, refusal, now))
        )
    actions = _credential_actions(world)
    if actions:
        return working(account, "create credentials and list the regions", *actions, deadline=deadline, at=at)
    if account.spec.iam_user_secret != known.admin_secret:
        spec = account.spec.model_copy(update={"iam_user_secret": known.admin_secret})
        return working(
            account,
            "record the Secret",
            spec_written(world, spec, note="record iamUserSecret"),
            deadline=deadline,
            at=at,
        )
    status = with_account_state(account.status, AccountState.INITIALIZING_REGIONS, "Initializing Regions", now)
    return working(account, "the credentials are ready", status_written(world, status))


def _credential_actions(world: AccountWorld) -> tuple[Action, ...]:
    account, known, config = world.account, world.known, world.config
    member = {"account_id": account.spec.aws_account_id, "partition": config.partition}
    tags = ownership_tags(world)
    actions: list[Action] = []
    if not known.tagged:
        owner = {OWNER_TAG: config.shard_name or "", **config.compliance_tags}
        fresh = bool(known.created_account_id)
        actions.append(TagAccount(account_id=account.spec.aws_account_id, tags=owner, fresh=fresh))
    if not known.support_role:
        actions.append(
            EnsureSupportRole(**member, iam_user_id=account.iam_user_id, jump_role=config.support_jump_role, tags=tags)
        )
    if not known.admin_secret:
        actions.append(admin_user(world))
    if known.regions is None and not config.fedramp:
        actions.append(list_regions(world))
    return tuple(actions)


def _initialized(world: AccountWorld, now: datetime) -> Decision:
    if failed := none_initialized(world, now):
        return failed
    account, refused = world.account, refused_regions(world)
    note = f" ({len(refused)} regions refused: {', '.join(refused)})" if refused else ""
    if condition_of(account.status.conditions, "Ready") is not None:
        message = "Account support case already resolved; Account Ready"
        return working(
            account, message, status_written(world, with_account_state(account.status, "Ready", message, now))
        )
    return to_pending_verification(world, now, note)


def _ready(world: AccountWorld, now: datetime) -> Decision:
    account = world.account
    spec, status = account.spec, account.status
    if spec.claim_link and not status.claimed:
        message = (
            f"Account {account.metadata.name} was claimed: {spec.claim_link} (Namespace: {spec.claim_link_namespace})"
        )
        conditions = with_condition(
            status.conditions, "Claimed", "InitializingRegions", message, now
        )  # reason as upstream's
        claimed = status.model_copy(update={"claimed": True, "conditions": conditions})
        return working(account, message, status_written(world, claimed, note="claimed"))
    if status.claimed and (claim := world.claim) and still_names(claim, account):
        why = f"spec.claimLink is empty, but claim {claim.key.path} still names this Account: no other claim gets it"
        return waiting(account, why, "spec.claimLink, or the deletion of that claim")
    if status.claimed and not spec.claim_link:  # a release that died between its two writes
        return working(account, "complete the release", status_written(world, released(status, now), note="released"))
    if status.reused and not spec.iam_user_secret and not spec.claim_link and not out_of_bounds(world):
        if not world.known.admin_secret:
            return working(account, "recreate the IAM user", admin_user(world))
        secret = spec.model_copy(update={"iam_user_secret": world.known.admin_secret})
        return working(account, "record the Secret", spec_written(world, secret, note="record iamUserSecret"))
    if decision := of_ready_account(world, now) or quotas_of_ready_account(world, now):
        return decision
    holder = (
        f"held by claim {spec.claim_link_namespace}/{spec.claim_link}" if spec.claim_link else "ready to be claimed"
    )
    return Decision(phase=AccountState.READY, outcome=Outcome.SETTLED, why=holder)


# --- failure and retry ---


def _failed(world: AccountWorld) -> Decision:
    account = world.account
    given_by_pool = account.pool_owned and not account.spec.byoc
    if not account.spec.aws_account_id and given_by_pool and not world.known.request_id:
        return _discard(world, "it failed before it had an AWS account")
    if sweep := region_sweeps(world):
        return working(account, "terminate instances that an interrupted initialisation may have left", *sweep)
    failure = failure_of(account.status)
    why = f"{failure.reason}: {failure.message}" if failure else f"status.state is {account.status.state}"
    return Decision(
        phase=AccountState.FAILED,
        outcome=Outcome.FAILED,
        why=why,
        waits_for=("perdure retry, or an empty status.state",),
    )


def _retry(world: AccountWorld) -> Decision:
    """Honour a retry once: a failed account starts again, keeping its AWS account; any other only notes the token."""
    account = world.account
    token = retry_wanted(account.metadata)
    if account.failed:
        blank = account.status.model_copy(update={"state": AccountState.NEW})
        return working(
            account, "start again, as the retry asks", status_written(world, blank, note="retry: blank status.state")
        )
    patch: JsonPatch = {"metadata": {"annotations": {RETRIED: token}}}
    return working(account, "record the retry", patched(world, patch, note="retry honoured"))


def _discard(world: AccountWorld, why: str) -> Decision:
    """An Account that never had an AWS account gives way to another."""
    account = world.account
    return working(account, f"delete: {why}", Delete(key=world.key, mourner=_pool(world)))


def _pool(world: AccountWorld) -> Key | None:
    """The lifecycle of the pool that owns the Account."""
    meta = world.account.metadata
    owner = next((o for o in meta.owner_references if o.controller and o.kind == ACCOUNT_POOL.name), None)
    if owner is None:
        return None
    cluster = world.key.cluster
    return Key(kind=owner.kind, namespace=meta.namespace, name=owner.name, uid=owner.uid, cluster=cluster)


def _owner(account: Account) -> str:
    owner = next((o for o in account.metadata.owner_references if o.controller), None)
    return f"{owner.kind}/{account.metadata.namespace}/{owner.name}" if owner else ""
