"""The accounts, regions and queues that PERDURE_INSTANCES_QUEUES names, for commands.

An entry `clusters` stands for the accounts and regions of the clusters of Cluster API's AWS provider. Without such an
entry, the API server is not asked.
"""

from __future__ import annotations

from domain.instances.queues_from_clusters import check_entries, cluster_entries
from domain.instances.served_queues import Place, places
from engine.settings import settings
from starters.cli.output import CommandError
from starters.cli.session import ClusterSession, perform_on_cluster


async def places_of(session: ClusterSession) -> tuple[Place, ...]:
    """Raises CommandError if the setting is malformed, ApiError if the clusters cannot be listed or an account is not
    known.
    """
    texts = session.settings.instances_queues
    try:
        check_entries(texts)
        if cluster_entries(texts)[1]:
            # This import loads boto3, which few commands need.
            from activities.instances.queues_from_clusters import resolved

            texts = (await resolved(session.settings, session.kube)).instances_queues
        return places(texts)
    except ValueError as error:
        raise CommandError(f"PERDURE_INSTANCES_QUEUES: {error}") from error


def places_of_settings() -> tuple[Place, ...]:
    """As `places_of`, without a session. Raises CommandError for every failure."""
    texts = settings().instances_queues
    try:
        others, of_clusters = cluster_entries(texts)
        return perform_on_cluster(places_of) if of_clusters else places(others)
    except ValueError as error:
        raise CommandError(f"PERDURE_INSTANCES_QUEUES: {error}") from error
