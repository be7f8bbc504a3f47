"""The organization's workflow: the one that hands out what is scarce.

    wake, or the next look is due --> pass (count, permits to Accounts, one look at all cases) --> tell pools --> wait

Claims ask it for their OUs: the questions of a moment are answered together, one activity at a time, and the answers
are carried until AWS says that one does not exist any more.
"""

from __future__ import annotations

from typing import ClassVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from domain.accounts.observations import (
        EnsureUnits,
        OrganizationWorld,
        PassOrganization,
        UnitRefused,
        Units,
        UnitsRequest,
        decide,
    )
    from domain.accounts.pool import Room
    from domain.carry import Carry
    from domain.decision import Action
    from workflows.passes import Passes


@workflow.defn(name="Organization")
class OrganizationWorkflow(Passes[OrganizationWorld]):
    """What is scarce in the organization."""

    has_object: ClassVar[bool] = False

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry, OrganizationWorld(key=carry.key), decide)
        self._asked: dict[tuple[str, str], None] = {}  # in the order of asking
        self._asking = False

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """For ever."""
        await self.live()

    def observation(self, *, dry_run: bool = False) -> Action:
        """One pass."""
        return PassOrganization(key=self.key, known=self.world.known, woken=self.woken, dry_run=dry_run)

    @workflow.query(description="How many more accounts there may be; nothing before the first count.")
    def room(self) -> Room | None:
        """The room as last measured."""
        return self.world.known.room

    @workflow.update(description="The OU ids of legal entities, created where there is none.")
    async def units(self, request: UnitsRequest) -> Units:
        """The OUs, and which of them AWS refuses. Fails with the organization's own answer."""
        base, refused = request.base, dict[str, UnitRefused]()
        self._forget(request.gone)
        while missing := [name for name in request.legal_entities if not self._has(base, name) and name not in refused]:
            self._asked.update({(base, name): None for name in missing})
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
        """Somebody has deleted this OU: whoever asks next gets another one."""
        known = self.world.known.units
        if gone and gone in known.values():
            self.tell(self.world.learn(units={unit: id_ for unit, id_ in known.items() if id_ != gone}))

    def _has(self, base: str, name: str) -> bool:
        return _unit(base, name) in self.world.known.units

    async def _ask(self) -> dict[str, UnitRefused]:
        """Ask for every unit that is wanted now; which of them are refused."""
        self._asking = True
        base = next(iter(self._asked))[0]
        names = tuple(name for other, name in self._asked if other == base and not self._has(base, name))
        self._asked = {wish: None for wish in self._asked if wish[0] != base}
        try:
            found = await self._run(EnsureUnits(base=base, names=names))
            assert isinstance(found, Units)  # noqa: S101 - the activity's type
            learnt = {_unit(base, name): id_ for name, id_ in found.ids.items()}
            self.tell(self.world.learn(units={**self.world.known.units, **learnt}))
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
