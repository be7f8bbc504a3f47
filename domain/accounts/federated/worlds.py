"""What the decisions about federated roles and accesses see, and how it is looked at."""

from __future__ import annotations

from typing import ClassVar, Self

from domain.accounts.config import OperatorConfig
from domain.accounts.federated.resources import AccessState, AWSFederatedAccountAccess, AWSFederatedRole
from domain.accounts.observations import Look
from domain.identity import Key
from domain.model import Model
from domain.object_world import ObjectWorld


class Verdict(Model):
    """What IAM says of a role's policies, and of which generation of the spec."""

    generation: int
    valid: bool
    reason: str = ""
    message: str = ""
    detail: str = ""


class SeenAccess(Model):
    """An access that names the role."""

    key: Key
    deleting: bool = False


class RoleKnown(Model):
    """What a role's workflow knows beside the custom resource; losing it costs one more validation."""

    verdict: Verdict | None = None
    stamped: int = 0  # the generation that the accesses have been told of
    cleared: bool = False


class FederatedRoleWorld(ObjectWorld):
    """One AWSFederatedRole, and the accesses that name it."""

    about: ClassVar[str] = "role"

    role: AWSFederatedRole = AWSFederatedRole()
    accesses: tuple[SeenAccess, ...] = ()
    config: OperatorConfig = OperatorConfig()
    known: RoleKnown = RoleKnown()

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        """This world after a write of the role."""
        world = super().written(patch, resource_version, gone=gone)
        # What was judged is written down now: who blanks it wants it judged anew.
        role = world.role
        judged = role.status.observed_generation == role.metadata.generation
        return world.learn(verdict=None, stamped=0) if judged else world


class AccessKnown(Model):
    """What an access's workflow knows beside the custom resource; losing it costs a repetition, never a cloud object.

    `policy`, `role` and `attached` are the digests for which each step was done.
    """

    account_id: str = ""
    policy: str = ""
    role: str = ""
    attached: str = ""
    moved_from: str = ""  # a role that the access had before it named another AWSFederatedRole, removed since
    revoked: bool = False


class FederatedAccessWorld(ObjectWorld):
    """One AWSFederatedAccountAccess, and the role that it names; None if there is none."""

    about: ClassVar[str] = "access"

    access: AWSFederatedAccountAccess = AWSFederatedAccountAccess()
    role: AWSFederatedRole | None = None
    config: OperatorConfig = OperatorConfig()
    known: AccessKnown = AccessKnown()

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        """This world after a write of the access; what led to Ready is forgotten there."""
        world = super().written(patch, resource_version, gone=gone)
        ready = world.access.status.state == AccessState.READY and "status" in patch
        return world.model_copy(update={"known": AccessKnown(revoked=self.known.revoked)}) if ready else world


class ObserveFederatedRole(Look):
    """Read the AWSFederatedRole, the ConfigMap, and the accesses that name the role."""

    activity: ClassVar[str] = "accounts.observe_federated_role"
    result: ClassVar[type[Model] | None] = FederatedRoleWorld
    looked_at: ClassVar[str] = "the role, its accesses and the ConfigMap"


class ObserveFederatedAccess(Look):
    """Read the AWSFederatedAccountAccess, the ConfigMap, and the role that it names."""

    activity: ClassVar[str] = "accounts.observe_federated_access"
    result: ClassVar[type[Model] | None] = FederatedAccessWorld
    looked_at: ClassVar[str] = "the access, its role and the ConfigMap"
