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
    from domain.decision import Action
    from workflows.entity import Entity
    from workflows.lifecycle import lifecycle


@lifecycle("AWSFederatedRole", FederatedRoleWorld, decide)
class FederatedRoleWorkflow(Entity[FederatedRoleWorld]):
    """The lifecycle of one AWSFederatedRole."""

    retryable_phases = (RoleState.VALID, RoleState.INVALID)

    def observation(self, *, dry_run: bool = False) -> Action:
        """Look at the role."""
        return ObserveFederatedRole(key=self.key)
