"""An AWSFederatedRole's workflow: its policies judged for each generation of its spec, its accesses told.

    New --IAM judges--> Valid | Invalid        deleted --> accesses gone --> gone

What should happen is decided in `domain/accounts/federated/role.py`.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.accounts.federated.resources import RoleState
    from domain.accounts.federated.role import decide
    from domain.accounts.federated.worlds import FederatedRoleWorld, ObserveFederatedRole
    from domain.carry import Carry
    from domain.decision import Action
    from workflows.entity import Entity


@workflow.defn(name="AWSFederatedRole")
class FederatedRoleWorkflow(Entity[FederatedRoleWorld]):
    """The lifecycle of one AWSFederatedRole."""

    retryable_phases = (RoleState.VALID, RoleState.INVALID)

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry, FederatedRoleWorld(key=carry.key), decide)

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the role is gone."""
        await self.live()

    def observation(self, *, dry_run: bool = False) -> Action:
        """Look at the role."""
        return ObserveFederatedRole(key=self.key)
