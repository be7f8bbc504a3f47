"""The effects of the area: what each activity is asked, what it answers, and what the world learns from it.

Every effect looks up what it is about to make and adopts it: in the first attempt only where an earlier life may have
made it (`search`), in every later attempt always. Names, tags and e-mail addresses are the intent that is looked up.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, TypeVar

from domain.accounts.resources import LegalEntity
from domain.accounts.worlds import AccountWorld, ClaimWorld, RegionOutcome
from domain.decision import Action, Queue
from domain.identity import Key
from domain.model import Model
from domain.refusal import ErrorType, Refusal

PERMIT_EXPIRED = "PermitExpired"
# The organization's own limit: waited for, never a failure of the account.
LIMIT_CODES = frozenset({"ConstraintViolationException", "ACCOUNT_LIMIT_EXCEEDED"})
CleanedWorld = TypeVar("CleanedWorld", AccountWorld, ClaimWorld)
# After how long an action is tried again elsewhere when its worker was killed.
KILLED_NOTICED = timedelta(seconds=20)
# A request that ended so may be asked again at once.
TRANSIENT_REASONS = frozenset({"INTERNAL_FAILURE", "CONCURRENT_ACCOUNT_MODIFICATION"})


class CreateRequest(Model):
    """The answer to CreateAccount, or the request (or account) of that name found instead."""

    request_id: str = ""
    account_id: str = ""


class CreateAccount(Action):
    """Ask the organization for an account named as the custom resource is. Not asked after `until`.

    Raises: Invalid (code = the AWS code, e.g. ConstraintViolationException), Denied; throttling, concurrent
    modification and outages are retried by the server, each time after a search by name and e-mail.
    """

    activity: ClassVar[str] = "aws.create_account"
    queue: ClassVar[Queue] = Queue.AWS_ORGANIZATION
    heartbeat: ClassVar[timedelta | None] = KILLED_NOTICED
    result: ClassVar[type[Model] | None] = CreateRequest
    start_to_close: ClassVar[timedelta] = timedelta(minutes=2)
    awaited_when_cancelled: ClassVar[bool] = True

    name: str
    email: str
    until: datetime
    search: bool

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"CreateAccount {self.name}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """The request id, which is never asked for twice."""
        assert isinstance(result, CreateRequest)  # noqa: S101 - the activity's type
        return world.learn(request_id=result.request_id, created_account_id=result.account_id)

    def refuse(self, world: AccountWorld, refusal: Refusal) -> AccountWorld:  # type: ignore[override]
        """A permit that came too late, or a limit reached, is asked for anew; the rest is remembered."""
        if refusal.code == PERMIT_EXPIRED:
            return world.learn(permit=None)
        if refusal.code in LIMIT_CODES:
            return world.learn(permit=None, failure=refusal.code, failed_at=refusal.at)
        return super().refuse(world, refusal)


class CreatedAccount(Model):
    """An account that exists."""

    account_id: str


class AwaitAccount(Action):
    """Look at a create request until it has an end; a look every few seconds, by the server's retries.

    Raises Invalid with the FailureReason as its code when the request has failed, Absent for an unknown request.
    """

    activity: ClassVar[str] = "aws.await_account"
    queue: ClassVar[Queue] = Queue.AWS_ORGANIZATION
    heartbeat: ClassVar[timedelta | None] = KILLED_NOTICED
    result: ClassVar[type[Model] | None] = CreatedAccount
    start_to_close: ClassVar[timedelta] = timedelta(minutes=1)
    longest_retry: ClassVar[timedelta] = timedelta(seconds=15)

    name: str
    email: str
    request_id: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"wait until AWS has created it ({self.request_id})"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """The account's id."""
        assert isinstance(result, CreatedAccount)  # noqa: S101
        return world.learn(created_account_id=result.account_id)

    def refuse(self, world: AccountWorld, refusal: Refusal) -> AccountWorld:  # type: ignore[override]
        """The request has ended without an account: its reason decides whether to ask anew."""
        if refusal.type in (ErrorType.INVALID, ErrorType.CONFLICT):
            return world.learn(request_id="", permit=None, failure=refusal.code, failed_at=refusal.at)
        if refusal.type is ErrorType.ABSENT:  # AWS knows no such request: search before asking again
            return world.learn(request_id="", permit=None, inherited=True)
        return super().refuse(world, refusal)


class TagAccount(Action):
    """Tag the account in the organization: who owns it. Its failure never stops the lifecycle."""

    activity: ClassVar[str] = "aws.tag_account"
    queue: ClassVar[Queue] = Queue.AWS_ORGANIZATION
    heartbeat: ClassVar[timedelta | None] = KILLED_NOTICED

    account_id: str
    tags: dict[str, str]

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"tag {self.account_id} with its owner"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """Tagged."""
        return world.learn(tagged=True)


