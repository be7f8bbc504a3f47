"""The custom resources of the area, field for field (group aws.managed.openshift.io, version v1alpha1).

Field names follow the wire through aliases. What Go's structs always emit (`awsAccountID: ""`, `legalEntity`) is
required in the schema and empty by default here.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import FAKE_ANNOTATION, IAM_USER_ID_LABEL, PAUSE_ANNOTATION
from domain.identity import Kind
from domain.resource import Condition, CustomResource, KubeModel, SecretReference


class AccountState:
    """Values of an Account's `status.state`: "" is a new (or blanked) one."""

    NEW = ""
    CREATING = "Creating"
    OPTING_IN_REGIONS = "OptingInRegions"
    OPT_IN_REGIONS_ENABLED = "OptInRegionsEnabled"
    INITIALIZING_REGIONS = "InitializingRegions"
    PENDING_VERIFICATION = "PendingVerification"
    READY = "Ready"
    FAILED = "Failed"


# States that count as failed when somebody sets them; the operator itself only writes "Failed".
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


class LegalEntity(KubeModel):
    """Who uses the account: `id` is the OU's name and the key of reuse."""

    id: str = ""
    name: str = ""


class ServiceQuota(KubeModel):
    """A wanted quota and how its request stands."""

    value: int = 0
    status: str = ""


class OptInRegion(KubeModel):
    """How the opt-in of one region stands."""

    status: str = ""


class AccountSpec(KubeModel):
    """What the account is."""

    aws_account_id: str = Field("", alias="awsAccountID")
    iam_user_secret: str = ""
    byoc: bool = False
    claim_link: str = ""
    claim_link_namespace: str = ""
    legal_entity: LegalEntity = LegalEntity()
    manual_sts_mode: bool = Field(False, alias="manualSTSMode")
    account_pool: str = ""
    regional_service_quotas: dict[str, dict[str, ServiceQuota]] = {}
    global_service_quotas: dict[str, ServiceQuota] = {}


class AccountStatus(KubeModel):
    """How the account stands; an input too: people and tools blank or set it."""

    claimed: bool = False
    support_case_id: str = Field("", alias="supportCaseID")
    conditions: tuple[Condition, ...] = ()
    state: str = ""
    rotate_credentials: bool = False
    rotate_console_credentials: bool = False
    reused: bool = False
    regional_service_quotas: dict[str, dict[str, ServiceQuota]] = {}
    global_service_quotas: dict[str, ServiceQuota] = {}
    opt_in_regions: dict[str, OptInRegion] = {}


class Account(CustomResource):
    """An AWS account."""

    kind_of: ClassVar[Kind] = ACCOUNT

    spec: AccountSpec = AccountSpec()
    status: AccountStatus = AccountStatus()

    @property
    def failed(self) -> bool:
        """True in any of the states that count as failed."""
        return self.status.state in FAILED_STATES

    @property
    def paused(self) -> bool:
        """True under the replaced operator's own pause, which lets deletion proceed."""
        return self.metadata.annotations.get(PAUSE_ANNOTATION) == "true"

    @property
    def iam_user_id(self) -> str:
        """The six characters that name the account's IAM user and support role, empty if not given yet."""
        return self.metadata.labels.get(IAM_USER_ID_LABEL, "")

    @property
    def pool_owned(self) -> bool:
        """True if it belongs to some AccountPool: by owner, or without owners by the pool it names."""
        owners = self.metadata.owner_references
        return any(owner.kind == "AccountPool" for owner in owners) if owners else bool(self.spec.account_pool)


class AccountPoolSpec(KubeModel):
    """What the pool should hold."""

    pool_size: int = 0


class AccountPoolStatus(KubeModel):
    """The seven counts, all required once the status is present; `conditions` is Perdure's optional addition."""

    pool_size: int = 0
    unclaimed_accounts: int = 0
    claimed_accounts: int = 0
    available_accounts: int = 0
    accounts_progressing: int = 0
    accounts_pending: int = 0
    aws_limit_delta: int = 0
    conditions: tuple[Condition, ...] = ()


class AccountPool(CustomResource):
    """A wanted number of never-claimed accounts."""

    kind_of: ClassVar[Kind] = ACCOUNT_POOL

    spec: AccountPoolSpec = AccountPoolSpec()
    status: AccountPoolStatus | None = None


class ClaimState:
    """Values of a claim's `status.state`; a broken claim is `Error`, never `Failed`."""

    NEW = ""
    PENDING = "Pending"
    READY = "Ready"
    ERROR = "Error"


class Region(KubeModel):
    """An AWS region by name."""

    name: str = ""


class ClaimAws(KubeModel):
    """What the claim wants of AWS."""

    regions: tuple[Region, ...] = ()


class FleetManagerConfig(KubeModel):
    """Special handling of the fleet manager's claims."""

    trusted_arn: str = Field("", alias="trustedARN")


class AccountClaimSpec(KubeModel):
    """What the claim asks for, and what the operator links to it."""

    legal_entity: LegalEntity = LegalEntity()
    aws_credential_secret: SecretReference = SecretReference()
    aws: ClaimAws = ClaimAws()
    account_link: str = ""
    account_ou: str = Field("", alias="accountOU")
    byoc: bool = False
    byoc_secret_ref: SecretReference = SecretReference()
    byoc_aws_account_id: str = Field("", alias="byocAWSAccountID")
    manual_sts_mode: bool = Field(False, alias="manualSTSMode")
    sts_role_arn: str = Field("", alias="stsRoleARN")
    sts_external_id: str = Field("", alias="stsExternalID")
    support_role_arn: str = Field("", alias="supportRoleARN")
    custom_tags: str = ""
    kms_key_id: str = ""
    account_pool: str = ""
    fleet_manager_config: FleetManagerConfig = FleetManagerConfig()


class AccountClaimStatus(KubeModel):
    """How the claim stands; conditions are a map by type."""

    conditions: tuple[Condition, ...] = ()
    state: str = ""


class AccountClaim(CustomResource):
    """A wish for an account, and its holder while it lives."""

    kind_of: ClassVar[Kind] = ACCOUNT_CLAIM

    spec: AccountClaimSpec = AccountClaimSpec()
    status: AccountClaimStatus = AccountClaimStatus()

    @property
    def from_pool(self) -> bool:
        """True if a pool account serves it (BYOC, STS, fake and fleet-manager claims come in a later issue)."""
        return not (self.spec.byoc or self.spec.manual_sts_mode or self.fake)

    @property
    def fake(self) -> bool:
        """True for a claim that wants only a dummy Secret."""
        return self.metadata.annotations.get(FAKE_ANNOTATION) == "true"
