"""The pass that validates existing accounts; docs/accounts.md describes each check.

A failed check does not affect other accounts or checks: an Event on the Account reports the failure, and the check is
retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from pydantic import ValidationError
from temporalio import activity
from temporalio.client import Client

from activities.accounts.cache import Reader
from activities.accounts.handover import HandOver
from activities.activity_class import Activities
from activities.aws.account_moves import misplaced, move_between
from activities.aws.organization import set_tags, tags_of
from activities.aws.session import Sessions
from domain.accounts import ACCOUNT
from domain.accounts.account_validation import (
    MOST_REMEMBERED,
    ROOT,
    Check,
    PassValidation,
    Sighted,
    ValidationMemory,
    ValidationWorld,
    all_due,
    chosen,
    concerned,
    due_again,
    enabled,
    legal_entity_of,
    measure,
    name_of,
    quotas_outdated,
    quotas_unbegun,
    removable,
    settled,
    wanted_spec,
)
from domain.accounts.aws_account_tags import differing_tags
from domain.accounts.config import OperatorConfig
from domain.accounts.passes import UnitRequest
from domain.accounts.resources import Account
from domain.passes import swept
from domain.resource import ObjectMeta, parse_timestamp
from domain.writes import JsonPatch, difference
from engine.clock import now
from engine.errors import Absent, ApiError, Conflict, Invalid
from engine.kube import JsonObject
from engine.kube.events import EventContent, EventDeduplicator, Subject
from engine.kube.json import sequence, text
from engine.temporal import wake

# The minimum pause between passes, so that Accounts that are written together are validated in one pass.
REST = timedelta(seconds=5)
INTERVAL = timedelta(hours=10)
GATHER = timedelta(seconds=1)
COMPONENT = "perdure"


class ValidationActivities(Activities):
    def __init__(self, reader: Reader, sessions: Sessions, hand_over: HandOver, client: Client) -> None:
        self._read = reader
        self._client = client
        self._kube = reader.kube
        self._sessions = sessions
        self._hand_over = hand_over
        self._events = EventDeduplicator(reader.kube)

    @activity.defn(name=PassValidation.activity)
    async def pass_validation(self, look: PassValidation) -> ValidationWorld:
        moment, interval = now(), INTERVAL
        config = await self._read.config()
        checks = enabled(config)
        known = look.memory.model_copy(update={"looked_at": moment, "failed": ()})
        everything = all_due(look.memory, config, interval, moment)
        if everything:
            known = known.model_copy(update={"measure": measure(config), "swept_at": moment})
        if not checks:
            return _world(
                look,
                known,
                config.fault("fedramp")
                or "validation is off: a feature.validation_* flag or feature.accountpool_validation turns it on",
                None,
            )
        hold = await self._read.hold(ObjectMeta())
        if hold or look.dry_run:
            return _world(look, look.memory, "accounts would be validated", due_again(look.memory, interval), hold=hold)
        accounts = chosen(await self._sighted(), look.memory, everything=everything)
        # `protected` lacks the payer's own account, which `Sessions` refuses to change in AWS. The checks that change
        # only the Account object still apply to that account.
        protected = {*config.payer_account_ids, *self._read.settings.accounts_protected}
        accounts = tuple(account for account in accounts if concerned(account, protected))
        run = _Run(checks, config, moment)
        await self._validate(run, accounts)
        for account, event in run.events:
            await self._events.record_once(Subject.with_metadata(ACCOUNT, account.metadata), event, moment)
        known = known.model_copy(update={"failed": tuple(sorted(run.failed))[:MOST_REMEMBERED]})
        why = f"{len(accounts)} accounts were validated for {', '.join(sorted(checks))}: {run.mended} corrected"
        why += f", {len(run.failed)} could not be corrected: {next(iter(run.failed.values()))}" if run.failed else ""
        return _world(look, known, why, due_again(known, interval))

    async def _sighted(self) -> list[Sighted]:
        found: list[Sighted] = []
        for item in (await self._kube.list(ACCOUNT)).items:
            try:
                found.append(Sighted(account=Account.model_validate(item), written_at=_written_at(item)))
            except ValidationError:
                continue
        return found

    async def _validate(self, run: _Run, accounts: Sequence[Account]) -> None:
        if Check.REMOVAL in run.checks:
            for account in filter(removable, accounts):
                await self._remove(run, account)
        in_use = [account for account in accounts if settled(account)]
        if Check.PLACE in run.checks:
            await self._place(run, in_use)
        if Check.TAGS in run.checks:
            for account in in_use:
                await self._tag(run, account)
        if Check.QUOTAS in run.checks:
            for account in accounts:
                await self._quotas(run, account)

    async def _remove(self, run: _Run, account: Account) -> None:
        meta = account.metadata
        try:
            await self._kube.delete(ACCOUNT, meta.namespace, meta.name, uid=meta.uid)
        except (Absent, Conflict):
            return
        except ApiError as error:
            run.fails(account, "ValidationFailed", error)
            return
        run.mends(account, "Removed", "it failed before it had an AWS account")

    # --- OUs of accounts ---

    async def _place(self, run: _Run, accounts: Sequence[Account]) -> None:
        if not accounts:
            return
        parents = await self._parents(run.config, accounts)
        wanted: dict[str, str] = {}
        for account in accounts:
            parent = parents[legal_entity_of(account)]
            if isinstance(parent, ApiError):
                run.fails(account, "NotInItsPlace", parent)
            else:
                wanted[account.spec.aws_account_id] = parent
        strays = await asyncio.to_thread(misplaced, self._sessions, wanted)
        for account in accounts:
            source = strays.get(account.spec.aws_account_id)
            if isinstance(source, ApiError):
                run.fails(account, "NotInItsPlace", source)
            elif source is not None:
                await self._move(run, account, source, wanted[account.spec.aws_account_id])

    async def _parents(self, config: OperatorConfig, accounts: Iterable[Account]) -> dict[str, str | ApiError]:
        lacking = {key: Invalid(config.fault(key)) for key in config.missing("root", "base")}
        entities = {legal_entity_of(account) for account in accounts} - {ROOT}
        if error := lacking.get("base"):
            units: dict[str, str | ApiError] = dict.fromkeys(entities, error)
        else:
            units = await self._hand_over.units(config.base, entities)
        return {**units, ROOT: lacking.get("root", config.root)}

    async def _move(self, run: _Run, account: Account, source: str, target: str) -> None:
        id_ = account.spec.aws_account_id
        try:
            settled = await self._moved(run, account, source, target)
        except ApiError as error:
            run.fails(account, "NotInItsPlace", error)
            return
        if settled != source:
            run.mends(account, "Moved", f"{id_} was in {source} and was moved to {settled}")

    async def _moved(self, run: _Run, account: Account, source: str, target: str) -> str:
        entity, id_ = legal_entity_of(account), account.spec.aws_account_id

        def move(to: str) -> None:
            if to != source:
                move_between(self._sessions, id_, source, to)

        if entity == ROOT:
            await asyncio.to_thread(move, target)
            return target
        return await self._hand_over.moved(UnitRequest(base=run.config.base, legal_entity=entity), target, move)

    # --- tags and quotas ---

    async def _tag(self, run: _Run, account: Account) -> None:
        id_ = account.spec.aws_account_id
        try:
            tags = differing_tags(await asyncio.to_thread(tags_of, self._sessions, id_), run.config)
            if tags:
                await asyncio.to_thread(set_tags, self._sessions, id_, tags)
        except ApiError as error:
            run.fails(account, "NotTagged", error)
            return
        if tags:
            run.mends(account, "Tagged", f"{id_} was tagged with {', '.join(sorted(tags))}")

    async def _quotas(self, run: _Run, account: Account) -> None:
        spec = wanted_spec(account, run.config)
        if spec is None and not quotas_outdated(account):
            if quotas_unbegun(account):  # the process that wrote the quotas may have died before it woke the Account
                await wake(self._client, self._read.key(account))
            return
        try:
            if spec is not None:
                account = await self._patch(account, {"spec": difference(account.spec, spec)})
            blank: JsonPatch = {"status": {"regionalServiceQuotas": None, "globalServiceQuotas": None}}
            if account.status.regional_service_quotas or account.status.global_service_quotas:
                await self._patch(account, blank, subresource="status")
        except Absent:
            return
        except ApiError as error:
            run.fails(account, "QuotasNotUpdated", error)
            return
        await wake(self._client, self._read.key(account))  # the watcher ignores our own writes
        run.mends(account, "QuotasUpdated", "its quotas follow the ConfigMap again")

    async def _patch(self, account: Account, patch: JsonPatch, *, subresource: str = "") -> Account:
        uid = {"uid": account.metadata.uid}
        return await self._read.write(account, {**patch, "metadata": uid}, subresource=subresource)


class _Run:
    def __init__(self, checks: frozenset[Check], config: OperatorConfig, moment: datetime) -> None:
        self.checks = checks
        self.config = config
        self.moment = moment
        self.mended = 0
        self.failed: dict[str, str] = {}
        self.events: list[tuple[Account, EventContent]] = []

    def mends(self, account: Account, reason: str, message: str) -> None:
        self.mended += 1
        self.events.append(
            (account, EventContent("Normal", reason, f"{message} ({self.moment:%H:%M:%S} UTC)", COMPONENT))
        )

    def fails(self, account: Account, reason: str, error: ApiError) -> None:
        self.failed[name_of(account)] = error.message
        self.events.append((account, EventContent("Warning", reason, error.message, COMPONENT)))


def _written_at(item: JsonObject) -> datetime | None:
    """When any client last wrote the object; None if its managedFields contain no time."""
    times = (parse_timestamp(text(entry, "time")) for entry in sequence(item, "metadata", "managedFields"))
    return max((moment for moment in times if moment is not None), default=None)


def _world(
    look: PassValidation, known: ValidationMemory, why: str, due: datetime | None, *, hold: str = ""
) -> ValidationWorld:
    decision = swept(why, due, over="accounts")
    return ValidationWorld(key=look.key, hold=hold, known=known, decision=decision, rest=REST, gather=GATHER)
