r"""An Account's workflow: from nothing to Ready, and for years after.

    Pending --permit--> CreateAccount --> Creating --> InitializingRegions --> PendingVerification --> Ready
                                             \________________\___> Failed (deadlines, refusals)

What should happen is decided in `domain/accounts/account.py`. Three messages come from the organization's workflow: the
permit to create, the one to opt in to regions, and that the support case is resolved. They are only remembered; lost
ones are said again.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.accounts.account import decide
    from domain.accounts.observations import CaseResolved, ObserveAccount, OptInPermit
    from domain.accounts.worlds import AccountWorld, Permit
    from domain.decision import Action
    from workflows.entity import Entity
    from workflows.lifecycle import lifecycle


@lifecycle("Account", AccountWorld, decide)
class AccountWorkflow(Entity[AccountWorld]):
    """The lifecycle of one Account."""

    def observation(self, *, dry_run: bool = False) -> Action:
        """Look at the Account."""
        return ObserveAccount(key=self.key)

    @workflow.signal(description="The organization's answer to the wish for an AWS account.")
    def permit(self, permit: Permit) -> None:
        """Remember the answer; what the organization already has under this name is adopted."""
        known = self.world.known
        facts: dict[str, object] = {"permit": permit}
        if permit.account_id and not known.created_account_id:
            facts["created_account_id"] = permit.account_id
        if permit.request_id and not known.request_id:
            facts["request_id"] = permit.request_id
        self.tell(self.world.learn(**facts))

    @workflow.signal(description="AWS Support has resolved this case.")
    def case_resolved(self, resolved: CaseResolved) -> None:
        """Remember it."""
        self.tell(self.world.learn(resolved_case=resolved.case_id))

    @workflow.signal(description="It is this Account's turn to opt in to regions.")
    def opt_in_permit(self, permit: OptInPermit) -> None:
        """Remember it, and look: the list of regions may have grown since."""
        self.tell(self.world.learn(opt_in_until=permit.until))
        self.wake()
