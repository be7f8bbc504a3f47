"""The organization's workflow: the one that hands out what is scarce.

    wake, or the next look is due --> pass (count, permits to Accounts, room to pools, one look at all cases) --> wait

Claims ask it for their OU: the questions of a moment are answered together, one activity at a time, so that the API
never sees two changes of ours at once, and the answers are carried for good.
"""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from domain.accounts.observations import (
        EnsureUnits,
        OrganizationWorld,
        PassOrganization,
        UnitRequest,
        Units,
        passed,
    )
    from domain.accounts.pool import Room
    from domain.carry import Carry
    from domain.decision import Action
    from domain.why import Why
    from workflows.entity import Entity


@workflow.defn(name="Organization")
class OrganizationWorkflow(Entity[OrganizationWorld]):
    """What is scarce in the organization."""

    looks_at_deadline: ClassVar[bool] = True

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry, OrganizationWorld(key=carry.key), passed)
        self._asked: dict[tuple[str, str], None] = {}  # in the order of asking
        self._asking = False

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """For ever."""
        await self.live()

    @property
    def rest(self) -> timedelta:
        """As the last pass said."""
        return self.world.rest

    def observation(self, *, dry_run: bool = False) -> Action:
        """One pass."""
        return PassOrganization(key=self.key, known=self.world.known, woken=self.woken, dry_run=dry_run)

    def retryable(self, why: Why) -> bool:
        """There is no object to write a retry onto; a wake is all it needs."""
        return False

    @workflow.query(description="How many more accounts there may be; nothing before the first count.")
    def room(self) -> Room | None:
        """The room as last measured."""
        return self.world.known.room

    @workflow.update(description="The OU id of a legal entity, created if there is none.")
    async def unit(self, request: UnitRequest) -> str:
        """The OU's id. Fails with the organization's own answer."""
        wish = (request.base, request.legal_entity)
        while _unit(wish) not in self.world.known.units:
            self._asked[wish] = None
            if self._asking:
                await workflow.wait_condition(lambda: not self._asking)
                continue
            await self._ask()
        return self.world.known.units[_unit(wish)]

    async def _ask(self) -> None:
        """Ask for every unit that is wanted now."""
        self._asking = True
        base = next(iter(self._asked))[0]
        names = tuple(name for other, name in self._asked if other == base)
        self._asked = {wish: None for wish in self._asked if wish[0] != base}
        try:
            found = await self._start(EnsureUnits(base=base, names=names))
            assert isinstance(found, Units)  # noqa: S101 - the activity's type
            learnt = {_unit((base, name)): id_ for name, id_ in found.ids.items()}
            units = {**self.world.known.units, **learnt}
            self.tell(self.world.learn(units=units))
        except ActivityError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError):
                raise ApplicationError(cause.message, *cause.details, type=cause.type, non_retryable=True) from error
            raise
        finally:
            self._asking = False


def _unit(wish: tuple[str, str]) -> str:
    base, legal_entity = wish
    return f"{base}/{legal_entity}"
