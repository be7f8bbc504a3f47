r"""An AWSFederatedAccountAccess's workflow: an IAM role in a customer's account, for one outside identity.

    New --account asked--> policy --> role --> attached --> Ready        deleted --> role gone --> gone
                 \__________\________\__________\__> Failed (healed by what it waits for)

What should happen is decided in `domain/accounts/federated/access.py`.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.accounts.federated.access import decide
    from domain.accounts.federated.resources import AccessState
    from domain.accounts.federated.worlds import FederatedAccessWorld, ObserveFederatedAccess
    from domain.decision import Action
    from workflows.entity import Entity
    from workflows.lifecycle import lifecycle


@lifecycle("AWSFederatedAccountAccess", FederatedAccessWorld, decide)
class FederatedAccessWorkflow(Entity[FederatedAccessWorld]):
    """The lifecycle of one AWSFederatedAccountAccess."""

    retryable_phases = (AccessState.READY,)

    def observation(self, *, dry_run: bool = False) -> Action:
        """Look at the access."""
        return ObserveFederatedAccess(key=self.key)
