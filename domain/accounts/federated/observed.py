from __future__ import annotations

from typing import ClassVar, Self

from domain.accounts.federated.resources import AccessState, AWSFederatedAccountAccess, AWSFederatedRole
from domain.accounts.observed import ConfiguredWorld
from domain.accounts.passes import Look
from domain.identity import Key
from domain.model import Model


class Verdict(Model):
    generation: int
    valid: bool
    reason: str = ""
    message: str = ""
    detail: str = ""


class SeenAccess(Model):
    key: Key
    deleting: bool = False


class RoleMemory(Model):
    verdict: Verdict | None = None
    stamped: int = 0  # the generation of which the accesses were last notified
    cleared: bool = False


class FederatedRoleWorld(ConfiguredWorld):
    about: ClassVar[str] = "role"

    role: AWSFederatedRole = AWSFederatedRole()
    accesses: tuple[SeenAccess, ...] = ()
    known: RoleMemory = RoleMemory()

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        world = super().written(patch, resource_version, gone=gone)
        # The verdict is now in the status: a person who blanks the status requests another validation.
        role = world.role
        validated = role.status.observed_generation == role.metadata.generation
        return world.learn(verdict=None, stamped=0) if validated else world


class AccessMemory(Model):
    """What an access's lifecycle remembers. Losing it costs repeated steps, but no objects in AWS.

    `policy`, `role` and `attached`: the digest of the wanted state for which the step of this name was last done.
    """

    account_id: str = ""
    policy: str = ""
    role: str = ""
    attached: str = ""
    made: str = ""  # the IAM role that the last step may have created
    moved_from: str = ""  # the IAM role that was deleted because `spec.awsFederatedRole` changed
    revoked: bool = False


class FederatedAccessWorld(ConfiguredWorld):
    about: ClassVar[str] = "access"

    access: AWSFederatedAccountAccess = AWSFederatedAccountAccess()
    role: AWSFederatedRole | None = None
    known: AccessMemory = AccessMemory()

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        """When our own write has set the state Ready, the memory of the steps is dropped."""
        world = super().written(patch, resource_version, gone=gone)
        ready = world.access.status.state == AccessState.READY and "status" in patch
        return world.model_copy(update={"known": AccessMemory(revoked=self.known.revoked)}) if ready else world


class ObserveFederatedRole(Look):
    activity: ClassVar[str] = "accounts.observe_federated_role"
    result: ClassVar[type[Model] | None] = FederatedRoleWorld
    title: ClassVar[str] = "observe the role, its accesses and the ConfigMap"


class ObserveFederatedAccess(Look):
    activity: ClassVar[str] = "accounts.observe_federated_access"
    result: ClassVar[type[Model] | None] = FederatedAccessWorld
    title: ClassVar[str] = "observe the access, its role and the ConfigMap"
