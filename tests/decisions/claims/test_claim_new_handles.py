"""The plan of a new handle's body is also the first plan of the created handle, unless the creation changes it."""

from __future__ import annotations

from typing import Any

import pytest
from claim_domain import NAMES
from claim_scenes import BOUND, NOW, asking, config_map, entry, handle, link, provider

from domain.claims.evaluator_interface import Fault, HandlePlan, HandleQuestion
from domain.claims.handle_evaluation import plan_handle
from domain.claims.handle_reconciliation import begun_with

Json = dict[str, Any]
ENABLED = {"template": {"enable": True}}
LINKED = [{"name": "base", "when": "resource_claim.status.resourceHandle is defined"}]
CLAIM = asking({"size": 3}, {"size": 3})
SHOWN = link("ResourceHandle", "poolboy", "guid-b7k2q")
UID = NAMES.resource_handle_uid_annotation


def planned(held: Json, claim: Json, *providers: Json) -> HandlePlan:
    by_name = {each["metadata"]["name"]: each for each in providers}
    states = (None,) * len(held["spec"].get("resources", ()))
    question = HandleQuestion(
        now=NOW, names=NAMES, handle=held, claim=claim, states=states, push=True, providers=by_name, newer=True
    )
    return plan_handle(question)


def new(*providers: Json) -> tuple[HandlePlan, Json]:
    """The plan of a body, and the handle that was created with it."""
    made = handle(*(entry(each["metadata"]["name"]) for each in providers), **BOUND)
    body = {**made, "metadata": {name: value for name, value in made["metadata"].items() if name != "uid"}}
    plan = planned(body, CLAIM, *providers)
    return plan, {**made, "spec": plan.spec}


def test_the_plan_of_a_body_differs_from_that_of_its_handle_only_in_the_uid() -> None:
    base = provider(override=config_map("{{ guid }}", who="{{ requester_user | default('nobody') }}"), **ENABLED)
    plan, created = new(base)
    bound = {
        **CLAIM,
        "status": {**CLAIM["status"], "resourceHandle": SHOWN, "lifespan": {"start": "2026-11-21T12:00:00Z"}},
    }
    again, first = planned(created, bound, base), begun_with(plan, created, NAMES)
    assert first is not None
    assert (first.creations, first.spec, first.end, first.wish) == (again.creations, again.spec, again.end, again.wish)
    ((_, definition),) = first.creations
    assert definition["metadata"]["annotations"][UID] == "handle-uid"  # type: ignore[call-overload, index]


@pytest.mark.parametrize(
    "spec",
    [
        {"override": config_map("a", uid="{{ resource_handle.metadata.uid }}"), **ENABLED},
        {"override": config_map("a", of="{{ resource_claim.name }}"), **ENABLED},
        {"override": config_map("a", of="{{ whose }}"), "vars": {"whose": "{{ resource_claim.name }}"}, **ENABLED},
        {"override": config_map("a"), "linkedResourceProviders": LINKED, **ENABLED},
    ],
    ids=["handle", "claim", "vars", "link"],
)
def test_a_template_that_reads_its_claim_or_handle_is_rendered_again_after_writes(spec: Json) -> None:
    plan, created = new(provider(**spec))
    assert begun_with(plan, created, NAMES) is None


def test_a_plan_with_a_fault_is_made_again() -> None:
    plan, created = new(provider(override=config_map("a"), **ENABLED))
    assert begun_with(plan, created, NAMES) is not None
    faulty = plan.model_copy(update={"faults": (Fault(reason="Template", message="it failed"),)})
    assert begun_with(faulty, created, NAMES) is None


def test_a_handle_that_the_api_server_has_changed_is_evaluated_again() -> None:
    plan, created = new(provider(override=config_map("a"), **ENABLED))
    assert begun_with(plan, {**created, "spec": {**created["spec"], "vars": {}}}, NAMES) is None


def test_a_handle_without_resources_to_create_is_evaluated_again() -> None:
    """Its statuses follow from this evaluation."""
    plan, created = new()
    assert plan.creations == ()
    assert begun_with(plan, created, NAMES) is None
