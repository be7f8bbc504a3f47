"""The pass over the organization: count it, give permits to Accounts and room to pools, look at all open cases at once.

What it asks of AWS is bounded whatever happens: both lists while Accounts want to be created, the accounts alone once
per sweep otherwise, one DescribeCases per hundred open cases and interval. What it tells Accounts is told again when it
was lost: a permit ends, a resolved case is seen again at the next look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from temporalio import activity
from temporalio.client import Client

from activities.accounts.metrics import organization_seen
from activities.accounts.reading import Reader
from activities.aws.cases import describe_cases
from activities.aws.organization import census, count_active, ensure_organizational_units
from activities.aws.session import Sessions
from domain.accounts.config import OperatorConfig
from domain.accounts.observations import (
    CaseResolved,
    EnsureUnits,
    OrganizationWorld,
    PassOrganization,
    Units,
)
from domain.accounts.organization import (
    Budget,
    OrganizationKnown,
    Verdicts,
    budget_since,
    judge,
    next_case_look,
    open_cases,
    wants_account,
)
from domain.accounts.pool import Room
from domain.accounts.resources import Account, AccountPool
from domain.carry import Carry
from domain.decision import Decision, Outcome, earliest
from domain.identity import Key
from domain.model import Model
from domain.resource import ObjectMeta
from engine.clock import now
from engine.heartbeat import heartbeating
from engine.temporal import identity_attributes, wake

RESOLVED = "resolved"
# While Accounts wait, the organization is counted again this often, or when one of them is heard of.
RECOUNT = timedelta(seconds=30)


class OrganizationActivities:
    """The organization's activities."""

    def __init__(self, reader: Reader, sessions: Sessions, client: Client) -> None:
        self._read = reader
        self._sessions = sessions
        self._client = client

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.pass_organization, self.ensure_units)

    @activity.defn(name=EnsureUnits.activity)
    async def ensure_units(self, wish: EnsureUnits) -> Units:
        """Find or make the OUs, one after the other."""
        ids = await asyncio.to_thread(ensure_organizational_units, self._sessions, wish.base, wish.names, {})
        return Units(ids=ids)

    @activity.defn(name=PassOrganization.activity)
    async def pass_organization(self, look: PassOrganization) -> OrganizationWorld:
        """One pass."""
        async with heartbeating():
            return await self._pass(look)

    async def _pass(self, look: PassOrganization) -> OrganizationWorld:
        accounts, pools, config, hold = await asyncio.gather(
            self._read.accounts(), self._read.pools(), self._read.config(), self._read.hold(ObjectMeta())
        )
        if not pools and not accounts:
            known = look.known.model_copy(update={"granted": {}, "told": {}})
            idle = Decision(phase="Idle", outcome=Outcome.SETTLED, why="no pools, no accounts")
            return OrganizationWorld(key=look.key, hold=hold, known=known, decision=idle)
        tells = not hold and not look.dry_run
        known = await self._count(look.known, accounts, pools, config, tells=tells)
        organization_seen(known, self._read.settings.accounts_sweep)
        known = await self._look_at_cases(known, accounts, tells=tells)
        return OrganizationWorld(key=look.key, hold=hold, known=known, decision=self._summary(known, accounts, config))

    # --- permits and room ---

    async def _count(
        self,
        known: OrganizationKnown,
        accounts: Sequence[Account],
        pools: Sequence[AccountPool],
        config: OperatorConfig,
        *,
        tells: bool,
    ) -> OrganizationKnown:
        settings, moment = self._read.settings, now()
        wanting = [account for account in accounts if wants_account(account)]
        if wanting:
            budget = Budget(
                in_flight=settings.accounts_create_in_flight,
                number=settings.accounts_create_budget,
                window=settings.accounts_create_budget_window,
            )
            since = budget_since(pools, budget.window, moment)
            counted = await asyncio.to_thread(census, self._sessions, since)
            verdicts = judge(
                accounts, pools, config, counted, known.granted, budget, settings.accounts_email_domain, moment
            )
            told = await self._tell(wanting, verdicts, known.told) if tells else known.told
            fresh = known.model_copy(
                update={"granted": verdicts.granted, "told": told, "room": verdicts.room, "counted_at": moment}
            )
        elif (
            known.room is None
            or known.granted  # the last of those that were being created has landed: the count has moved
            or known.room.limit != config.account_limit
            or _due(known.counted_at, settings.accounts_sweep, moment)
        ):
            fresh = await self._sweep(known, pools, config, moment)
        else:
            return known
        if tells and _differs(known.room, fresh.room):
            await asyncio.gather(*(wake(self._client, self._read.key(pool)) for pool in pools))
        return fresh

    async def _sweep(
        self, known: OrganizationKnown, pools: Sequence[AccountPool], config: OperatorConfig, moment: datetime
    ) -> OrganizationKnown:
        """Count the accounts alone; the budget is what the last full count left, or all of it, until one is needed."""
        settings = self._read.settings
        active = await asyncio.to_thread(count_active, self._sessions)
        before = known.room
        since = budget_since(pools, settings.accounts_create_budget_window, moment)
        stale = before is None or before.measured_at is None or before.measured_at < since
        budget = settings.accounts_create_budget if before is None or stale else before.budget
        room = Room(
            active=active,
            limit=config.account_limit,
            free=(config.account_limit or 0) - active,
            budget=max(budget, 1) if before and before.budget_free_at and before.budget_free_at <= moment else budget,
            budget_free_at=before.budget_free_at if before else None,
            measured_at=moment if stale or before is None else before.measured_at,
        )
        return known.model_copy(update={"granted": {}, "told": {}, "room": room, "counted_at": moment})

    async def _tell(self, wanting: Iterable[Account], verdicts: Verdicts, told: Mapping[str, str]) -> dict[str, str]:
        """Tell each Account its verdict, if it is another than it was told; a new permit is always told."""
        messages: dict[str, str] = {}
        signals = []
        for account in wanting:
            name = account.metadata.name
            permit = verdicts.permits[name]
            words = f"{permit.verdict}/{permit.until or permit.message}/{permit.account_id}{permit.request_id}"
            messages[name] = words
            if told.get(name) != words:
                signals.append(self._signal(self._read.key(account), "permit", permit))
        await asyncio.gather(*signals)
        return messages

    async def _signal(self, key: Key, name: str, message: Model) -> None:
        await self._client.start_workflow(
            key.kind,
            Carry(key=key),
            id=key.workflow_id,
            task_queue="accounts",
            start_signal=name,
            start_signal_args=[message],
            static_summary=key.path,
            search_attributes=identity_attributes(key),
        )

    # --- support cases ---

    async def _look_at_cases(
        self, known: OrganizationKnown, accounts: Sequence[Account], *, tells: bool
    ) -> OrganizationKnown:
        poll, moment = self._read.settings.accounts_case_poll, now()
        young, old = open_cases(accounts, moment)
        due_young = bool(young) and _at(
            next_case_look(known, young=True, old=False, case_poll=poll, now=moment), moment
        )
        due_old = bool(old) and _at(next_case_look(known, young=False, old=True, case_poll=poll, now=moment), moment)
        cases = {**(young if due_young else {}), **(old if due_old else {})}
        if not cases:
            return known
        states = await asyncio.to_thread(describe_cases, self._sessions, sorted(cases))
        if tells:
            resolved = [case_id for case_id, state in states.items() if state == RESOLVED and case_id in cases]
            await asyncio.gather(
                *(
                    self._signal(self._read.key(cases[case_id]), "case_resolved", CaseResolved(case_id=case_id))
                    for case_id in resolved
                )
            )
        looked = {"young_cases_at": moment} if due_young else {}
        return known.model_copy(update={**looked, **({"old_cases_at": moment} if due_old else {})})

    # --- what the workflow shows ---

    def _summary(self, known: OrganizationKnown, accounts: Sequence[Account], config: OperatorConfig) -> Decision:
        settings, moment = self._read.settings, now()
        young, old = open_cases(accounts, moment)
        cases = next_case_look(
            known, young=bool(young), old=bool(old), case_poll=settings.accounts_case_poll, now=moment
        )
        wanting = sum(wants_account(account) for account in accounts)
        granted = earliest(list(known.granted.values()))
        recount = moment + RECOUNT if wanting else None
        sweep = (known.counted_at or moment) + settings.accounts_sweep
        room = known.room
        budget_free_at = room.budget_free_at if room and wanting else None
        limit = config.account_limit if config.account_limit is not None else "unreadable"
        why = (
            f"{room.active if room else '?'} active accounts, account-limit {limit}, create budget "
            f"{room.budget if room else '?'} left; {wanting} wait to be created, "
            f"{len(young) + len(old)} for a support case"
        )
        waits = (("Account",) if wanting else ()) + (("SupportCase",) if young or old else ())
        return Decision(
            phase="Busy" if waits else "Idle",
            outcome=Outcome.WORKING if waits else Outcome.SETTLED,
            why=why,
            waits_for=waits,
            deadline=earliest([cases, granted, recount, budget_free_at, sweep]),
            at_deadline="look again",
        )


def _due(before: datetime | None, interval: timedelta, moment: datetime) -> bool:
    return before is None or moment >= before + interval


def _at(when: datetime | None, moment: datetime) -> bool:
    return when is not None and when <= moment


def _differs(before: Room | None, after: Room | None) -> bool:
    """True if a pool would decide otherwise: when it was measured does not matter."""
    if before is None or after is None:
        return before is not after
    return before.model_copy(update={"measured_at": None}) != after.model_copy(update={"measured_at": None})
