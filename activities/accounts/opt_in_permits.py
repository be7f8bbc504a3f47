"""Permits to opt in to regions: Accounts request permits, and the organization's pass grants them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from temporalio import activity
from temporalio.client import Client

from activities.accounts.cache import Reader
from activities.activity_class import Activities
from domain.accounts.actions.opt_in_regions import AskToOptIn
from domain.accounts.config import OperatorConfig
from domain.accounts.opt_in_permits import permits
from domain.accounts.organization import OrganizationMemory
from domain.accounts.passes import OptInPermit
from domain.accounts.resources import Account
from engine.clock import now
from engine.temporal import signal_with_start, wake


class OptInActivities(Activities):
    def __init__(self, reader: Reader, client: Client) -> None:
        self._read = reader
        self._client = client

    @activity.defn(name=AskToOptIn.activity)
    async def ask_to_opt_in(self, request: AskToOptIn) -> None:
        """Wake the organization's lifecycle, whose pass finds waiting Accounts."""
        await wake(self._client, self._read.organization)


async def give_permits(
    read: Reader,
    known: OrganizationMemory,
    accounts: Iterable[Account],
    config: OperatorConfig,
    client: Client,
    *,
    notifies: bool,
) -> OrganizationMemory:
    """Signal permits to the Accounts. A signal may be lost, so it is repeated until the Account begins to opt in.
    Returns the memory with the valid permits.
    """
    everyone = tuple(accounts)
    protected = {*config.payer_account_ids, *read.settings.accounts_protected}
    given = permits(everyone, config, known.opt_in_granted, now(), known.opt_in_let_go, protected)
    if notifies:
        permitted = (account for account in everyone if account.metadata.name in given.granted)
        signals = ((read.key(account), given.granted[account.metadata.name]) for account in permitted)
        await asyncio.gather(
            *(signal_with_start(client, key, "opt_in_permit", OptInPermit(until=until)) for key, until in signals)
        )
    # A permit that was not signalled is not recorded: it must not count as unused when it expires.
    granted = {name: until for name, until in given.granted.items() if notifies or name in known.opt_in_granted}
    return known.model_copy(
        update={"opt_in_granted": granted, "opt_in_wanting": given.waiting, "opt_in_let_go": given.let_go}
    )
