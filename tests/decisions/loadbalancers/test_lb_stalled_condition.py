"""When a LoadBalancer is Stalled, and when its mark proves that nothing was made for it."""

from __future__ import annotations

from typing import Any

import pytest
from lb_objects import INSTALLATION, NOW, ago, balancer, balancer_world, refusal, service

from activities.kube.writes import dropped_fields
from domain.loadbalancers.balancer_lifecycle import Phase, decide_balancer
from domain.loadbalancers.balancer_world import BalancerWorld, CreateSet, WriteStatus
from domain.loadbalancers.cloud.objects import LoadBalancerCloud
from domain.loadbalancers.cloud.steps import CreateSecurityGroup
from domain.loadbalancers.constants import LOAD_BALANCER_FINALIZER, NOTHING_MADE_ANNOTATION, REVISION_ANNOTATION
from domain.loadbalancers.refused_calls import QUOTA as OVER_QUOTA
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.services.synchronization import work_for
from domain.refusal import ErrorType, Refusal
from domain.writes import DropFinalizer, Patch, Written, merge

OURS = {"finalizers": [LOAD_BALANCER_FINALIZER]}
MISSING = refusal(ErrorType.DENIED, "Secret lbs/cloud does not exist")
REFUSED = refusal(ErrorType.DENIED, "network n-1 does not exist [request req-1]")
QUOTA = refusal(ErrorType.DENIED, "no floating IP is left", OVER_QUOTA)
OUTAGE = refusal(ErrorType.UNAVAILABLE, "Neutron does not answer")
UNDER_WAY = refusal(ErrorType.PENDING, "the port is let go")


def status_of(world: BalancerWorld) -> dict[str, object]:
    """What is written of the status."""
    writes = [each for each in decide_balancer(world, NOW).actions if isinstance(each, WriteStatus)]
    return writes[0].patch if writes else {}


def stalled(of: LoadBalancer, hindrance: Refusal | None, **more: Any) -> tuple[str | None, str | None] | None:
    """Reason and message of the condition after a pass, None without one."""
    world = balancer_world(of, None, (), hindrance).learn(**more)
    after = LoadBalancer.model_validate(merge(of.model_dump(mode="json", by_alias=True), status_of(world)))
    found = [each for each in after.status.conditions if each.type == "Stalled"]
    return (found[0].reason, found[0].message) if found else None


def with_condition(reason: str, message: str) -> LoadBalancer:
    condition = {"type": "Stalled", "status": "True", "reason": reason, "message": message}
    return balancer(metadata=OURS, status={"conditions": [{**condition, "lastTransitionTime": ago(hours=1)}]})


@pytest.mark.parametrize(
    ("hindrance", "shown"),
    [
        (REFUSED, ("Refused", "network n-1 does not exist")),
        (QUOTA, ("QuotaExceeded", "no floating IP is left")),
        (OUTAGE, None),
        (UNDER_WAY, None),
        (None, None),
    ],
)
def test_an_error_for_a_person_is_a_condition(hindrance: Refusal | None, shown: object) -> None:
    assert stalled(balancer(metadata=OURS), hindrance) == shown


@pytest.mark.parametrize("annotations", [{}, {REVISION_ANNOTATION: "7"}])
def test_a_rollout_whose_revision_the_api_server_refuses_is_shown(annotations: dict[str, str]) -> None:
    refused = refusal(ErrorType.DENIED, "the policy forbids it")
    seen = balancer_world(balancer(metadata={**OURS, "annotations": annotations or {REVISION_ANNOTATION: None}}))
    world = seen.model_copy(update={"refusals": {"kube.write": refused}})
    decision = decide_balancer(world, NOW)
    assert (decision.phase, decision.why, decision.waits_for) == ("Waiting", refused.message, (refused.message,))
    assert [(each.reason, each.message) for each in decision.notices] == [("Failed", refused.message)]


def test_a_set_that_the_api_server_refuses_is_a_condition_and_is_tried_again() -> None:
    refused = refusal(ErrorType.INVALID, "metadata.name: must be no more than 253 characters")
    seen = balancer_world(balancer(metadata=OURS))
    world = seen.model_copy(update={"refusals": {CreateSet.activity: refused}})
    (write,) = decide_balancer(world, NOW).actions
    decision = decide_balancer(write.fold(world, Written()), NOW)
    assert [type(each) for each in decision.actions] == [CreateSet]
    assert (decision.phase, decision.why) == ("Waiting", refused.message)
    assert [(each.reason, each.message) for each in decision.notices] == [("Failed", refused.message)]
    (condition,) = write.fold(world, Written()).balancer.status.conditions
    assert (condition.type, condition.reason, condition.message) == ("Stalled", "Refused", refused.message)


def test_the_next_refusal_writes_nothing_though_its_request_has_another_id() -> None:
    again = refusal(ErrorType.DENIED, "network n-1 does not exist [request req-2]")
    world = balancer_world(with_condition("Refused", "network n-1 does not exist"), None, (), again)
    assert "conditions" not in status_of(world).get("status", {})  # type: ignore[operator]


@pytest.mark.parametrize("passing", [OUTAGE, UNDER_WAY])
def test_a_passing_blocker_leaves_the_condition(passing: Refusal) -> None:
    of = with_condition("Refused", "network n-1 does not exist")
    assert stalled(of, passing) == ("Refused", "network n-1 does not exist")


