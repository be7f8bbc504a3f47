r"""The workflows of AWS accounts, whose decisions are in `domain/accounts/`.

| lifecycle | one for each | decided in |
|---|---|---|
| Account | Account | `account_lifecycle.py` |
| AccountClaim | AccountClaim | `claim_lifecycle.py` |
| AccountPool | AccountPool. It binds accounts to claims | `pool.py`, within a pass |
| Organization | payer. It shares out what AWS limits, e.g. creations | `organization.py`, within a pass |
| AccountValidation | installation. It validates existing accounts | `account_validation.py`, within a pass |
| AWSFederatedRole, AWSFederatedAccountAccess | object of the kind | `federated/` |
"""

from __future__ import annotations

from typing import ClassVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from domain.accounts.account_lifecycle import decide as decide_account
from domain.accounts.account_validation import PassValidation, ValidationWorld
from domain.accounts.claim_lifecycle import decide as decide_claim
from domain.accounts.federated.access import decide as decide_access
from domain.accounts.federated.observed import (
    FederatedAccessWorld,
    FederatedRoleWorld,
    ObserveFederatedAccess,
    ObserveFederatedRole,
)
from domain.accounts.federated.resources import AccessState, RoleState
from domain.accounts.federated.role import decide as decide_role
from domain.accounts.observed import AccountWorld, ClaimWorld, Permit
from domain.accounts.passes import (
    CaseResolved,
    EnsureUnits,
    ObserveAccount,
    ObserveClaim,
    OptInPermit,
    OrganizationWorld,
    PassOrganization,
    PassPool,
    PoolWorld,
    UnitRefused,
    Units,
    UnitsRequest,
)
from domain.accounts.passes import decide as decide_organization
from domain.accounts.pool import Room
from domain.decision import Action
from domain.identity import Key
from domain.runner import OBSERVE
from domain.why import Why
from workflows.durable_driver import Entity
from workflows.lifecycle_declaration import lifecycle
from workflows.passes import Passes


@lifecycle("Account", world=AccountWorld, observe=ObserveAccount, decide=decide_account)
class AccountWorkflow(Entity[AccountWorld]):
    r"""An Account: its AWS account is created and initialised; after Ready, regions and quotas are kept up to date.

        Pending --permit--> CreateAccount --> Creating --> InitializingRegions --> PendingVerification --> Ready
                                                 \________________\___> Failed (deadlines, refusals)

    The organization's signals (permits to create and to opt in, a resolved support case) are remembered; lost signals
    are sent again.
    """

    @workflow.signal(description="The organization's answer to the request for an AWS account.")
    def permit(self, permit: Permit) -> None:
        """Remember the permit. Its account id and request id never replace ids that were remembered before."""
        known = self.world.known
        facts: dict[str, object] = {"permit": permit}
        if permit.account_id and not known.created_account_id:
            facts["created_account_id"] = permit.account_id
        if permit.request_id and not known.request_id:
            facts["request_id"] = permit.request_id
        self.replace_world(self.world.learn(**facts))

    @workflow.signal(description="AWS Support has resolved this case.")
    def case_resolved(self, resolved: CaseResolved) -> None:
        self.replace_world(self.world.learn(resolved_case=resolved.case_id))

    @workflow.signal(description="It is this Account's turn to opt in to regions.")
    def opt_in_permit(self, permit: OptInPermit) -> None:
        """Remember the permit and observe again, because the list of regions may have grown meanwhile."""
        self.replace_world(self.world.learn(opt_in_until=permit.until))
        self.wake()


@lifecycle("AccountClaim", world=ClaimWorld, observe=ObserveClaim, decide=decide_claim)
class AccountClaimWorkflow(Entity[ClaimWorld]):
    """An AccountClaim, from its creation to the Secret, and back to a clean account.

    Pending --bound by the pool--> OU, Secret --> Ready --deleted--> keys rotated --> cleaned --> account free --> gone
    """


@lifecycle("AccountPool", world=PoolWorld, observe=PassPool)
class AccountPoolWorkflow(Passes[PoolWorld]):
    """An AccountPool: each pass counts Accounts, creates missing ones, binds claims to accounts and writes the status.

        woken --> pass --> wait for a wake, the end of a pause after failures, or room in the creation budget

    An Account that is deleted without ever having had an AWS account signals `died` first; the next pass counts it as a
    failure.
    """

    def observation(self, *, dry_run: bool = False) -> Action:
        memory = self.world.known
        if OBSERVE in self.world.refusals:  # a refused pass may have ended between the two writes of a binding
            memory = memory.model_copy(update={"bonds_seen": False})
        return PassPool(key=self.key, memory=memory, seen=dict(self._seen), dry_run=dry_run)

    @workflow.signal(description="An Account of this pool is deleted without ever having had an AWS account.")
    def died(self, account: Key) -> None:
        known = self.world.known
        if account.name not in known.died:
            self.replace_world(self.world.learn(died=(*known.died, account.name)))
        self.wake()

    def retryable(self, why: Why) -> bool:
        stalled = {"CreateBudget", "AccountCreation"} & set(why.waits_for)
        return bool(stalled) or super().retryable(why)


