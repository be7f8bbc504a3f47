from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from activities.accounts import metrics
from activities.accounts.account_validation import ValidationActivities
from activities.accounts.cache import Reader
from activities.accounts.claim_objects import DeliveryActivities
from activities.accounts.federated import FederatedObjects
from activities.accounts.handover import HandOver
from activities.accounts.observation import ObserveActivities
from activities.accounts.organization import OrganizationActivities
from activities.accounts.pool import PoolActivities
from activities.aws.activities import AwsActivities
from activities.aws.session import Sessions
from activities.clients import Clients
from engine.kube.informer_cache import Store


async def activities(clients: Clients, stack: AsyncExitStack) -> Sequence[Callable[..., object]]:
    metrics.listen()
    settings, client, blocking = clients.settings, clients.temporal, clients.blocking
    sessions = Sessions(blocking, settings)
    store = await stack.enter_async_context(Store(clients.kube))
    reader = Reader(clients.kube, settings, store)
    hand_over = HandOver(reader, sessions, client)
    return [
        *AwsActivities(sessions).all(),
        *FederatedObjects(reader).all(),
        *ObserveActivities(reader).all(),
        *PoolActivities(reader, hand_over, client).all(),
        *OrganizationActivities(reader, sessions, client).all(),
        *hand_over.all(),
        *ValidationActivities(reader, sessions, hand_over, client).all(),
        *DeliveryActivities(reader).all(),
    ]
