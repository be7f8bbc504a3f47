"""The area's custom resources, with all fields (group aws.managed.openshift.io, version v1alpha1).

A field's alias is its name in JSON. Fields that the replaced operator's Go structs always emit (`awsAccountID: ""`,
`legalEntity`) are required in the schema and empty by default here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, TypeVar

from pydantic import Field

from domain import control_annotations
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import (
    ADMIN_USER_PREFIX,
    FAKE_ANNOTATION,
    IAM_USER_ID_LABEL,
    PAUSE_ANNOTATION,
    SUPPORT_ROLE_PREFIX,
)
from domain.accounts.federated.resources import (  # noqa: F401 - definitions are made of the models found here
    AWSFederatedAccountAccess,
    AWSFederatedRole,
)
from domain.identity import Kind
from domain.resource import AGE, Condition, CustomResource, KubeModel, PrinterColumn, SecretReference, timestamp
from domain.schema import Atomic, MapByType, Required

R = TypeVar("R", bound=CustomResource)


class AccountState:
    """Values of an Account's `status.state`. It is empty in a new Account, and if a person or a tool has cleared it."""

    NEW = ""
    CREATING = "Creating"
    OPTING_IN_REGIONS = "OptingInRegions"
    OPT_IN_REGIONS_ENABLED = "OptInRegionsEnabled"
    INITIALIZING_REGIONS = "InitializingRegions"
    PENDING_VERIFICATION = "PendingVerification"
    READY = "Ready"
    FAILED = "Failed"


# States that count as failed. Perdure itself writes only "Failed"; people and tools may write the other ones.
FAILED_STATES = frozenset(
    {
        "Failed",
        "AccountCreationFailed",
        "AccountClientError",
        "AuthorizationError",
        "AuthenticationError",
        "UnhandledError",
        "InternalError",
    }
)
PROGRESSING_STATES = frozenset({"Creating", "PendingVerification", "InitializingRegions"})
OPT_IN_STATES = frozenset({"OptingInRegions", "OptInRegionsEnabled"})
# Values of a claim's `accountPool` for the default pool, in which fleet managers' claims are ordinary claims.
UNNAMED_POOLS = frozenset({"", "default"})


class LegalEntity(KubeModel):
    """Who uses the account."""

    id: Required[str] = Field(
        "", description="Names the organizational unit; a released account goes only to claims with an equal id."
    )
    name: Required[str] = Field("", description="The entity's name, to be read by people.")


class ServiceQuota(KubeModel):
    """A wanted quota and the state of its request."""

    value: Required[int] = Field(0, description="The wanted quota.")
    status: Required[str] = Field("", description="TODO, IN_PROGRESS, COMPLETED, DENIED or MANUAL_ACTION.")


class OptInRegion(KubeModel):
    """The state of one region's opt-in."""

    status: Required[str] = Field("", description="TODO, ENABLING, ENABLED or MANUAL_ACTION.")


class AccountSpec(KubeModel):
    """The desired state of an account."""

    aws_account_id: Required[str] = Field(
        "", alias="awsAccountID", description="The twelve digits of the AWS account, empty until it exists."
    )
    iam_user_secret: Required[str] = Field(
        "", description="The Secret with the admin user's access key, in the Account's namespace."
    )
    byoc: bool = Field(False, description="True for an account that the customer owns.")
    claim_link: str = Field("", description="The AccountClaim that holds the account.")
    claim_link_namespace: str = Field("", description="The namespace of that AccountClaim.")
    legal_entity: LegalEntity = Field(
        LegalEntity(), description="Who uses or used the account: copied from the claim, kept after its release."
    )
    manual_sts_mode: bool = Field(False, alias="manualSTSMode", description="True for an account reached through STS.")
    account_pool: str = Field("", description="The AccountPool of the Account; empty means the default pool.")
    regional_service_quotas: dict[str, dict[str, ServiceQuota]] = Field(
        default_factory=dict, description="Wanted quotas by region (or `default` for every region) and quota code."
    )
    global_service_quotas: dict[str, ServiceQuota] = Field(
        default_factory=dict, description="Wanted quotas of the whole account by quota code."
    )


class AccountStatus(KubeModel):
    """The account's state; an input too: people and tools blank or set it."""

    claimed: bool = Field(False, description="True while an AccountClaim holds the account.")
    support_case_id: str = Field("", alias="supportCaseID", description="The support case about Enterprise Support.")
    conditions: Atomic[tuple[Condition, ...]] = Field(
        (), description="Every state the account has been in; a condition stays True when the state is left."
    )
    state: str = Field(
        "", description="The account's state; if blanked, creation starts again with the same AWS account."
    )
    rotate_credentials: bool = Field(False, description="Set when the account is released; read by older tools.")
    rotate_console_credentials: bool = Field(
        False, description="Set when the account is released; read by older tools."
    )
    reused: bool = Field(False, description="True once a claim has released the account.")
    regional_service_quotas: dict[str, dict[str, ServiceQuota]] = Field(
        default_factory=dict, description="The state of the quota requests, by region and quota code."
    )
    global_service_quotas: dict[str, ServiceQuota] = Field(
        default_factory=dict, description="The state of the account-wide quota requests, by quota code."
    )
    opt_in_regions: dict[str, OptInRegion] = Field(
        default_factory=dict, description="The state of the opt-in regions, by region."
    )