@lifecycle("Organization", world=OrganizationWorld, observe=PassOrganization, decide=decide_organization)
class OrganizationWorkflow(Passes[OrganizationWorld]):
    """The organization: shares out what AWS limits for all Accounts together, such as creations.

        woken, or due --> pass (count, permits to Accounts, one request for all support cases) --> inform pools --> wait

    Claims ask it for their OUs. Concurrent requests share one activity. An OU's id is cached until AWS reports that the
    OU does not exist.
    """

    has_object: ClassVar[bool] = False

    def begin(self) -> None:
        self._requested: dict[tuple[str, str], None] = {}  # in order of arrival
        self._asking = False

    @workflow.query(description="How many more accounts may be created; null before the first count.")
    def room(self) -> Room | None:
        return self.world.known.room

    @workflow.update(description="The OU ids of legal entities; missing OUs are created.")
    async def units(self, request: UnitsRequest) -> Units:
        base, refused = request.base, dict[str, UnitRefused]()
        self._forget(request.gone)
        while missing := [name for name in request.legal_entities if not self._has(base, name) and name not in refused]:
            self._requested.update({(base, name): None for name in missing})
            if self._asking:
                await workflow.wait_condition(lambda: not self._asking)
                continue
            refused.update(await self._ask())
        known = self.world.known.units
        return Units(
            ids={name: known[_unit(base, name)] for name in request.legal_entities if self._has(base, name)},
            refused={name: refused[name] for name in request.legal_entities if name in refused},
        )

    def _forget(self, gone: str) -> None:
        known = self.world.known.units
        if gone and gone in known.values():
            self.replace_world(self.world.learn(units={unit: id_ for unit, id_ in known.items() if id_ != gone}))

    def _has(self, base: str, name: str) -> bool:
        return _unit(base, name) in self.world.known.units

    async def _ask(self) -> dict[str, UnitRefused]:
        self._asking = True
        base = next(iter(self._requested))[0]
        names = tuple(name for other, name in self._requested if other == base and not self._has(base, name))
        self._requested = {request: None for request in self._requested if request[0] != base}
        try:
            found = await self._run(EnsureUnits(base=base, names=names))
            assert isinstance(found, Units)  # noqa: S101 - the activity's type
            learnt = {_unit(base, name): id_ for name, id_ in found.ids.items()}
            self.replace_world(self.world.learn(units={**self.world.known.units, **learnt}))
            return found.refused
        except ActivityError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError):
                raise ApplicationError(cause.message, *cause.details, type=cause.type, non_retryable=True) from error
            raise
        finally:
            self._asking = False


def _unit(base: str, legal_entity: str) -> str:
    return f"{base}/{legal_entity}"


@lifecycle("AccountValidation", world=ValidationWorld, observe=PassValidation)
class AccountValidationWorkflow(Passes[ValidationWorld]):
    """Validates existing accounts: corrects OUs, tags and quotas, and deletes failed Accounts without an AWS account.

    woken by a changed ConfigMap or a written Account --> pass (one activity over all due Accounts) --> wait
    """

    has_object: ClassVar[bool] = False


@lifecycle("AWSFederatedRole", world=FederatedRoleWorld, observe=ObserveFederatedRole, decide=decide_role)
class FederatedRoleWorkflow(Entity[FederatedRoleWorld]):
    """An AWSFederatedRole: each generation's policies are validated, then the role's accesses are woken.

    New --validated by IAM--> Valid | Invalid        deleted --> accesses gone --> gone
    """

    retryable_phases = (RoleState.VALID, RoleState.INVALID)


@lifecycle(
    "AWSFederatedAccountAccess", world=FederatedAccessWorld, observe=ObserveFederatedAccess, decide=decide_access
)
class FederatedAccessWorkflow(Entity[FederatedAccessWorld]):
    r"""An AWSFederatedAccountAccess: an IAM role in a customer's account, for one outside identity.

    New --account found--> policy --> role --> policies attached --> Ready       deleted --> role deleted --> gone
                 \_________________\________\__________\__> Failed: retried later; at once if its cause changes
    """

    retryable_phases = (AccessState.READY,)
