"""An AccountPool's workflow: each pass counts, fills and binds in one activity.

    wake --> pass (count, create missing Accounts, give accounts to waiting claims, write the status) --> wait

It is the only writer of "who has what". A deadline (a pause after failures, the create budget) asks for a new pass.
An Account that gives way to another says so before it goes; the next pass counts it among the failures.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.accounts.observations import PassPool, PoolWorld
    from domain.decision import Action
    from domain.identity import Key
    from domain.runner import OBSERVE
    from domain.why import Why
    from workflows.lifecycle import lifecycle
    from workflows.passes import Passes


@lifecycle("AccountPool", PoolWorld)
class AccountPoolWorkflow(Passes[PoolWorld]):
    """The lifecycle of one AccountPool."""

    def observation(self, *, dry_run: bool = False) -> Action:
        """One pass."""
        known = self.world.known
        if OBSERVE in self.world.refusals:  # a refused pass may have ended between the two writes of a binding
            known = known.model_copy(update={"bonds_seen": False})
        return PassPool(key=self.key, known=known, dry_run=dry_run)

    @workflow.signal(description="One of its Accounts gives way to another, never having had an AWS account.")
    def died(self, account: Key) -> None:
        """Remember it for the next pass."""
        known = self.world.known
        if account.name not in known.died:
            self.tell(self.world.learn(died=(*known.died, account.name)))
        self.wake()

    def retryable(self, why: Why) -> bool:
        """A retry lifts the create budget and the pause after failures."""
        stalled = {"CreateBudget", "AccountCreation"} & set(why.waits_for)
        return bool(stalled) or super().retryable(why)