class Account(CustomResource):
    """An AWS account."""

    kind_of: ClassVar[Kind] = ACCOUNT
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="State", type="string", json_path=".status.state"),
        PrinterColumn(name="Claimed", type="boolean", json_path=".status.claimed"),
        PrinterColumn(name="Claim", type="string", json_path=".spec.claimLink"),
        AGE,
    )

    spec: AccountSpec = AccountSpec()
    status: AccountStatus = AccountStatus()

    @property
    def always_written(self) -> dict[str, object]:
        """The replaced operator always leaves these fields in the spec, even if they are empty."""
        # If the object has no spec yet, the API server accepts a spec only with the required fields.
        required = {"aws_account_id", "iam_user_secret"}
        return self.spec.model_dump(mode="json", include={*required, "claim_link", "legal_entity"})

    @property
    def failed(self) -> bool:
        return self.status.state in FAILED_STATES

    @property
    def customers(self) -> bool:
        return self.spec.byoc or self.spec.manual_sts_mode

    @property
    def paused(self) -> bool:
        """Whether the replaced operator's pause annotation is set, which pauses everything except deletion."""
        return self.metadata.annotations.get(PAUSE_ANNOTATION) == "true"

    @property
    def on_hold(self) -> bool:
        """Whether the replaced operator's pause annotation or Perdure's is set."""
        return self.paused or control_annotations.paused(self.metadata)

    @property
    def iam_user_id(self) -> str:
        """The six-character id in the names of the IAM user and support role; empty until it is set."""
        return self.metadata.labels.get(IAM_USER_ID_LABEL, "")

    @property
    def outside(self) -> tuple[str, ...]:
        spec, meta = self.spec, self.metadata
        found = []
        if spec.aws_account_id:
            found.append(f"AWS account {spec.aws_account_id}, open and without a custom resource")
            if self.iam_user_id:
                role, user = SUPPORT_ROLE_PREFIX + self.iam_user_id, ADMIN_USER_PREFIX + self.iam_user_id
                found.append(f"IAM role {role} and user {user} with its access keys in {spec.aws_account_id}")
        elif self.status.state:
            found.append(f"perhaps an AWS account named {meta.name}, being created")
        if spec.iam_user_secret:
            found.append(f"Secret {meta.namespace}/{spec.iam_user_secret}, which Kubernetes deletes after its owner")
        if self.status.support_case_id:
            found.append(f"support case {self.status.support_case_id}")
        return tuple(found)

    @property
    def pool_owned(self) -> bool:
        owners = self.metadata.owner_references
        return any(owner.kind == "AccountPool" for owner in owners) if owners else bool(self.spec.account_pool)


class AccountPoolSpec(KubeModel):
    """The desired state of the pool."""

    pool_size: Required[int] = Field(0, description="Number of never claimed accounts that the pool keeps.")


class AccountPoolStatus(KubeModel):
    """The seven counts, all required once the status is present; `conditions` is Perdure's optional addition."""

    pool_size: Required[int] = Field(0, description="The wanted size when the pool was last counted.")
    unclaimed_accounts: Required[int] = Field(0, description="Accounts never claimed and not failed.")
    claimed_accounts: Required[int] = Field(0, description="Accounts held by a claim.")
    available_accounts: Required[int] = Field(0, description="Accounts never claimed that are Ready.")
    accounts_progressing: Required[int] = Field(
        0, description="Accounts in Creating, InitializingRegions or PendingVerification."
    )
    accounts_pending: Required[int] = Field(0, description="Accounts never claimed that have no state yet.")
    aws_limit_delta: Required[int] = Field(0, description="How many accounts the organization's limit still allows.")
    conditions: MapByType[tuple[Condition, ...]] = Field(
        (), description="Why the pool creates no accounts; absent if it may create accounts."
    )


class AccountPool(CustomResource):
    """Keeps a number of never-claimed accounts."""

    kind_of: ClassVar[Kind] = ACCOUNT_POOL
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Pool Size", type="integer", json_path=".status.poolSize"),
        PrinterColumn(name="Unclaimed Accounts", type="integer", json_path=".status.unclaimedAccounts"),
        PrinterColumn(name="Claimed Accounts", type="integer", json_path=".status.claimedAccounts"),
        PrinterColumn(name="Available Accounts", type="integer", json_path=".status.availableAccounts"),
        PrinterColumn(name="Accounts Progressing", type="integer", json_path=".status.accountsProgressing"),
        PrinterColumn(name="Accounts Pending", type="integer", json_path=".status.accountsPending"),
        PrinterColumn(name="AWS Limit Delta", type="integer", json_path=".status.awsLimitDelta"),
    )

    spec: AccountPoolSpec = AccountPoolSpec()
    status: AccountPoolStatus | None = None


