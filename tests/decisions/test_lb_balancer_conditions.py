"""When a LoadBalancer is Stalled, and when its mark proves that nothing was made for it."""

from __future__ import annotations

from typing import Any

import pytest
from lb_objects import NOW, ago, balancer

from domain.loadbalancers.balancer import Phase, work_for_balancer
from domain.loadbalancers.cloud.objects import LoadBalancerCloud
from domain.loadbalancers.constants import LOAD_BALANCER_FINALIZER, NOTHING_MADE_ANNOTATION
from domain.loadbalancers.hindrances import QUOTA as OVER_QUOTA
from domain.loadbalancers.hindrances import Hindrance
from domain.loadbalancers.resources import LoadBalancer
from domain.refusal import ErrorType
from domain.writes import merge

OURS = {"finalizers": [LOAD_BALANCER_FINALIZER]}
MISSING = Hindrance.of(ErrorType.DENIED, "Secret lbs/cloud does not exist")
REFUSED = Hindrance.of(ErrorType.DENIED, "network n-1 does not exist [request req-1]")
QUOTA = Hindrance.of(ErrorType.DENIED, "no floating IP is left", code=OVER_QUOTA)
OUTAGE = Hindrance.of(ErrorType.UNAVAILABLE, "Neutron does not answer")
UNDER_WAY = Hindrance.of(ErrorType.PENDING, "the port is let go")


def stalled(of: LoadBalancer, hindrance: Hindrance | None, **more: Any) -> tuple[str | None, str | None] | None:
    """Reason and message of the condition after a pass, None without one."""
    work = work_for_balancer(of, None, (), NOW, hindrance, **more)
    after = LoadBalancer.model_validate(merge(of.model_dump(mode="json", by_alias=True), work.status))
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
def test_what_a_person_has_to_mend_is_a_condition(hindrance: Hindrance | None, shown: object) -> None:
    assert stalled(balancer(metadata=OURS), hindrance) == shown


def test_the_next_refusal_writes_nothing_though_its_request_has_another_id() -> None:
    again = Hindrance.of(ErrorType.DENIED, "network n-1 does not exist [request req-2]")
    work = work_for_balancer(with_condition("Refused", "network n-1 does not exist"), None, (), NOW, again)
    assert "conditions" not in work.status.get("status", {})  # type: ignore[operator]


@pytest.mark.parametrize("passing", [OUTAGE, UNDER_WAY])
def test_what_passes_by_itself_leaves_the_condition(passing: Hindrance) -> None:
    of = with_condition("Refused", "network n-1 does not exist")
    assert stalled(of, passing) == ("Refused", "network n-1 does not exist")


def test_the_condition_goes_when_nothing_stands_in_the_way() -> None:
    assert stalled(with_condition("Refused", "network n-1 does not exist"), None) is None


def test_no_condition_is_written_where_the_definition_drops_it() -> None:
    assert stalled(balancer(metadata=OURS), REFUSED, conditions=False) is None


# --- the mark that nothing was made ---


def new(**metadata: Any) -> LoadBalancer:
    """A LoadBalancer that nobody has worked on yet."""
    annotations = {"loadbalancer.yawol.stackit.cloud/revision": None, **metadata.pop("annotations", {})}
    body = balancer().model_dump(mode="json", by_alias=True, exclude={"status"})
    return LoadBalancer.model_validate(merge(body, {"metadata": {"annotations": annotations, **metadata}}))


def marked(of: LoadBalancer, cloud: LoadBalancerCloud | None, hindrance: Hindrance | None) -> bool:
    """Whether the pass leaves the mark on the object."""
    work = work_for_balancer(of, cloud, (), NOW, hindrance)
    after = LoadBalancer.model_validate(merge(of.model_dump(mode="json", by_alias=True), work.patch))
    return NOTHING_MADE_ANNOTATION in after.metadata.annotations


def test_a_new_load_balancer_whose_project_is_not_reached_is_marked() -> None:
    assert marked(new(), None, MISSING)
    assert not marked(new(), LoadBalancerCloud(), None)


def test_one_that_was_worked_on_before_is_not_marked() -> None:
    assert not marked(new(annotations={"loadbalancer.yawol.stackit.cloud/revision": "3"}), None, MISSING)
    assert not marked(balancer(metadata={"finalizers": []}), None, MISSING)
    assert not marked(new(**OURS), None, MISSING)


def test_the_mark_goes_in_the_write_before_the_first_step() -> None:
    of = new(annotations={NOTHING_MADE_ANNOTATION: "true"}, **OURS)
    work = work_for_balancer(of, LoadBalancerCloud(), (), NOW)
    assert work.steps
    assert not marked(of, LoadBalancerCloud(), None)
    assert marked(of, None, MISSING)


def test_a_marked_load_balancer_goes_although_its_secret_is_missing() -> None:
    deleting = {**OURS, "deletionTimestamp": ago(minutes=1)}
    gone = work_for_balancer(new(annotations={NOTHING_MADE_ANNOTATION: "true"}, **deleting), None, (), NOW, MISSING)
    assert (gone.drop_finalizer, gone.phase) == (True, Phase.DELETING)
    assert not work_for_balancer(new(**deleting), None, (), NOW, MISSING).drop_finalizer


def test_counts_and_conditions_in_the_status_leave_the_mark_its_meaning() -> None:
    of = new(annotations={NOTHING_MADE_ANNOTATION: "true"}, **OURS, deletionTimestamp=ago(minutes=1))
    condition = {"type": "Stalled", "status": "True", "reason": "Refused", "message": "no Secret"}
    status = {"replicas": 0, "readyReplicas": 0, "conditions": [condition]}
    counted = LoadBalancer.model_validate(merge(of.model_dump(mode="json", by_alias=True), {"status": status}))
    assert work_for_balancer(counted, None, (), NOW, MISSING).drop_finalizer


def test_a_mark_beside_an_object_in_the_status_proves_nothing() -> None:
    metadata = {**OURS, "deletionTimestamp": ago(minutes=1), "annotations": {NOTHING_MADE_ANNOTATION: "true"}}
    assert not work_for_balancer(balancer(metadata=metadata), None, (), NOW, MISSING).drop_finalizer
