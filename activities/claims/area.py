from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from activities.claims import metrics
from activities.claims.binder import BinderActivities
from activities.claims.binder_queue import BinderQueue
from activities.claims.binder_requests import Asking
from activities.claims.binding import Binding
from activities.claims.cache import ClaimCache
from activities.claims.claims import ClaimActivities
from activities.claims.duplicate_bindings import wake_duplicates
from activities.claims.evaluation import FUNCTIONS, Evaluation
from activities.claims.evaluator import Evaluator
from activities.claims.handle_deletion import Releasing
from activities.claims.handle_reconciliation import Reconciliation
from activities.claims.handles import HandleActivities
from activities.claims.managed_resources import Managed
from activities.claims.object_writes import WriteActivities, Writer
from activities.claims.pools import PoolActivities
from activities.claims.provider_conditions import ProviderConditions
from activities.claims.requester import Requesters
from activities.claims.tools import Tools
from activities.clients import Clients
from domain.claims import binder
from domain.claims.constants import IGNORED_VARIABLES
from domain.claims.passes import Asked, ObjectWorld
from domain.identity import Key
from engine.kube.discovery import Discovery
from engine.kube.informer_cache import Store
from engine.settings import present_variables
from engine.temporal import open_with, signal_if_open, signal_with_start, wake, wake_open

log = logging.getLogger(__name__)


async def activities(clients: Clients, stack: AsyncExitStack) -> Sequence[Callable[..., object]]:
    if ignored := present_variables(IGNORED_VARIABLES):
        log.info("these variables have no effect in Perdure: %s", ", ".join(ignored))
    settings, client, kube = clients.settings, clients.temporal, clients.kube
    metrics.listen(settings.claims_cluster_domain)

    async def wake_up(key: Key) -> None:
        await (wake if cache.exists(key) else wake_open)(client, key, cache.newest())

    evaluation = Evaluation(await stack.enter_async_context(Evaluator(FUNCTIONS)), settings)
    store = await stack.enter_async_context(Store(kube))
    cache = ClaimCache(kube, store, settings, wake_up)
    wake_duplicates(cache)
    queue = BinderQueue(cache)
    writer = Writer(kube, cache)
    managed = Managed(kube, Discovery(kube), cache)
    requesters = Requesters(kube, cache, settings.claims_refresh_interval)
    provider_conditions = ProviderConditions(writer, newer=not settings.claims_older_templates)
    reconciliation = Reconciliation(cache, writer, managed, evaluation, requesters, provider_conditions)
    tools = Tools(cache, writer, reconciliation, Releasing(cache, writer, managed), settings)

    async def ask_binder(claims: Sequence[Key]) -> None:
        await signal_with_start(
            client, binder(settings.claims_domain, claims[0].cluster), "serve_all", Asked(claims=tuple(claims))
        )

    async def opened(key: Key, world: ObjectWorld, *, signal: str = "") -> None:
        if cache.exists(key):
            await open_with(client, key, world, signal=signal)
            cache.check_later(key, cache.edits)

    async def open_claim(key: Key, world: ObjectWorld) -> None:
        if world.exists:
            await opened(key, world, signal="served")
        else:
            await signal_if_open(client, key, "ended", world)

    handles = HandleActivities(tools, Asking(ask_binder).ask)
    claims, binding = ClaimActivities(tools), Binding(tools, queue, evaluation)
    return [
        *claims.all(),
        *handles.all(),
        *binding.all(),
        *PoolActivities(tools, evaluation, opened).all(),
        *BinderActivities(tools, queue, binding.bind, claims.look, open_claim, wake_up).all(),
        *WriteActivities(writer).all(),
        *reconciliation.all(),
    ]
