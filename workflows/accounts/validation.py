"""The workflow that validates what stands already: places in the organization, tags, quotas, failed empties.

    woken by a changed ConfigMap or a written Account --> pass (one activity over those that are due) --> wait

It stands behind no custom resource. What the checks are is said in `domain/accounts/validation.py`.
"""

from __future__ import annotations

from typing import ClassVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.accounts.validation import PassValidation, ValidationWorld
    from domain.decision import Action
    from workflows.lifecycle import lifecycle
    from workflows.passes import Passes


@lifecycle("AccountValidation", ValidationWorld)
class AccountValidationWorkflow(Passes[ValidationWorld]):
    """All accounts together."""

    has_object: ClassVar[bool] = False

    def observation(self, *, dry_run: bool = False) -> Action:
        """One pass."""
        return PassValidation(key=self.key, known=self.world.known, dry_run=dry_run)
