"""A free handle as a claim takes it."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any

import pytest
from claim_domain import NAMES
from claim_scenes import BOUND, NOW, POOLED, asking, claim, config_map, entry, handle, provider

from domain.claims.evaluator_interface import BindingQuestion, HandleBody, HandleQuestion, WantedEntry
from domain.claims.handle_binding import plan_binding
from domain.claims.handle_evaluation import plan_handle
from domain.resource import timestamp

HOUR = timedelta(hours=1)


def wanted(*entries: dict[str, Any]) -> tuple[WantedEntry, ...]:
    return tuple(
        WantedEntry(
            provider=each["provider"]["name"],
            name=each.get("name", ""),
            template=each.get("template", {}),
            reference=each["provider"],
        )
        for each in entries
    )


def take(user_claim: dict[str, Any], held: dict[str, Any], *entries: dict[str, Any]) -> HandleBody:
    question = BindingQuestion(names=NAMES, now=NOW, claim=user_claim, handle=held, wanted=wanted(*entries))
    before = copy.deepcopy(question)
    plan = plan_binding(question)
    assert question == before, "the question was changed"
    return plan


LISTED = claim(resources=[entry("base", "mine")])


# A claim takes a handle


def test_the_handle_is_the_claims_from_then_on() -> None:
    plan = take(LISTED, handle(entry("base", "mine"), vars={"a": 1}, **POOLED), entry("base", "mine"))
    assert plan.labels == {NAMES.claim_name_key: "mine", NAMES.claim_namespace_key: "user-ada"}
    assert plan.spec == {"resources": [entry("base", "mine")], "vars": {"a": 1}, **POOLED, **BOUND}
    assert plan.fault is None


RECORDED: dict[str, Any] = {"template": config_map(x="1"), "reference": {"name": "x"}}


@pytest.mark.parametrize(
    ("held", "user_claim", "after"),
    [
        ([entry("a", "x", **RECORDED)], [entry("a", "x")], [entry("a", "x", **RECORDED)]),
        ([entry("a", "x", **RECORDED)], [entry("a", "y")], [entry("a", "y", **RECORDED)]),
        ([entry("a", **RECORDED)], [entry("a", "y")], [entry("a", "y", **RECORDED)]),
        ([entry("a", "x", **RECORDED)], [entry("a")], [entry("a", **RECORDED)]),
        ([], [entry("a", "x"), entry("b")], [entry("a", "x"), entry("b")]),
        (
            [entry("a")],
            [entry("a"), entry("b", template=config_map())],
            [entry("a"), entry("b", template=config_map())],
        ),
    ],
    ids=["the same", "another name", "a name", "no name", "nothing held yet", "what is lacking"],
)
def test_names_become_the_claims_and_what_lacks_is_added(held: Any, user_claim: Any, after: Any) -> None:
    assert take(LISTED, handle(resources=held), *user_claim).spec["resources"] == after


def test_in_provider_mode_the_claims_provider_comes_with_the_values_in_force() -> None:
    held = handle(entry("base"), provider={"name": "pools", "parameterValues": {"n": 0}})
    plan = take(asking({"n": 1}, accepted={"n": 1, "m": 2}), held, entry("base"))
    assert plan.spec["provider"] == {"name": "base", "parameterValues": {"n": 1, "m": 2}}


def test_in_list_mode_the_handles_provider_goes() -> None:
    held = handle(entry("base"), provider={"name": "pools", "parameterValues": {"n": 0}})
    assert "provider" not in take(LISTED, held, entry("base")).spec


def pair(asked_end: str, terms: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A claim that asks for an end, and the handle of these terms that it takes."""
    user_claim = claim(resources=[entry("base")], **({"lifespan": {"end": asked_end}} if asked_end else {}))
    return user_claim, handle(entry("base"), **({"lifespan": terms} if terms else {}))


@pytest.mark.parametrize(
    ("requested", "terms", "after"),
    [
        ("", {}, None),
        ("", {"end": "2026-11-21T18:00:00Z"}, "2026-11-21T18:00:00Z"),
        ("", {"end": "2026-11-21T18:00:00Z", "default": "1h"}, "2026-11-21T13:00:00Z"),
        ("", {"default": "{{ resource_claim.annotations.mood == 'fine' and '2h' }}"}, "2026-11-21T14:00:00Z"),
        ("", {"default": "{{ resource_handle.is_bound and '2h' }}"}, "2026-11-21T14:00:00Z"),
        ("2026-11-21T20:00:00Z", {}, "2026-11-21T20:00:00Z"),
        ("2026-11-21T20:00:00Z", {"default": "1h", "end": "2026-11-21T18:00:00Z"}, "2026-11-21T20:00:00Z"),
        ("2026-11-21T20:00:00Z", {"maximum": "2h"}, "2026-11-21T14:00:00Z"),
        ("2026-11-21T20:00:00Z", {"relativeMaximum": "1h"}, "2026-11-21T13:00:00Z"),
    ],
    ids=[
        "none",
        "the unclaimed end is inherited",
        "the default",
        "rendered for the claim",
        "rendered as bound",
        "asked for",
        "asked for instead of the default",
        "cut",
        "cut to what may lie ahead",
    ],
)
def test_the_end_from_then_on(requested: str, terms: Any, after: str | None) -> None:
    plan = take(*pair(requested, terms), entry("base"))
    assert plan.spec.get("lifespan") == ({**terms, "end": after} if after else None)


@pytest.mark.parametrize(
    ("requested", "terms", "reason"),
    [
        ("tomorrow", {}, "MomentUnreadable"),
        ("", {"default": "soon"}, "DurationUnreadable"),
        ("", {"default": "{{ gone }}"}, "TemplateFailed"),
    ],
)
def test_on_a_fault_nothing_is_bound(requested: str, terms: Any, reason: str) -> None:
    plan = take(*pair(requested, terms), entry("base"))
    assert plan.fault is not None
    assert (plan.fault.reason, plan.spec, plan.labels) == (reason, {}, {})


def test_the_pass_after_binding_sets_the_start_and_keeps_the_end() -> None:
    requested, held = pair("", {"default": "1h", "end": "2026-11-21T18:00:00Z"})
    plan = take(requested, held, entry("base"))
    made = provider("base", override={"apiVersion": "v1", "kind": "ConfigMap"}, readinessCheck="true")
    after = plan_handle(
        HandleQuestion(
            names=NAMES,
            now=NOW,
            providers={"base": made},
            handle={**held, "spec": plan.spec, "status": {"ready": True}},
            claim=requested,
            assigned=("base",),
            states=(config_map("guid0-b7k2q"),),
            push=True,
        )
    )
    assert after.claim_status is not None
    assert after.claim_status["lifespan"] == {
        "start": timestamp(NOW),
        "firstReady": timestamp(NOW),
        "end": timestamp(NOW + HOUR),
    }
    assert after.spec["lifespan"] == plan.spec["lifespan"]