def test_the_condition_goes_when_nothing_blocks() -> None:
    assert stalled(with_condition("Refused", "network n-1 does not exist"), None) is None


def test_no_condition_is_written_where_the_definition_drops_it() -> None:
    assert stalled(balancer(metadata=OURS), REFUSED, drops_conditions=True) is None


def test_a_condition_that_the_api_server_has_dropped_is_not_written_again() -> None:
    world = balancer_world(balancer(metadata=OURS), None, (), REFUSED)
    (write,) = (each for each in decide_balancer(world, NOW).actions if isinstance(each, WriteStatus))
    assert status_of(write.fold(world, Written(dropped=("conditions",)))) == {}
    seen = write.fold(world, Written(dropped=("conditions",)))
    observed = balancer_world(balancer(metadata=OURS), None, (), REFUSED).recall(seen)
    shown = status_of(observed)["status"]
    assert "conditions" not in shown, "nor after another observation, which shows none"  # type: ignore[operator]


def test_a_status_field_that_the_api_server_drops_is_reported() -> None:
    patch: dict[str, object] = {"status": {"conditions": [{"type": "Stalled"}], "replicas": 1, "portID": None}}
    assert dropped_fields(patch, {"status": {"replicas": 1}}) == ("conditions",)
    assert dropped_fields(patch, {"status": {"replicas": 1, "conditions": []}}) == ()
    assert dropped_fields({"metadata": {}}, {}) == ()


# --- the mark that nothing was made ---


def new(**metadata: Any) -> LoadBalancer:
    """A LoadBalancer without a pass yet."""
    annotations = {"loadbalancer.yawol.stackit.cloud/revision": None, **metadata.pop("annotations", {})}
    body = balancer().model_dump(mode="json", by_alias=True, exclude={"status"})
    return LoadBalancer.model_validate(merge(body, {"metadata": {"annotations": annotations, **metadata}}))


def marked(of: LoadBalancer, cloud: LoadBalancerCloud | None, hindrance: Refusal | None) -> bool:
    """Whether the pass leaves the mark on the object."""
    decision = decide_balancer(balancer_world(of, cloud, (), hindrance), NOW)
    patches = [each.patch for each in decision.actions if isinstance(each, Patch) and not each.subresource]
    after = LoadBalancer.model_validate(merge(of.model_dump(mode="json", by_alias=True), patches[0] if patches else {}))
    return NOTHING_MADE_ANNOTATION in after.metadata.annotations


def test_a_new_load_balancer_whose_project_is_not_reached_is_marked() -> None:
    assert marked(new(), None, MISSING)
    assert not marked(new(), LoadBalancerCloud(), None)


def test_the_load_balancer_of_a_service_whose_project_is_not_reached_is_marked() -> None:
    made = LoadBalancer.model_validate(work_for(service(), None, (), INSTALLATION).create)
    assert marked(made, None, MISSING)
    assert not marked(made, LoadBalancerCloud(), None)


def test_a_load_balancer_with_earlier_passes_is_not_marked() -> None:
    assert not marked(new(annotations={"loadbalancer.yawol.stackit.cloud/revision": "3"}), None, MISSING)
    assert not marked(balancer(metadata={"finalizers": []}), None, MISSING)
    assert not marked(new(**OURS), None, MISSING)


def test_the_mark_goes_in_the_write_before_the_first_step() -> None:
    of = new(annotations={NOTHING_MADE_ANNOTATION: "true"}, **OURS)
    seen = balancer_world(of, LoadBalancerCloud())
    (write,) = decide_balancer(seen, NOW).actions
    assert isinstance(write, Patch)
    assert isinstance(decide_balancer(write.fold(seen, Written()), NOW).actions[0], CreateSecurityGroup)
    assert not marked(of, LoadBalancerCloud(), None)
    assert marked(of, None, MISSING)


def goes(of: LoadBalancer) -> bool:
    """Whether it goes although its Secret is missing."""
    decision = decide_balancer(balancer_world(of, None, (), MISSING), NOW)
    assert decision.phase == Phase.DELETING
    return any(isinstance(each, DropFinalizer) for each in decision.actions)


def test_a_marked_load_balancer_goes_although_its_secret_is_missing() -> None:
    deleting = {**OURS, "deletionTimestamp": ago(minutes=1)}
    assert goes(new(annotations={NOTHING_MADE_ANNOTATION: "true"}, **deleting))
    assert not goes(new(**deleting))


def test_counts_and_conditions_in_the_status_leave_the_mark_its_meaning() -> None:
    of = new(annotations={NOTHING_MADE_ANNOTATION: "true"}, **OURS, deletionTimestamp=ago(minutes=1))
    condition = {"type": "Stalled", "status": "True", "reason": "Refused", "message": "no Secret"}
    status = {"replicas": 0, "readyReplicas": 0, "conditions": [condition]}
    counted = LoadBalancer.model_validate(merge(of.model_dump(mode="json", by_alias=True), {"status": status}))
    assert goes(counted)


def test_a_mark_beside_an_object_in_the_status_proves_nothing() -> None:
    metadata = {**OURS, "deletionTimestamp": ago(minutes=1), "annotations": {NOTHING_MADE_ANNOTATION: "true"}}
    assert not goes(balancer(metadata=metadata))
