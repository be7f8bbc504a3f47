"""Where events go, and in which order."""

from __future__ import annotations

from instance_scenes import ACCOUNT, GROUP, ID, REGION, at, event, hook, spot, state

from domain.instances.event_handover import update_id
from domain.instances.event_routing import group_of, instance_of, on_host
from domain.instances.event_urgency import by_instance, urgency
from domain.instances.events import EventKind
from domain.instances.workflow_ids import GroupKey, InstanceKey

ONE = state("running", 0)


def test_an_event_goes_to_its_instance_and_wakes_its_group() -> None:
    instance, group = instance_of(hook(0)), group_of(hook(0))
    assert instance is not None
    assert group is not None
    assert instance.workflow_id == f"Ec2Instance/{ACCOUNT}/{REGION}/{ID}"
    assert group.workflow_id == f"AutoScalingGroup/{ACCOUNT}/{REGION}/{GROUP}"
    assert (instance_of(event(EventKind.LAUNCH_FAILED, 0, instance_id="")), group_of(ONE)) == (None, None)


def test_an_event_of_a_host_is_one_of_each_instance_on_it() -> None:
    of_host = event(EventKind.HEALTH_SCHEDULED, 0, instance_id="", host="h-1")
    found = on_host(of_host, {"i-2", "i-1"})
    assert [each.instance_id for each in found] == ["i-1", "i-2"]
    assert len({each.key for each in found}) == 2
    assert on_host(of_host, ()) == ()
    assert on_host(ONE, ()) == (ONE,)


def test_a_batch_is_grouped_by_instance_in_the_order_of_time_the_urgent_first() -> None:
    quiet = [state("stopped", 9, instance_id="i-q"), state("running", 2, instance_id="i-q")]
    pressing = [state("running", 3, instance_id="i-s"), spot(1, instance_id="i-s")]
    found = by_instance([event(EventKind.HEALTH_SCHEDULED, 0, instance_id="i-h"), *quiet, quiet[0], *pressing])
    assert [key.instance_id for key in found] == ["i-s", "i-q", "i-h"]
    assert [each.time for each in found[next(iter(found))]] == [at(1), at(3)]
    assert [len(each) for each in found.values()] == [2, 2, 1]
    assert urgency([]) == 2


def test_two_accounts_never_share_an_instance() -> None:
    assert len(by_instance([ONE, state("running", 0, account="999999999999")])) == 2


def test_the_same_events_have_one_update_id_in_any_order_and_another_per_delivery() -> None:
    first, second = state("running", 0), spot(1)
    assert update_id([first, second]) == update_id([second, first, first])
    assert update_id([first]) == first.key
    assert len({update_id([first]), update_id([second]), update_id([first, second]), update_id([first], 2)}) == 4


def test_a_lifecycle_leads_back_to_its_instance_and_its_group() -> None:
    instance = InstanceKey(account=ACCOUNT, region=REGION, instance_id=ID)
    group = GroupKey(account=ACCOUNT, region=REGION, group=GROUP)
    assert InstanceKey.of(instance.lifecycle) == instance
    assert GroupKey.of(group.lifecycle) == group
