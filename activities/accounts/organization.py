"""The pass over the organization: counts AWS accounts, grants permits to Accounts, and queries open support cases."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from temporalio import activity
from temporalio.client import Client

from activities.accounts.cache import Reader
from activities.accounts.metrics import organization_seen
from activities.activity_class import Activities
from activities.aws.existing_accounts import foreign
from activities.aws.organization import (
    ccs_access_arn,
    census,
    count_active,
    ensure_organizational_units,
    names_in_progress,
)
from activities.aws.session import Sessions
from activities.aws.support_cases import RESOLVED, describe_cases
from domain.accounts.actions.opt_in_regions import AskToOptIn
from domain.accounts.ccs_access import AccessRole, state_of
from domain.accounts.config import OperatorConfig
from domain.accounts.constants import CCS_ACCESS_KEY, CREATED_AT_ONCE, OPERATOR_NAMESPACE
from domain.accounts.creation_permits import Verdicts, adopted, judge, room_ages, scarce, swept, unborn, wants_account
from domain.accounts.opt_in_permits import permits, permits_age
from domain.accounts.organization import Budget, OrganizationMemory
from domain.accounts.passes import (
    CaseResolved,
    EnsureUnits,
    OptInPermit,
    OrganizationWorld,
    PassOrganization,
    RecordAccessRole,
    TellPools,
    Units,
)
from domain.accounts.pool import Room
from domain.accounts.resources import Account, AccountPool
from domain.accounts.support_case_polling import due_cases, next_case_looks, open_cases, youngest_case
from domain.decision import Decision, Outcome, earliest
from domain.refusal import without_request
from domain.resource import ObjectMeta
from engine.clock import now
from engine.errors import Absent, ApiError, Denied, Invalid
from engine.temporal import signal_with_start, wake

# The longest interval between two counts of the organization's accounts.
SWEEP = timedelta(minutes=5)
# The longest interval between two counts while Accounts wait.
RECOUNT = timedelta(minutes=1)
# The minimum pause between passes, and how long changes gather. Accounts that start together open their support cases
# together, so one query then finds all these cases.
BRISK = timedelta(milliseconds=300)
LET_CHANGES_GATHER = timedelta(seconds=3)
MOVING_TOGETHER = timedelta(milliseconds=700)

logger = logging.getLogger(__name__)


class OrganizationActivities(Activities):
    def __init__(self, reader: Reader, sessions: Sessions, client: Client) -> None:
        self._read = reader
        self._sessions = sessions
        self._client = client

    @activity.defn(name=EnsureUnits.activity)
    async def ensure_units(self, request: EnsureUnits) -> Units:
        return await asyncio.to_thread(ensure_organizational_units, self._sessions, request.base, request.names)

    @activity.defn(name=PassOrganization.activity)
    async def pass_organization(self, look: PassOrganization) -> OrganizationWorld:
        hold = await self._read.hold(ObjectMeta())
        notifies = not hold and not look.dry_run
        known = look.memory
        if look.woken or look.dry_run or self._count_is_due(known):
            known = await self._count(known, look.seen, notifies=notifies)
            organization_seen(known, self._sweep)
        known = await self._look_at_cases(known, notifies=notifies)
        return OrganizationWorld(
            key=look.key,
            hold=hold,
            known=known,
            decision=self._summary(known),
            rest=LET_CHANGES_GATHER if _busy(known) and not _can_create(known) else BRISK,
            gather=MOVING_TOGETHER if _busy(known) else timedelta(0),
        )

    @activity.defn(name=TellPools.activity)
    async def tell_pools(self, news: TellPools) -> None:
        await asyncio.gather(*(wake(self._client, self._read.key(pool)) for pool in await self._pools()))

    @activity.defn(name=AskToOptIn.activity)
    async def ask_to_opt_in(self, _: AskToOptIn) -> None:
        """Wake the organization's lifecycle, whose pass finds waiting Accounts."""
        await wake(self._client, self._read.organization)

    @activity.defn(name=RecordAccessRole.activity)
    async def record_access_role(self, _: RecordAccessRole) -> AccessRole:
        try:
            arn = await asyncio.to_thread(ccs_access_arn, self._sessions)
            if (await self._read.config()).ccs_access_arn != arn:
                await self._read.write_config({CCS_ACCESS_KEY: arn})
        except (Absent, Denied, Invalid) as error:
            logger.warning("key %s of the ConfigMap is not written: %s", CCS_ACCESS_KEY, error.message)
            return AccessRole(problem=error.message)
        return AccessRole(arn=arn)

    async def _pools(self) -> Sequence[AccountPool]:
        return await self._read.all(AccountPool, OPERATOR_NAMESPACE)

    @property
    def _sweep(self) -> timedelta:
        return self._read.settings.sweep or SWEEP

    # --- permits and room ---

    async def _count(self, known: OrganizationMemory, seen: Mapping[str, str], *, notifies: bool) -> OrganizationMemory:
        accounts = await self._read.accounts(seen)
        # The limit is read from the API server when it matters: here if no room is left, and before a permit is given.
        near = known.room is None or known.room.limit is None or known.room.free <= 0
        config = await self._read.config(None if near else seen)
        young, old = open_cases(accounts, now())
        known = known.model_copy(
            update={
                "youngest_case_at": youngest_case(young, now()),
                "young_cases": {case_id: self._read.key(account) for case_id, account in young.items()},
                "old_cases": {case_id: self._read.key(account) for case_id, account in old.items()},
                "config": state_of(config),
                "wanting": sum(wants_account(account) for account in accounts),
            }
        )
        known = await self.give_opt_in_permits(known, accounts, config, notifies=notifies)
        return await self._judge(known, accounts, config, notifies=notifies)

    async def give_opt_in_permits(
        self, known: OrganizationMemory, accounts: Sequence[Account], config: OperatorConfig, *, notifies: bool
    ) -> OrganizationMemory:
        """Signal permits to the Accounts. A signal may be lost, so it is repeated until the Account begins to opt in.
        Returns the memory with the valid permits.
        """
        protected = {*config.payer_account_ids, *self._read.settings.accounts_protected}
        given = permits(accounts, config, known.opt_in_granted, now(), known.opt_in_let_go, protected)
        if notifies:
            await asyncio.gather(
                *(
                    signal_with_start(self._client, self._read.key(account), "opt_in_permit", OptInPermit(until=until))
                    for account in accounts
                    if (until := given.granted.get(account.key.path))
                )
            )
        # A permit that was not signalled is not recorded: it must not count as unused when it expires.
        granted = {path: until for path, until in given.granted.items() if notifies or path in known.opt_in_granted}
        return known.model_copy(
            update={"opt_in_granted": granted, "opt_in_wanting": given.waiting, "opt_in_let_go": given.let_go}
        )

    async def _judge(
        self, known: OrganizationMemory, accounts: Sequence[Account], config: OperatorConfig, *, notifies: bool
    ) -> OrganizationMemory:
        settings, moment = self._read.settings, now()
        wanting = [account for account in accounts if wants_account(account)]
        budget = Budget(number=settings.accounts_create_budget)
        if wanting:
            verdicts = await self._verdicts(known, accounts, config, budget, moment)
            reported = await self._send_permits(wanting, verdicts, known.reported) if notifies else known.reported
            fresh = known.model_copy(
                update={
                    "granted": verdicts.granted,
                    "reported": reported,
                    "room": verdicts.room,
                    "counted_at": moment,
                    "strangers": verdicts.strangers,
                    "passed": verdicts.passed,
                }
            )
        elif self._sweep_is_due(known) or self._moved(known, config):
            pools = await self._pools()
            # Pending creations are read first: an account that is completed meanwhile may be counted twice, but not
            # missed.
            creating = await asyncio.to_thread(names_in_progress, self._sessions)
            active = await asyncio.to_thread(count_active, self._sessions)
            fresh = swept(known, accounts, pools, config.account_limit, active, creating, budget, moment)
        else:
            fresh = known
        room_unreported = known.room_unreported or _differs(known.room, fresh.room)
        decides = scarce(known.room, unborn(accounts), budget) or scarce(fresh.room, unborn(accounts), budget)
        news = known.news or (room_unreported and (decides or not wanting))
        return fresh.model_copy(update={"room_unreported": room_unreported, "news": news})

    async def _verdicts(
        self,
        known: OrganizationMemory,
        accounts: Sequence[Account],
        config: OperatorConfig,
        budget: Budget,
        moment: datetime,
    ) -> Verdicts:
        """The permits. Only if the create budget may be used up are the pools read, too: they record resets of the
        budget.
        """
        domain = self._read.settings.accounts_email_domain
        counted = await asyncio.to_thread(census, self._sessions, moment - budget.window)
        requested = adopted(accounts, counted, known.reported, domain, known.strangers, known.passed)
        others = await asyncio.to_thread(foreign, self._sessions, requested) if requested else set()
        strangers = {*known.strangers, *others}

        def verdicts(pools: Sequence[AccountPool], config: OperatorConfig) -> Verdicts:
            return judge(
                accounts, pools, config, counted, known.granted, budget, domain, moment, strangers, known.passed
            )

        pools: Sequence[AccountPool] = ()
        found = verdicts(pools, config)
        if scarce(found.room, unborn(accounts), budget):
            pools = await self._pools()
            found = verdicts(pools, config)
        gives = found.granted.items() - known.granted.items()
        return verdicts(pools, await self._read.config()) if gives else found

    def _count_is_due(self, known: OrganizationMemory) -> bool:
        aged = room_ages(known, now()) or permits_age(known, now())
        return bool(known.wanting or known.opt_in_wanting) or aged or self._sweep_is_due(known)

    def _sweep_is_due(self, known: OrganizationMemory) -> bool:
        return known.counted_at is None or now() >= known.counted_at + self._sweep

    @staticmethod
    def _moved(known: OrganizationMemory, config: OperatorConfig) -> bool:
        room = known.room
        return room is None or bool(known.granted) or room.limit != config.account_limit or room.budget <= 0

    async def _send_permits(
        self, wanting: Iterable[Account], verdicts: Verdicts, reported: Mapping[str, str]
    ) -> dict[str, str]:
        messages: dict[str, str] = {}
        signals = []
        for account in wanting:
            path = account.key.path
            name = path if path in verdicts.behind else account.metadata.name
            permit = verdicts.behind.get(path) or verdicts.permits[name]
            words = f"{permit.verdict}/{permit.until or permit.message}/{permit.account_id}{permit.request_id}"
            messages[name] = words
            if reported.get(name) != words:
                signals.append(signal_with_start(self._client, self._read.key(account), "permit", permit))
        await asyncio.gather(*signals)
        return messages

    # --- support cases ---

    async def _look_at_cases(self, known: OrganizationMemory, *, notifies: bool) -> OrganizationMemory:
        moment = now()
        cases, young, old = due_cases(known, self._read.settings.accounts_poll, moment)
        if not cases:
            return known
        states, problem = dict[str, str](), ""
        try:
            states = await asyncio.to_thread(describe_cases, self._sessions, sorted(cases))
        except ApiError as error:
            problem = without_request(error.message)
            logger.warning("support cases cannot be queried: %s", problem)
        resolved = {case_id for case_id, state in states.items() if state == RESOLVED and case_id in cases}
        if notifies:
            signals = (
                signal_with_start(self._client, cases[c], "case_resolved", CaseResolved(case_id=c))
                for c in sorted(resolved)
            )
            await asyncio.gather(*signals)
        return known.model_copy(
            update={
                "young_cases_at": moment if young else known.young_cases_at,
                "old_cases_at": moment if old else known.old_cases_at,
                "cases_problem": problem,
                "young_cases": {c: key for c, key in known.young_cases.items() if c not in resolved},
                "old_cases": {c: key for c, key in known.old_cases.items() if c not in resolved},
            }
        )

    # --- the workflow's status ---

    def _summary(self, known: OrganizationMemory) -> Decision:
        moment, room = now(), known.room
        case_looks = next_case_looks(known, self._read.settings.accounts_poll, moment)
        recount = moment + RECOUNT if known.wanting or known.opt_in_wanting else None
        budget_free_at = room.budget_free_at if room and room.budget <= 0 else None
        limit = room.limit if room and room.limit is not None else "unreadable"
        why = (
            f"{room.active if room else '?'} active accounts, account-limit {limit}, "
            f"{room.budget if room else '?'} left of the create budget; {known.wanting} Accounts wait to be created, "
            f"{len(known.young_cases) + len(known.old_cases)} wait for a support case, "
            f"{known.opt_in_wanting} wait for their turn to opt in to regions"
        )
        waits = (("Account",) if known.wanting or known.opt_in_wanting else ()) + (
            ("SupportCase",) if known.young_cases or known.old_cases else ()
        )
        if known.cases_problem and (known.young_cases or known.old_cases):
            why = f"{why}; support cases cannot be queried: {known.cases_problem}"
        return Decision(
            phase="Busy" if waits else "Idle",
            outcome=Outcome.WORKING if waits else Outcome.SETTLED,
            why=why,
            waits_for=waits,
            deadline=earliest(
                [
                    *case_looks,
                    *known.granted.values(),
                    *known.opt_in_granted.values(),
                    recount,
                    budget_free_at,
                    (known.counted_at or moment) + self._sweep,
                ]
            ),
            at_deadline="observe again",
        )


def _busy(known: OrganizationMemory) -> bool:
    return bool(known.wanting or known.young_cases)


def _can_create(known: OrganizationMemory) -> bool:
    """Whether AWS could create another account now. If so, the pause between passes is short."""
    room = known.room
    if not known.wanting or room is None or min(room.free, room.budget) <= 0:
        return False
    return room.creating + len(known.granted) < CREATED_AT_ONCE


def _differs(before: Room | None, after: Room | None) -> bool:
    if before is None or after is None:
        return before is not after
    return before.model_copy(update={"measured_at": None}) != after.model_copy(update={"measured_at": None})