class ClaimState:
    """Values of a claim's `status.state`; an invalid claim is `Error`, never `Failed`."""

    NEW = ""
    PENDING = "Pending"
    READY = "Ready"
    ERROR = "Error"


class Region(KubeModel):
    """An AWS region by name."""

    name: Required[str] = Field("", description="The region's code, for example us-east-1.")


class ClaimAws(KubeModel):
    """The claim's settings for AWS."""

    regions: Required[tuple[Region, ...]] = Field((), description="Regions the account is used in.")


class FleetManagerConfig(KubeModel):
    """Special handling of the fleet manager's claims."""

    trusted_arn: Required[str] = Field(
        "", alias="trustedARN", description="The principal that may assume the role managed-sts-role in the account."
    )


class AccountClaimSpec(KubeModel):
    """What the claim asks for, and what the operator links to it."""

    legal_entity: Required[LegalEntity] = Field(LegalEntity(), description="Who will use the account.")
    aws_credential_secret: Required[SecretReference] = Field(
        SecretReference(), description="The Secret for the account's credentials, in the claim's own namespace."
    )
    aws: Required[ClaimAws] = Field(ClaimAws(), description="The claim's settings for AWS.")
    account_link: Required[str] = Field("", description="The Account that serves the claim; written by the operator.")
    account_ou: str = Field(
        "", alias="accountOU", description="The organizational unit the account was moved to; written by the operator."
    )
    byoc: bool = Field(False, description="True to use an account that the customer owns.")
    byoc_secret_ref: SecretReference = Field(
        SecretReference(), description="The Secret with the customer's credentials, in the claim's own namespace."
    )
    byoc_aws_account_id: str = Field("", alias="byocAWSAccountID", description="The customer's AWS account.")
    manual_sts_mode: bool = Field(
        False, alias="manualSTSMode", description="True to reach the customer's account by assuming a role."
    )
    sts_role_arn: str = Field("", alias="stsRoleARN", description="The role to assume in STS mode.")
    sts_external_id: str = Field("", alias="stsExternalID", description="The external id for assuming the role.")
    support_role_arn: str = Field(
        "", alias="supportRoleARN", description="The account's support role; written by the operator."
    )
    custom_tags: str = Field("", description="Tags for the cloud objects, one `key=value` per line.")
    kms_key_id: str = Field("", description="The KMS key for the volumes of region initialisation.")
    account_pool: str = Field("", description="The AccountPool to get the account from; empty means the default pool.")
    fleet_manager_config: FleetManagerConfig = Field(
        FleetManagerConfig(), description="Special handling of the fleet manager's claims."
    )


class AccountClaimStatus(KubeModel):
    """The claim's state; conditions are a map by type."""

    conditions: Required[MapByType[tuple[Condition, ...]]] = Field((), description="What happened to the claim.")
    state: Required[str] = Field("", description="Pending, Ready or Error; empty at first.")


class AccountClaim(CustomResource):
    """A request for an account. The claim holds the account until the claim is deleted."""

    kind_of: ClassVar[Kind] = ACCOUNT_CLAIM
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="State", type="string", json_path=".status.state"),
        PrinterColumn(name="Account", type="string", json_path=".spec.accountLink"),
        AGE,
    )

    spec: AccountClaimSpec = AccountClaimSpec()
    status: AccountClaimStatus = AccountClaimStatus()

    @property
    def always_written(self) -> dict[str, object]:
        required = {"legal_entity", "aws_credential_secret", "aws", "account_link"}
        return self.spec.model_dump(mode="json", include={*required, "byoc_secret_ref", "fleet_manager_config"})

    @property
    def from_pool(self) -> bool:
        """Whether the claim uses a pool's account. In STS mode without `byoc` it does, but gets no support role."""
        return not (self.spec.byoc or self.fake)

    @property
    def of_fleet_manager(self) -> bool:
        """Whether the claim gets a role for the fleet manager's principal instead of a key."""
        return bool(self.spec.fleet_manager_config.trusted_arn) and self.spec.account_pool not in UNNAMED_POOLS

    @property
    def secret_name(self) -> str:
        default = f"{self.metadata.name}-sts-secret" if self.of_fleet_manager else ""
        return self.spec.aws_credential_secret.name or default

    @property
    def fake(self) -> bool:
        return self.metadata.annotations.get(FAKE_ANNOTATION) == "true"

    @property
    def outside(self) -> tuple[str, ...]:
        spec = self.spec
        found = []
        if spec.account_link:
            found.append(f"Account {spec.account_link}: still claimed, not cleaned, and with its old access key")
        if spec.account_link and spec.aws_credential_secret.name:
            namespace = spec.aws_credential_secret.namespace or self.metadata.namespace
            found.append(f"Secret {namespace}/{spec.aws_credential_secret.name} with the account's access key")
        return tuple(found)


def oldest_first(resources: Iterable[R]) -> list[R]:
    return sorted(resources, key=_age)


def _age(resource: CustomResource) -> tuple[str, str, str]:
    meta = resource.metadata
    return timestamp(meta.creation_timestamp) if meta.creation_timestamp else "", meta.namespace, meta.name
