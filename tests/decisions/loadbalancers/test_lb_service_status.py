"""What a Service's status shows, and what a mistake in an annotation leaves unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from lb_objects import ADDED_BY_YAWOL, INSTALLATION, NOW, balancer, refusal, service
from test_lb_services import DELETING, NODES, after, work

from domain.decision import Outcome
from domain.identity import Key
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.services.lifecycle import decide_service
from domain.loadbalancers.services.objects import Service
from domain.loadbalancers.services.service_annotations import parse_annotations
from domain.loadbalancers.services.service_status import MISCONFIGURED, ShownStatus, shown_status
from domain.loadbalancers.services.synchronization import ServiceWork
from domain.loadbalancers.services.world import BALANCER, ServiceWorld
from domain.refusal import ErrorType
from domain.writes import merge

Json = dict[str, Any]
OTHERS = {
    "type": "example.com/Checked",
    "status": "True",
    "reason": "Fine",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
READY = balancer(status={"readyReplicas": 1})


def service_world(of: Service, existing: LoadBalancer | None = None) -> ServiceWorld:
    key = Key(kind="Service", namespace="web", name="shop", uid="1")
    return ServiceWorld(key=key, service=of, balancer=existing, nodes=tuple(NODES), installation=INSTALLATION)


def standing(of: Service, existing: LoadBalancer | None = READY) -> ShownStatus:
    return shown_status(of, existing, work(of, existing), NOW)


def shown(of: Service, existing: LoadBalancer | None = READY) -> Service:
    """The Service once its status is written."""
    body = merge(of.model_dump(mode="json"), standing(of, existing).patch)
    return Service.model_validate(body)


def condition(of: Service) -> tuple[str, str] | None:
    found = [each for each in of.status.conditions if each.type == MISCONFIGURED]
    return (found[0].reason, found[0].message) if found else None


# --- the condition ---


def test_a_service_with_nothing_wrong_has_no_condition_of_ours() -> None:
    assert standing(service()) == ShownStatus()


def test_ignored_annotations_are_reported_and_appear_in_the_status() -> None:
    bad = service({"replicas": "three", "tcpIdleTimeout": "soon"})
    shown_now = standing(bad)
    assert [notice.type for notice in shown_now.notices] == ["Warning", "Warning"]
    reason, message = condition(shown(bad)) or ("", "")
    assert reason == "PartlyIgnored"
    assert "replicas: 'three'" in message
    assert "tcpIdleTimeout" in message


def test_an_existing_status_is_neither_reported_nor_written_again() -> None:
    """W31: a process that knows nothing of the last one repeats nothing."""
    once = shown(service({"replicas": "three"}))
    assert standing(once) == ShownStatus()


def test_of_two_problems_only_the_new_one_is_reported() -> None:
    once = shown(service({"replicas": "three"}))
    both = service({"replicas": "three", "tcpIdleTimeout": "soon"}, status=once.status.model_dump(mode="json"))
    assert ["tcpIdleTimeout" in notice.message for notice in standing(both).notices] == [True]


def test_a_problem_with_which_a_former_one_begins_is_reported() -> None:
    once = shown(service({"loadBalancerSourceRanges": "10.0.0.1/240"}))
    shorter = service({"loadBalancerSourceRanges": "10.0.0.1"}, status=once.status.model_dump(mode="json"))
    found = [notice.message for notice in standing(shorter).notices]
    assert found == ["Could not parse LoadBalancerSourceRange: 10.0.0.1"]
    assert standing(shown(shorter)) == ShownStatus()


def test_a_condition_goes_when_nothing_is_wrong_and_others_stay() -> None:
    bad = service({"replicas": "three"}, status={"conditions": [OTHERS]})
    written = shown(bad)
    assert [each.type for each in written.status.conditions] == [OTHERS["type"], MISCONFIGURED]
    corrected = service(status=written.status.model_dump(mode="json"))
    assert [each.model_dump(mode="json", exclude_defaults=True) for each in shown(corrected).status.conditions] == [
        OTHERS
    ]
    alone = service(status=shown(service({"replicas": "three"})).status.model_dump(mode="json"))
    assert shown(alone).status.conditions == ()


def test_a_service_that_cannot_be_served_says_so_and_keeps_its_address() -> None:
    bad = service(spec={"ports": [{"protocol": "SCTP", "port": 1, "nodePort": 30000}]})
    reason, message = condition(shown(bad)) or ("", "")
    assert reason == "Unservable"
    assert "unsupported protocol used" in message
    assert shown(bad).ingress == bad.ingress


def test_a_released_service_loses_address_and_condition_in_one_write() -> None:
    bad = shown(service({"replicas": "three"}))
    of = service(metadata=DELETING, status=bad.status.model_dump(mode="json"))
    assert standing(of, None).patch == {"status": {"loadBalancer": {"ingress": None}, "conditions": None}}


@pytest.mark.parametrize("named", ["web/other", ""])
def test_the_address_of_a_load_balancer_that_is_not_its_own_is_not_taken_over(named: str) -> None:
    theirs = balancer(
        metadata={"annotations": {"yawol.stackit.cloud/serviceName": named}},
        status={"readyReplicas": 1, "externalIP": "203.0.113.99"},
    )
    assert "loadBalancer" not in str(standing(service(), theirs).patch)


# --- what cannot be read stays ---


def stored(name: str, good: str) -> LoadBalancer:
    """The LoadBalancer of a Service whose annotation could be read."""
    return after(work(service({name: good})))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("replicas", "3", "three"),
        ("internalLB", "true", "yes"),
        ("tcpProxyProtocol", "true", "on"),
        ("tcpProxyProtocolPortsFilter", "80,443", "80,https"),
        ("tcpIdleTimeout", "5m", "300"),
        ("udpIdleTimeout", "5m", "-1s"),
        ("serverGroupPolicy", "affinity", "close"),
        ("logForward", "true", "si"),
        ("debug", "true", "maybe"),
    ],
)
def test_an_annotation_that_cannot_be_read_keeps_the_last_value_that_could(name: str, good: str, bad: str) -> None:
    existing = stored(name, good)
    assert work(service(), existing).patch, "without the annotation it would be taken back"
    done = work(service({name: bad}), existing)
    assert done.patch == {}
    assert len(done.notices) == 1


def test_a_network_that_hangs_on_a_bad_flag_is_neither_added_nor_taken_away() -> None:
    annotations = {"defaultNetworkID": "net-2", "skipCloudControllerDefaultNetworkID": "true"}
    existing = after(work(service(annotations)))
    bad = work(service({**annotations, "skipCloudControllerDefaultNetworkID": "yes"}), existing)
    assert bad.patch == {}, "another list of networks would replace every machine"


def test_other_annotations_are_followed_while_one_is_ignored() -> None:
    existing = stored("replicas", "3")
    done = work(service({"replicas": "three", "udpIdleTimeout": "1m"}), existing)
    assert done.patch == {"spec": {"options": {"udpIdleTimeout": "1m0s"}}}


def test_a_service_whose_first_annotation_is_bad_is_served_with_the_default() -> None:
    made = after(work(service({"replicas": "three"})))
    assert made.spec.replicas == 1
    assert parse_annotations(service({"replicas": "three"}), INSTALLATION).unreadable == {"replicas"}


# --- taking over ---


def test_a_service_left_by_yawol_is_adopted_without_a_write() -> None:
    """W1, W2: other spellings, another order of networks, and what the API server adds are no difference."""
    annotations = {"additionalNetworks": "net-a,net-b", "tcpIdleTimeout": "300s", "replicas": "2"}
    left = balancer(spec={**ADDED_BY_YAWOL, "replicas": 2}, status={"readyReplicas": 2})
    assert work(service(annotations), left) == ServiceWork()
    assert standing(service(annotations), left) == ShownStatus()


# --- what is not ours is not deleted ---


def test_a_load_balancer_of_that_name_that_names_another_service_is_left_to_it() -> None:
    plain = service(spec={"type": "ClusterIP"}, metadata={"finalizers": None})
    theirs = balancer(metadata={"annotations": {"yawol.stackit.cloud/serviceName": None}})
    assert work(plain, theirs) == ServiceWork()
    assert work(plain, balancer()).delete, "its own one goes"


# --- its phase ---


@pytest.mark.parametrize(
    ("of", "existing", "phase", "outcome"),
    [
        (service(), READY, "Ready", Outcome.SETTLED),
        (service(status={"loadBalancer": None}), balancer(), "Creating", Outcome.WAITING),
        (service(spec={"allocateLoadBalancerNodePorts": False}), READY, "Unservable", Outcome.WAITING),
        (service(metadata=DELETING), balancer(metadata=DELETING), "Releasing", Outcome.WAITING),
        (service(spec={"loadBalancerClass": "other"}), None, "Left", Outcome.GONE),
        (service(spec={"type": "ClusterIP"}), None, "Releasing", Outcome.WAITING),
        (service(spec={"type": "ClusterIP"}, metadata={"finalizers": None}), None, "Left", Outcome.GONE),
    ],
)
def test_a_service_has_this_phase(of: Service, existing: LoadBalancer | None, phase: str, outcome: Outcome) -> None:
    found = decide_service(service_world(of, existing), NOW)
    assert (found.phase, found.outcome, found.deadline) == (phase, outcome, None)


def test_a_ready_service_says_what_of_it_is_ignored() -> None:
    of = service({"replicas": "three"})
    why = decide_service(service_world(of, READY), NOW).why
    assert why.startswith("it is served at 203.0.113.7. Could not read annotation")


def test_planned_actions_are_listed_in_order() -> None:
    new = decide_service(service_world(service(metadata={"finalizers": None})), NOW)
    assert new.summaries == ("add the finalizer", "create its LoadBalancer")
    gone = decide_service(service_world(service(metadata=DELETING)), NOW)
    assert gone.summaries == ("write its status", "remove the finalizer")


def test_a_service_without_a_type_does_not_wait_for_a_load_balancer_of_another() -> None:
    theirs = balancer(metadata={"name": "a--b--c", "annotations": {"yawol.stackit.cloud/serviceName": "a/b--c"}})
    plain = {"metadata": {"namespace": "a--b", "name": "c", "finalizers": None}, "spec": {"type": "ClusterIP"}}
    assert decide_service(service_world(service(**plain), theirs), NOW).outcome is Outcome.GONE


@pytest.mark.parametrize("type_", [ErrorType.INVALID, ErrorType.DENIED])
def test_a_service_shows_why_the_api_server_refuses_its_load_balancer(type_: ErrorType) -> None:
    world = service_world(service(status={"loadBalancer": None}))
    refused = world.model_copy(update={"refusals": {BALANCER: refusal(type_, "a webhook refuses it")}})
    decision = decide_service(refused, NOW)
    message = "the LoadBalancer could not be written: a webhook refuses it"
    assert (decision.phase, decision.why) == ("Unservable", message)
    assert [(each.reason, each.message) for each in decision.notices] == [("Failed", message)]
    assert [type(each).__name__ for each in decision.actions] == ["CreateBalancer", "Patch"]


@pytest.mark.parametrize("of", [service(metadata={"finalizers": None}), service({"replicas": "three"})])
def test_a_service_reports_that_the_api_server_refuses_a_write_of_itself(of: Service) -> None:
    refused = refusal(ErrorType.DENIED, "services is forbidden")
    world = service_world(of, READY).model_copy(update={"refusals": {"kube.write": refused}})
    decision = decide_service(world, NOW)
    assert (decision.outcome, decision.why) == (Outcome.WAITING, refused.message)
    assert refused.message in [each.message for each in decision.notices]
