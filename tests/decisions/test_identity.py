"""Whose a lifecycle is that Temporal lists: read off its id."""

from __future__ import annotations

import pytest

from domain.accounts import THE_ORGANIZATION
from domain.identity import Key, id_prefix, key_found
from domain.instances.names import GroupKey, InstanceKey
from domain.instances.places import Place
from domain.instances.upkeep import key_of

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
def test_what_aws_has_named_is_every_clusters(key: Key, cluster: str) -> None:
    assert found(key, cluster) == key
    assert key.workflow_id.startswith(id_prefix(key.kind, cluster))