class MemberAction(Action):
    """An effect inside a member account, under its OrganizationAccountAccessRole."""

    queue: ClassVar[Queue] = Queue.AWS
    start_to_close: ClassVar[timedelta] = timedelta(minutes=5)
    heartbeat: ClassVar[timedelta | None] = KILLED_NOTICED

    account_id: str
    partition: str = "aws"


class EnsureSupportRole(MemberAction):
    """The role ManagedOpenShift-Support-<id>: trusted by the operator and the jump role, with AdministratorAccess."""

    activity: ClassVar[str] = "aws.ensure_support_role"

    iam_user_id: str
    jump_role: str
    tags: dict[str, str]

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"support role ManagedOpenShift-Support-{self.iam_user_id}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """Done."""
        return world.learn(support_role=True)


class AdminSecret(Model):
    """Where the key was put; the key itself never leaves the activity."""

    secret: str


class EnsureAdminUser(MemberAction):
    """The user osdManagedAdmin-<id> with AdministratorAccess, and its one access key in the Secret `<account>-secret`.

    An existing Secret is kept; without one all keys of the user are deleted first, so that no key lives unknown.
    """

    activity: ClassVar[str] = "aws.ensure_admin_user"
    result: ClassVar[type[Model] | None] = AdminSecret

    owner: Key
    iam_user_id: str
    secret: str
    tags: dict[str, str]

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"user osdManagedAdmin-{self.iam_user_id}, Secret {self.secret}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """The Secret's name."""
        assert isinstance(result, AdminSecret)  # noqa: S101
        return world.learn(admin_secret=result.secret)


class Regions(Model):
    """The regions enabled in an account."""

    names: tuple[str, ...]


class ListRegions(MemberAction):
    """DescribeRegions in the default region; OptInRequired means a new account that is not ready: looked at again."""

    activity: ClassVar[str] = "aws.list_regions"
    result: ClassVar[type[Model] | None] = Regions
    first_retry: ClassVar[timedelta] = timedelta(seconds=5)
    longest_retry: ClassVar[timedelta] = timedelta(minutes=1)

    default_region: str = "us-east-1"

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"list the regions of {self.account_id}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """The regions to initialise."""
        assert isinstance(result, Regions)  # noqa: S101
        return world.learn(regions=tuple(sorted(result.names)))


class InitializeRegion(MemberAction):
    """Launch a micro instance in one region, see it run, and terminate it, always.

    With `search`, running instances with the account's four marks are terminated first, and finding any counts as
    initialised. The ClientToken is made of `owner.uid`, region and `round`, so a repeated launch is the same launch.
    PendingVerification and OptInRequired are looked at again after 2, 4, 8, ... seconds.
    """

    activity: ClassVar[str] = "aws.initialize_region"
    result: ClassVar[type[Model] | None] = RegionOutcome
    start_to_close: ClassVar[timedelta] = timedelta(minutes=15)
    heartbeat: ClassVar[timedelta | None] = KILLED_NOTICED
    first_retry: ClassVar[timedelta] = timedelta(seconds=2)
    longest_retry: ClassVar[timedelta] = timedelta(seconds=512)
    awaited_when_cancelled: ClassVar[bool] = True

    owner: Key
    region: str
    round: str
    ami_owner: str
    kms_key_id: str = ""
    tags: dict[str, str]
    search: bool

    @property
    def slot(self) -> str:
        """Regions are initialised side by side."""
        return f"{self.activity}/{self.region}"

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"initialise {self.region}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """The region's outcome."""
        assert isinstance(result, RegionOutcome)  # noqa: S101
        return world.learn(outcomes={**world.known.outcomes, self.region: result})


class SupportCase(Model):
    """A support case by id."""

    case_id: str


class OpenSupportCase(Action):
    """Ask AWS Support to add the account to Enterprise Support; with `search`, a case of that subject is adopted.

    `once` is for the moment in which the state is still to be written: whatever hinders the case is told at once, so
    that the state is never held up by it.
    """

    activity: ClassVar[str] = "aws.open_support_case"
    queue: ClassVar[Queue] = Queue.AWS_ORGANIZATION
    heartbeat: ClassVar[timedelta | None] = KILLED_NOTICED
    result: ClassVar[type[Model] | None] = SupportCase

    account_id: str
    name: str
    search: bool
    once: bool = False

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"open a support case for {self.account_id}"

    @property
    def most_attempts(self) -> int:
        """One, where the state waits for it."""
        return 1 if self.once else 0

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """The case's id."""
        assert isinstance(result, SupportCase)  # noqa: S101
        return world.learn(case_id=result.case_id)


