"""The accounts and regions of the AWS provider's clusters, for settings that name `clusters`.

When these accounts and regions change, the process ends, and its supervisor starts it again with the new ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from activities.aws.queue_account_roles import Places
from activities.instances.cluster_accounts import CLUSTER_KINDS, account_of_role, cluster_names, role_of
from domain.instances import AWS_CLUSTER_ROLE_IDENTITY
from domain.instances.event_envelope import REGION
from domain.instances.queues_from_clusters import (
    ClusterEntry,
    ProviderCluster,
    cluster_entries,
    places_of_clusters,
    servable,
)
from engine.errors import ApiError, Unavailable
from engine.kube.api import KubeApi
from engine.kube.informer_cache import Store
from engine.kube.json import JsonObject, text
from engine.kube.reflector import Followed
from engine.settings import Settings

# Seconds. The wait after a change, so that clusters which are created together end a process only once.
GATHER_SECONDS = 5.0
# Seconds. How long a command waits for the lists of clusters. After this time a process logs why it has no lists.
LISTED_WITHIN = 10.0
# Seconds. How often AWS is asked for the process's own account while it does not answer.
AGAIN_SECONDS = 5.0
# The identity's kind for clusters that use the provider's own credentials.
CONTROLLER_IDENTITY = "AWSClusterControllerIdentity"

logger = logging.getLogger(__name__)


class ClusterPlaces:
    def __init__(self, store: Store, entries: Sequence[ClusterEntry], callers: Places) -> None:
        self._entries = entries
        self._callers = callers
        self._identities = store.follow(Followed(AWS_CLUSTER_ROLE_IDENTITY))
        self._clusters = tuple(store.follow(Followed(kind)) for kind in CLUSTER_KINDS)
        self._changed = asyncio.Event()
        self._own: dict[str, str] = {}  # the process's account by region
        self._left_out: tuple[str, ...] = ()  # problems that were logged already
        for mirror in (self._identities, *self._clusters):
            mirror.listen(lambda _before, _after: self._changed.set())

    async def listed(self) -> tuple[str, ...]:
        """The same as `current`, once the clusters are listed. Raises TimeoutError if that takes too long."""
        async with asyncio.timeout(LISTED_WITHIN):
            for mirror in (self._identities, *self._clusters):
                await mirror.settled()
        return await self.current()

    @property
    def trouble(self) -> str:
        return next((each.trouble for each in (self._identities, *self._clusters) if each.trouble), "")

    async def current(self) -> tuple[str, ...]:
        """The PERDURE_INSTANCES_QUEUES entries for the clusters. Raises ApiError if AWS does not say to which account
        the process's credentials belong.
        """
        found = [await self._placed(cluster) for mirror in self._clusters for cluster in mirror.all()]
        entries, left_out = places_of_clusters(self._entries, [each for of_one in found for each in of_one])
        for problem in left_out:
            if problem not in self._left_out:
                logger.warning("%s", problem)
        self._left_out = left_out
        return entries

    async def other_than(self, known: Sequence[str]) -> tuple[str, ...]:
        """Wait until the entries for the clusters differ from `known`, and return the new entries."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._changed.clear()
            try:
                found = await self.current()
            except ApiError as error:
                logger.warning("the accounts and regions of new clusters are not known yet: %s", error.message)
                self._changed.set()
                continue
            if found != tuple(known):
                return found

    async def _placed(self, cluster: JsonObject) -> list[ProviderCluster]:
        region, identity = text(cluster, "spec", "region"), text(cluster, "spec", "identityRef", "kind")
        if not REGION.fullmatch(region):
            return []
        role = role_of(cluster, self._identities)
        if role:
            account = account_of_role(role)  # empty if the role is no ARN: then the cluster's entry is refused
        elif identity in ("", CONTROLLER_IDENTITY):
            account = await self._own_account(region)
        else:  # an identity with static keys, or a role identity that does not exist yet
            return []
        names = {name for _, name in cluster_names(cluster)} or {text(cluster, "metadata", "name")}
        namespace = text(cluster, "metadata", "namespace")
        return [
            ProviderCluster(namespace=namespace, name=name, region=region, role=role, account=account)
            for name in sorted(names)
        ]

    async def _own_account(self, region: str) -> str:
        if region not in self._own:
            self._own[region] = await asyncio.to_thread(self._callers.own_account, region)
        return self._own[region]


async def resolved(settings: Settings, api: KubeApi) -> Settings:
    """The settings for commands; in PERDURE_INSTANCES_QUEUES, entries for the clusters replace the word `clusters`.

    Raises ApiError if the clusters cannot be listed.
    """
    others, entries = cluster_entries(settings.instances_queues)
    async with Store(api) as store:
        clusters = ClusterPlaces(store, entries, _callers(settings))
        try:
            return _with(settings, others, await clusters.listed())
        except TimeoutError:
            problem = f"PERDURE_INSTANCES_QUEUES: the AWS provider's clusters cannot be listed: {clusters.trouble}"
            raise Unavailable(problem, code="ClustersUnknown") from None


async def run_with_cluster_places(
    settings: Settings, process: str, run: Callable[[Settings], Awaitable[None]], end: Callable[[], None]
) -> None:
    """Run a process; in its PERDURE_INSTANCES_QUEUES, entries for the clusters replace the word `clusters`.

    `process` is part of the User-Agent for the API server. `end` is called when these entries change.
    """
    others, entries = cluster_entries(settings.instances_queues)
    async with await KubeApi.open(settings, process) as api, Store(api) as store:
        clusters = ClusterPlaces(store, entries, _callers(settings))
        found = await _first(clusters)
        logger.info("accounts and regions of the AWS provider's clusters: %s", ", ".join(found) or "none yet")

        async def end_when_others() -> None:
            others = await clusters.other_than(found)
            logger.warning(
                "the AWS provider's clusters are in other accounts or regions now: %s; "
                "this process ends, and starts again with these accounts and regions",
                ", ".join(others) or "none",
            )
            end()

        following = asyncio.create_task(end_when_others())
        try:
            await run(_with(settings, others, found))
        finally:
            following.cancel()


async def _first(clusters: ClusterPlaces) -> tuple[str, ...]:
    while True:
        try:
            return await clusters.listed()
        except TimeoutError:
            logger.warning("the AWS provider's clusters cannot be listed, waiting: %s", clusters.trouble)
        except ApiError as error:
            logger.warning("the process's own account is not known, trying again: %s", error.message)
            await asyncio.sleep(AGAIN_SECONDS)


def _callers(settings: Settings) -> Places:
    return Places(connections=1, observing=settings.observing)


def _with(settings: Settings, others: Sequence[str], found: Sequence[str]) -> Settings:
    entries, lacking = servable((*others, *found))
    for entry in lacking:
        logger.warning(
            "PERDURE_INSTANCES_QUEUES: %s is not served, because no other entry and no cluster has the queue that it "
            "shares",
            entry,
        )
    return settings.model_copy(update={"instances_queues": entries})
