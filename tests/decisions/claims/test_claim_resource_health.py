"""Health, readiness and summary of a handle, and what its claim shows of them."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from claim_scenes import NOW, asking, claim, config_map, entry, handle, provider, reference, resources, scene

from domain.claims.claim_status import claim_resources, claim_status
from domain.claims.handle_lifespan import HandleLifespan, claim_lifespan
from domain.claims.lifespan_end import Setting, Terms
from domain.claims.resource_health import Health, handle_status, overall, resource_health
from domain.resource import timestamp

UP = {"metadata": {"name": "x"}, "status": {"up": True, "ready": True}}
DOWN = {"metadata": {"name": "x"}, "status": {"up": False, "ready": True}}
STARTING = {"metadata": {"name": "x"}, "status": {"up": True, "ready": False}}
YOUNG = {"metadata": {"name": "x"}}

CHECKED = {"healthCheck": "status.up", "readinessCheck": "status.ready"}


def health(state: Any, newer: bool = False, **spec: Any) -> tuple[bool | None, bool | None]:
    base = provider("base", **spec)
    found, _ = resource_health(scene(base, newer=newer, handle=handle(entry("base"))), base, state)
    return found.healthy, found.ready


@pytest.mark.parametrize(
    ("state", "spec", "healthy", "ready"),
    [
        (None, CHECKED, None, False),
        (None, {}, None, False),
        (UP, {}, None, None),
        (UP, CHECKED, True, True),
        (STARTING, CHECKED, True, False),
        (DOWN, CHECKED, False, False),  # readiness is not asked of what is not healthy
        (UP, {"healthCheck": "status.up"}, True, None),
        (UP, {"readinessCheck": "status.ready"}, None, True),
        (YOUNG, CHECKED, False, False),
        (UP, {"healthCheck": "1 // 0", "readinessCheck": "true"}, None, True),
        (UP, {"healthCheck": "true", "readinessCheck": "1 // 0"}, True, None),
        (UP, {"healthCheck": "metadata.name == 'x' and resource_handle.guid == 'b7k2q'"}, True, None),
    ],
)
def test_health_and_readiness_follow_from_the_live_object(
    state: Any, spec: Any, healthy: bool | None, ready: bool | None
) -> None:
    assert health(state, **spec) == (healthy, ready)


VARS = {"name": "x", "wanted": "{{ name }}", "status": "the object's own field wins"}
BY_VARS = {"healthCheck": "metadata.name == wanted", "readinessCheck": "status.ready and name == 'x'", "vars": VARS}


@pytest.mark.parametrize(("newer", "found"), [(True, (True, True)), (False, (False, False))])
def test_checks_see_variables_as_poolboy_1_13_and_later_have_them(newer: bool, found: Any) -> None:
    assert health(UP, newer, **BY_VARS) == found


def test_checks_see_the_variables_of_the_handle_over_those_of_the_provider() -> None:
    base = provider("base", healthCheck="v == 'of the handle'", vars={"v": "of the provider"})
    seen = scene(base, newer=True, handle=handle(entry("base"), vars={"v": "of the handle"}))
    assert resource_health(seen, base, UP)[0].healthy is True


def test_a_check_that_cannot_be_evaluated_is_handed_on() -> None:
    base = provider("base", healthCheck="1 // 0")
    found, faults = resource_health(scene(base, handle=handle()), base, UP)
    assert found == Health()
    assert faults[0].startswith("ResourceProvider base, healthCheck: ")


@pytest.mark.parametrize(
    ("each", "all_of_them"),
    [
        ([], None),
        ([True], True),
        ([True, True], True),
        ([True, None], None),
        ([None], None),
        ([None, False], False),
        ([True, False], False),
    ],
)
def test_one_false_makes_all_false_and_one_unknown_all_unknown(each: Any, all_of_them: bool | None) -> None:
    assert overall(each) is all_of_them


# The handle's status


def status(held: dict[str, Any], *providers: dict[str, Any], states: Any = (), waits: Any = ()) -> dict[str, Any]:
    return handle_status(resources(held, *providers, states=list(states)), waits).status


REFERENCE = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": "things"}


def test_the_status_has_an_entry_for_each_resource() -> None:
    held = handle(entry("base", "first", reference=REFERENCE), entry("base"))
    assert status(held, provider("base", **CHECKED), states=[UP, None], waits=[None, "Linked ResourceProvider"]) == {
        "ready": False,
        "resources": [
            {"healthy": True, "name": "first", "ready": True, "reference": REFERENCE},
            {"ready": False, "waitingFor": "Linked ResourceProvider"},
        ],
    }


def test_all_healthy_and_ready_is_shown() -> None:
    held = handle(entry("base"), entry("base"))
    found = status(held, provider("base", **CHECKED), states=[UP, UP])
    assert (found["healthy"], found["ready"]) == (True, True)


def test_without_resources_health_is_unknown() -> None:
    assert status(handle(), provider("base")) == {}


def test_unknown_and_outdated_states_vanish() -> None:
    before = {
        "healthy": True,
        "ready": True,
        "summary": {"old": 1},
        "diffBase": "kept",
        "resources": [{"healthy": True, "ready": True, "waitingFor": "ResourceClaim", "extra": "kept"}],
    }
    found = status(handle(entry("base"), status=before), provider("base"), states=[UP], waits=[None])
    assert found == {"diffBase": "kept", "resources": [{"extra": "kept"}]}


KEPT = {"healthy": True, "ready": True, "resources": [{"healthy": True, "name": "first", "ready": True}]}


def test_a_deleted_provider_says_nothing_of_existing_resources() -> None:
    held = handle(entry("base", "first"), status=KEPT)
    assert status(held, states=[UP], waits=[None]) == KEPT
    assert status(held, states=[None], waits=[None])["ready"] is False


def test_an_object_that_may_not_be_read_is_as_it_was() -> None:
    held = handle(entry("base", "first"), status=KEPT)
    seen = resources(held, provider("base", **CHECKED), states=[None])
    seen = replace(seen, question=seen.question.model_copy(update={"unreadable": (0,)}))
    assert handle_status(seen, [None]).status == KEPT


def test_a_reference_in_the_status_alone_stays() -> None:
    held = handle(entry("base"), status={"resources": [{"reference": REFERENCE}]})
    assert status(held, provider("base"))["resources"] == [{"ready": False, "reference": REFERENCE}]


def test_a_provider_that_is_gone_leaves_health_unknown() -> None:
    assert status(handle(entry("gone")), states=[UP])["resources"] == [{}]


# Summary

SUMMARY = {"text": "{{ resources[0].state.status.phase }}", "count": "{{ resources | length | int }}"}
HELD = handle(entry("base", template=config_map("x")), provider={"name": "base", "parameterValues": {"p": "value"}})


def summary(template: Any, held: dict[str, Any] = HELD, **spec: Any) -> Any:
    base = provider("base", statusSummaryTemplate=template, **spec)
    return status(held, base, states=[{"status": {"phase": "up"}}]).get("summary")


def test_a_summary_is_rendered_over_the_resources_with_their_states() -> None:
    assert summary(SUMMARY) == {"text": "up", "count": 1}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ v }}", "of the provider"),
        ("{{ p }}", "value"),
        ("{{ q }}", "of the provider"),
        ("{{ resource_handle.guid }}", "b7k2q"),
        ("{{ resource_claim is none }}", "True"),
        ("{{ resources[0].template.kind }}", "ConfigMap"),
    ],
)
def test_a_summary_sees(template: str, text: str) -> None:
    every = dict.fromkeys(("v", "p", "q"), "of the provider")
    assert summary({"text": template}, vars=every) == {"text": text}


def test_a_handle_without_provider_is_summed_up_by_its_last_resources() -> None:
    last = provider("last", statusSummaryTemplate={"n": "{{ resources | length | int }}"})
    held = handle(entry("base"), entry("last"))
    assert status(held, provider("base", statusSummaryTemplate={"n": "no"}), last)["summary"] == {"n": 2}


def test_a_summary_that_fails_keeps_the_old_one_and_says_so() -> None:
    held = copy.deepcopy(HELD)
    held["status"] = {"summary": {"text": "old"}}
    base = provider("base", statusSummaryTemplate={"text": "{{ nothing }}"})
    found = handle_status(resources(held, base, states=[UP]), [])
    assert found.status["summary"] == {"text": "old"}
    assert found.faults[0].startswith("ResourceProvider base, statusSummaryTemplate: ")


def test_the_status_settles_and_changes_nothing_given() -> None:
    base = provider("base", statusSummaryTemplate=SUMMARY, **CHECKED)
    before = copy.deepcopy((HELD, UP))
    once = status(HELD, base, states=[UP])
    assert before == (HELD, UP)
    assert status({**HELD, "status": once}, base, states=[UP]) == once


# The claim


SHOWN = {
    "healthy": True,
    "ready": False,
    "summary": {"text": "up"},
    "resources": [{"healthy": True, "name": "first", "ready": False, "waitingFor": "Linked ResourceProvider"}],
}


def mirrored(before: dict[str, Any], shown: dict[str, Any] = SHOWN, states: Any = (UP,)) -> dict[str, Any]:
    held = handle(entry("base", "first"), status=shown)
    return claim_status(claim(before), held, list(states), {})


def test_a_claim_shows_its_handles_resources_with_their_live_objects() -> None:
    assert mirrored({"provider": {"name": "base"}}) == {
        "provider": {"name": "base"},
        "healthy": True,
        "ready": False,
        "summary": {"text": "up"},
        "resources": [
            {
                "healthy": True,
                "name": "first",
                "provider": reference("base"),
                "ready": False,
                "state": UP,
                "waitingFor": "Linked ResourceProvider",
            }
        ],
    }


def test_a_field_that_vanishes_from_the_handle_vanishes_from_the_claim() -> None:
    before = mirrored({})
    found = mirrored(before, {"resources": [{"name": "first"}]}, [None])
    assert found == {"resources": [{"name": "first", "provider": reference("base")}]}


def test_a_claims_own_names_and_errors_stay() -> None:
    before = {"resources": [{"name": "given", "validationError": "wrong", "ready": True}]}
    (found,) = mirrored(before, {"resources": [{"name": "first"}]})["resources"]
    assert found == {"name": "given", "provider": reference("base"), "state": UP, "validationError": "wrong"}


@pytest.mark.parametrize(("listed", "held", "names"), [(0, 2, "01"), (1, 2, "c1"), (2, 2, "cc"), (3, 2, "ccc")])
def test_the_lists_may_differ_in_length(listed: int, held: int, names: str) -> None:
    mine = claim({"resources": [{"name": "c"}] * listed})
    theirs = handle(*[entry("base")] * held, status={"resources": [{"name": str(n)} for n in range(held)]})
    assert [each["name"] for each in claim_resources(mine, theirs, [])] == list(names)


MAXIMUM = Terms(maximum=Setting(raw="9m", rendered="9m"))
RELATIVE = Terms(relative_maximum=Setting(raw="{{ r }}", rendered="2 days"))
S, E, F, Q, R = (timestamp(NOW + timedelta(hours=hours)) for hours in range(5))


@pytest.mark.parametrize(
    ("before", "spec", "computed", "after"),
    [
        ({}, {"end": E}, {"terms": MAXIMUM}, {"start": S, "end": E, "maximum": "9m"}),
        ({"start": Q}, {"end": E}, {"terms": RELATIVE}, {"start": Q, "end": E, "relativeMaximum": "2d"}),
        ({"end": E, "maximum": "9m"}, {"end": F}, {"terms": Terms()}, {"start": S, "end": F}),
        ({"end": E, "maximum": "9m"}, {"end": F}, {}, {"start": S, "end": F, "maximum": "9m"}),
        ({"start": Q, "end": E, "maximum": "9m"}, None, {"terms": MAXIMUM}, {"start": Q}),
        ({}, {"end": E}, {"first_ready": R}, {"start": S, "end": E, "firstReady": R}),
        ({"firstReady": Q}, {"end": E}, {"first_ready": R}, {"start": S, "end": E, "firstReady": Q}),
        ({"start": "soon", "firstReady": "?"}, {"end": E}, {"first_ready": R}, {"start": S, "end": E, "firstReady": R}),
        ({"firstReady": Q}, None, {}, {"start": S, "firstReady": Q}),
    ],
)
def test_the_lifespan_in_force_is_the_handles(before: Any, spec: Any, computed: Any, after: Any) -> None:
    held = handle(**({} if spec is None else {"lifespan": spec}))
    lifespan = HandleLifespan(start=NOW, **computed)
    assert claim_lifespan(claim({"lifespan": before}), held, lifespan) == after


def test_mirroring_again_changes_nothing() -> None:
    mine, held = asking({}, {"p": 1}), handle(entry("base", "first"), status=SHOWN)
    before = copy.deepcopy((mine, held))
    once = claim_status(mine, held, [UP], {"end": "E"})
    assert (mine, held) == before
    assert claim_status({**mine, "status": once}, held, [UP], {"end": "E"}) == once