class DeleteIdentities(MemberAction):
    """Delete every IAM user and role in the account whose tags say that this Account made them."""

    activity: ClassVar[str] = "aws.delete_identities"
    # A dozen changes in one attempt, and IAM throttles each by itself: one that went further soon goes on.
    longest_retry: ClassVar[timedelta] = timedelta(seconds=15)

    name: str
    namespace: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"delete IAM users and roles of {self.name} in {self.account_id}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """Done."""
        return world.learn(identities_deleted=True)


class Fulfilled(Model):
    """What the claim got: the OU, the support role, the Secret's resourceVersion is of no interest."""

    account_ou: str
    support_role_arn: str


class Fulfil(Action):
    """Give a bound account to its claim: move it to the legal entity's OU, copy the key Secret. Quick, so one activity.

    Raises Denied when the Account does not name this claim as its holder.
    """

    activity: ClassVar[str] = "accounts.fulfil"
    queue: ClassVar[Queue] = Queue.AWS
    heartbeat: ClassVar[timedelta | None] = KILLED_NOTICED
    result: ClassVar[type[Model] | None] = Fulfilled

    claim: Key
    account: str
    account_id: str
    legal_entity: LegalEntity
    root: str
    base: str
    secret_name: str
    secret_namespace: str
    source_secret: str
    support_role_arn: str
    placed: bool = False  # the claim names this account's OU and role already: only the Secret is missing

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"move {self.account_id} to the OU of {self.legal_entity.id}, copy its Secret"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """OU and support role stand in the claim's spec now, the Secret is there."""
        assert isinstance(result, Fulfilled)  # noqa: S101
        spec = world.claim.spec.model_copy(
            update={"account_ou": result.account_ou, "support_role_arn": result.support_role_arn}
        )
        # The activity has written the claim, so its resourceVersion is not known here: the next write goes without.
        metadata = world.claim.metadata.model_copy(update={"resource_version": ""})
        claim = world.claim.model_copy(update={"spec": spec, "metadata": metadata})
        return world.model_copy(update={"claim": claim}).learn(fulfilled=self.account)


class Cleaned(Model):
    """What a clean-up deleted, as a line for people."""

    report: str


class CleanRegion(MemberAction):
    """Remove what the tenant left in one region: instances, snapshots, volumes, VPC endpoint services."""

    activity: ClassVar[str] = "aws.clean_region"
    result: ClassVar[type[Model] | None] = Cleaned
    start_to_close: ClassVar[timedelta] = timedelta(minutes=30)
    heartbeat: ClassVar[timedelta | None] = KILLED_NOTICED

    region: str

    @property
    def slot(self) -> str:
        """Regions are cleaned side by side."""
        return f"{self.activity}/{self.region}"

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"clean {self.region}"

    def fold(self, world: CleanedWorld, result: Model | None) -> CleanedWorld:  # type: ignore[override]
        """The region is clean."""
        assert isinstance(result, Cleaned)  # noqa: S101
        return world.learn(cleaned={**world.known.cleaned, self.region: result.report})


class CleanGlobal(MemberAction):
    """Remove what has no region: S3 buckets with all versions, Route 53 hosted zones."""

    activity: ClassVar[str] = "aws.clean_global"
    result: ClassVar[type[Model] | None] = Cleaned
    start_to_close: ClassVar[timedelta] = timedelta(hours=2)
    heartbeat: ClassVar[timedelta | None] = KILLED_NOTICED

    region: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "clean S3 and Route 53"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """S3 and Route 53 are clean."""
        assert isinstance(result, Cleaned)  # noqa: S101
        return world.learn(cleaned={**world.known.cleaned, "global": result.report})


class RotateKeys(MemberAction):
    """A new access key for the admin user, in the Account's Secret; every older key is deleted."""

    activity: ClassVar[str] = "aws.rotate_keys"

    owner: Key
    iam_user_id: str
    secret: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"rotate the key of osdManagedAdmin-{self.iam_user_id}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """The previous tenant's key is dead."""
        return world.learn(keys_rotated=True)


class ReleaseAccount(Action):
    """Write the Account's side of a release: free and Ready for its legal entity, or Failed while cleaning fails.

    Also deletes the claim's Secret where it holds a key of this account. Only an Account that names this claim is
    written.
    """

    activity: ClassVar[str] = "accounts.release"
    queue: ClassVar[Queue] = Queue.KUBE
    heartbeat: ClassVar[timedelta | None] = KILLED_NOTICED

    claim: Key
    account: str
    legal_entity: LegalEntity
    failed: bool = False
    secret_name: str = ""
    secret_namespace: str = ""

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"{'mark Failed' if self.failed else 'free'} {self.account}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """The Account as it was written."""
        if world.account is None:
            return world
        if not self.failed:
            return world.model_copy(update={"account": None})
        status = world.account.status.model_copy(update={"state": "Failed"})
        return world.model_copy(update={"account": world.account.model_copy(update={"status": status})})
