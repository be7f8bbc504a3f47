"""The queues of the AWS provider's clusters, for the entry `clusters[/QUEUE][@ROLE]` of PERDURE_INSTANCES_QUEUES.

QUEUE is a name; `*-queue` stands for the provider's queue of each cluster. ROLE is the name and path of a role in each
account; by default the role of the cluster's identity is assumed. Clusters with static keys are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from domain.instances.arns import partition_of
from domain.instances.cluster_queue_names import cluster_queue_name
from domain.instances.event_topology import PREFIX
from domain.instances.served_queues import QUEUE_NAME, Place, place_of, places
from domain.model import Model

WORD = "clusters"
PROVIDER_QUEUE = "*-queue"
_ROLE_NAME = re.compile(r"[A-Za-z0-9+=,.@_/-]{1,512}", re.ASCII)


class ClusterEntry(Model):
    queue: str = PREFIX
    role: str = ""


class ProviderCluster(Model):
    namespace: str
    name: str
    region: str
    role: str = ""  # its identity's role; empty if it uses the provider's own credentials
    account: str  # the account of its role, or of the process's own credentials; empty if the role is no ARN


def cluster_entries(texts: Iterable[str]) -> tuple[tuple[str, ...], tuple[ClusterEntry, ...]]:
    """The entries that do not begin with `clusters`, unchanged; and the parsed entries that do. Raises ValueError,
    which names an invalid entry.
    """
    others, found = [], []
    for text in texts:
        path, at, role = text.partition("@")
        word, slash, queue = path.partition("/")
        if word != WORD:
            others.append(text)
            continue
        wrong = (slash and queue != PROVIDER_QUEUE and not QUEUE_NAME.fullmatch(queue)) or (
            at and not _ROLE_NAME.fullmatch(role)
        )
        if wrong:
            raise ValueError(f"{text!r} is not of the form {WORD}[/QUEUE][@ROLE], with the role's name, not its ARN")
        found.append(ClusterEntry(queue=queue or PREFIX, role=role))
    return tuple(others), tuple(found)


def check_entries(texts: Iterable[str]) -> None:
    """Raises ValueError, which names an invalid entry."""
    others, of_clusters = cluster_entries(texts)
    if of_clusters:
        for text in others:
            place_of(text)
    else:
        places(others)


def places_of_clusters(
    entries: Iterable[ClusterEntry], clusters: Sequence[ProviderCluster]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The clusters' entries, and messages about clusters whose entry is invalid."""
    found, left_out = set[str](), set[str]()
    for entry in entries:
        for cluster in clusters:
            text = _place(entry, cluster).entry
            try:
                place_of(text)
            except ValueError as error:
                left_out.add(
                    f"instances of Cluster {cluster.namespace}/{cluster.name} are not served: {error}; correct the "
                    "role of its identity, or add an entry for its account and region to PERDURE_INSTANCES_QUEUES"
                )
            else:
                found.add(text)
    return tuple(sorted(found)), tuple(sorted(left_out))


def servable(texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The entries that can be served, and those that cannot, because they share a queue that has no entry."""
    found = {text: place_of(text) for text in texts}
    queues = set(map(str, found.values()))
    lacking = tuple(text for text, place in found.items() if place.shares and place.shares not in queues)
    return tuple(text for text in found if text not in lacking), lacking


def _place(entry: ClusterEntry, cluster: ProviderCluster) -> Place:
    queue = cluster_queue_name(cluster.name) if entry.queue == PROVIDER_QUEUE else entry.queue
    partition = partition_of(cluster.region)
    role = f"arn:{partition}:iam::{cluster.account}:role/{entry.role}" if entry.role else cluster.role
    return Place(account=cluster.account, region=cluster.region, queue=queue, role=role)
