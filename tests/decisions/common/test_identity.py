"""Whose a lifecycle is: read off the id that Temporal lists, and run by the workers that poll its task queue."""

from __future__ import annotations

import pytest

from domain.accounts import THE_ORGANIZATION
from domain.identity import Key, all_areas, all_kinds, id_prefix, key_found
from domain.instances.event_topology_upkeep import key_of
from domain.instances.served_queues import Place
from domain.instances.workflow_ids import GroupKey, InstanceKey
from engine.settings import Settings
from engine.temporal import start_of
from starters.cli.temporal import queues
from workers.task_queues import queues_of

INSTANCE = InstanceKey(account="1", region="eu-west-1", instance_id="i-1").lifecycle
GROUP = GroupKey(account="1", region="eu-west-1", group="g").lifecycle
OF_CLUSTERS = (
    Key(kind="Account", namespace="ns", name="one", uid="42"),
    Key(kind="LaterKind", namespace="ns", name="one", uid="42"),
    THE_ORGANIZATION,
    key_of(Place(account="1", region="eu-west-1")),
)


def found(key: Key, cluster: str) -> Key | None:
    return key_found(key.workflow_id, key.kind, key.namespace, key.name, cluster)


@pytest.mark.parametrize("key", OF_CLUSTERS, ids=lambda key: key.kind)
def test_a_cluster_knows_its_own_by_their_ids_and_no_others(key: Key) -> None:
    clusters = ("", "north", "north-2")
    keys = {cluster: key.model_copy(update={"cluster": cluster}) for cluster in clusters}
    for cluster in clusters:
        assert [found(each, cluster) for each in keys.values() if found(each, cluster)] == [keys[cluster]]
        begins = [each for each in clusters if keys[each].workflow_id.startswith(id_prefix(key.kind, cluster))]
        assert begins == [cluster]


@pytest.mark.parametrize("key", [INSTANCE, GROUP], ids=lambda key: key.kind)
@pytest.mark.parametrize("cluster", ["", "north"])
def test_names_of_aws_are_shared_by_all_clusters(key: Key, cluster: str) -> None:
    assert found(key, cluster) == key.model_copy(update={"cluster": cluster})
    assert key.model_copy(update={"cluster": cluster}).workflow_id == key.workflow_id
    assert key.workflow_id.startswith(id_prefix(key.kind, cluster))


def queue_of(kind: str, cluster: str) -> str:
    operation = start_of(Key(kind=kind, namespace="ns", name="one", uid="42", cluster=cluster))
    return operation._start_workflow_input.task_queue


@pytest.mark.parametrize("kind", sorted(name for name, kind in all_kinds().items() if kind.lifecycle))
async def test_a_lifecycle_is_started_where_its_own_clusters_workers_ask(kind: str) -> None:
    area = all_kinds()[kind].area
    for cluster in ("", "north", "north-2"):
        polled = queues_of([area], cluster)
        assert (queue_of(kind, cluster), "workflow") in polled
    assert queue_of(kind, "") == area


def test_no_two_clusters_workers_ask_for_the_same_work() -> None:
    clusters = ("", "north", "north-2", "instances", "aws", "accounts")
    polled = [queues_of(all_areas(), cluster) for cluster in clusters]
    assert len({name for each in polled for name, _ in each}) == len(clusters) * len({name for name, _ in polled[0]})


def test_a_version_is_made_current_once_it_asks_for_its_own_clusters_work() -> None:
    assert queues(Settings(cluster="north"), "claims") == {
        ("north/claims", "workflow"),
        ("north/claims-passes", "activity"),
    }
    assert queues(Settings(), "claims") == {("claims", "workflow"), ("claims-passes", "activity")}
