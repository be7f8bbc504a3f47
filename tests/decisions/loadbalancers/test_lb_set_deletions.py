"""The deletion of several sets of a LoadBalancer, and the creation of one that exists already."""

from __future__ import annotations

from typing import Any

import pytest
from lb_objects import balancer, balancer_world, machine_set
from lb_pass_context import context_on
from memory_kube import MemoryKube

from activities.loadbalancers.balancers import LoadBalancerActivities
from domain.identity import Key, Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_SET
from domain.loadbalancers.balancer_world import CreateSet, DeleteSets
from domain.loadbalancers.resources import LoadBalancerSet
from engine.errors import Conflict, Denied

FIRST, SECOND = "web--shop-aaaa", "web--shop-bbbb"
KEY = Key(kind=LOAD_BALANCER.name, namespace="lbs", name="web--shop", uid="lb-uid")


class Guarded(MemoryKube):
    """Its policy protects one set."""

    async def delete(self, kind: Kind, namespace: str, name: str, **more: Any) -> dict[str, Any] | None:
        if name == FIRST:
            raise Denied(f"a policy protects {name}")
        return await super().delete(kind, namespace, name, **more)


async def test_a_set_that_may_not_be_deleted_keeps_no_other_from_its_deletion() -> None:
    kube = Guarded()
    for name in (FIRST, SECOND):
        await kube.create(LOAD_BALANCER_SET, machine_set(name).model_dump(mode="json", exclude_none=True), "lbs")
    with pytest.raises(Denied, match=FIRST):
        await LoadBalancerActivities(context_on(kube)).delete_sets(
            DeleteSets(key=KEY, namespace="lbs", names=(FIRST, SECOND))
        )
    assert [each["metadata"]["name"] for each in (await kube.list(LOAD_BALANCER_SET, "lbs")).items] == [FIRST]


async def creation_beside(changed: LoadBalancerSet) -> tuple[MemoryKube, LoadBalancerSet]:
    """What the creation of a LoadBalancer's set answers if there is a set of its name."""
    kube = MemoryKube()
    await kube.create(LOAD_BALANCER_SET, changed.model_dump(mode="json", exclude_none=True), "lbs")
    wanted = machine_set(FIRST)
    create = CreateSet(namespace="lbs", name=FIRST, document=wanted.model_dump(mode="json", exclude_none=True))
    return kube, await LoadBalancerActivities(context_on(kube)).create_set(create)


@pytest.mark.parametrize("label", ["yawol.stackit.cloud/loadbalancer", "lbm-template-hash"])
@pytest.mark.parametrize("value", [None, "other"])
async def test_a_set_whose_labels_a_person_changed_gets_them_back(label: str, value: str | None) -> None:
    changed = machine_set(FIRST, metadata={"labels": {label: value, "team": "shop"}})
    kube, found = await creation_beside(changed)
    (stored,) = (await kube.list(LOAD_BALANCER_SET, "lbs")).items
    wanted = {**machine_set(FIRST).metadata.labels, "team": "shop"}
    assert stored["metadata"]["labels"] == found.metadata.labels == wanted


@pytest.mark.parametrize("labels", [{}, {"lbm-template-hash": "other"}])
def test_a_set_that_was_observed_before_its_creation_has_ended_is_no_second_set(labels: dict[str, str]) -> None:
    before = balancer_world(balancer(), sets=[machine_set(FIRST, metadata={"labels": labels})])
    made = machine_set(FIRST)
    assert CreateSet(namespace="lbs", name=FIRST, document={}).fold(before, made).sets == (made,)


async def test_a_set_of_another_owner_keeps_its_labels() -> None:
    changed = machine_set(FIRST, metadata={"labels": {"lbm-template-hash": "other"}, "ownerReferences": []})
    with pytest.raises(Conflict, match="another owner"):
        await creation_beside(changed)
