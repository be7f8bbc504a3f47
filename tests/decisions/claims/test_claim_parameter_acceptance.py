"""Parameter values of a claim: completed, sticky, checked, refused; in the texts that clients compare."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from claim_scenes import asking, claim, handle, provider, scene

from domain.claims.parameter_acceptance import Settled, provider_status, settle_parameters

POSITIVE = {"name": "positive", "check": "value > 0"}
SMALL = {"name": "small", "check": "value < 10"}


def parameter(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


def checked(*checks: dict[str, Any], **schema: Any) -> dict[str, Any]:
    return {"checks": list(checks), **({"openAPIV3Schema": schema} if schema else {})}


def settle(
    parameters: list[Any], user_claim: dict[str, Any], accepted: dict[str, Any] | None = None, **more: Any
) -> Settled:
    base = provider("base", parameters=parameters, vars=more.pop("vars", {}))
    return settle_parameters(scene(base, claim=asking(user_claim, accepted), **more), base)


def values(outcome: Settled) -> dict[str, Any]:
    assert not outcome.errors
    return outcome.values


def errors(outcome: Settled) -> list[str]:
    assert outcome.errors
    return list(outcome.errors)


# Completing


@pytest.mark.parametrize(
    ("more", "value"),
    [
        ({"default": {"value": 3}}, 3),
        ({"default": {"value": False}}, False),
        ({"default": {"value": {"a": [1, None]}}}, {"a": [1, None]}),
        ({"validation": {"openAPIV3Schema": {"type": "string", "default": "s"}}}, "s"),
        ({"default": {"value": 1}, "validation": {"openAPIV3Schema": {"default": 2}}}, 1),
        ({"default": {"template": "{{ 1 + 1 }}"}}, "2"),
        ({"default": {"template": "{{ 1 + 1 | int }}"}}, 2),
        ({"default": {"template": "{{ [1, 2] | object }}"}}, [1, 2]),
        ({"default": {"template": "{{ 'won' }}", "value": "lost"}}, "won"),
        ({"default": {"template": "{{ resource_claim.namespace }}"}}, "user-ada"),
        ({"default": {"template": "{{ resource_claim.annotations.mood }} {{ v }}"}}, "fine of the provider"),
    ],
)
def test_a_missing_value_is_the_parameters_default(more: dict[str, Any], value: Any) -> None:
    assert values(settle([parameter("p", **more)], {}, vars={"v": "of the provider"})) == {"p": value}


def test_a_parameter_without_default_and_value_stays_unset() -> None:
    assert values(settle([parameter("p")], {})) == {}


def test_a_default_template_sees_the_values_before_it_in_the_order_of_declaration() -> None:
    first = parameter("first", default={"value": "a"})
    second = parameter("second", default={"template": "{{ first | default('unset') }}{{ asked }}"})
    requested = parameter("asked")
    assert values(settle([first, second, requested], {"asked": "!"}))["second"] == "a!"
    assert values(settle([second, first, requested], {"asked": "!"}))["second"] == "unset!"


def test_a_handles_vars_are_seen_over_the_providers() -> None:
    by_template = parameter("p", default={"template": "{{ v }}"})
    outcome = settle([by_template], {}, vars={"v": "of the provider"}, handle=handle(vars={"v": "of the handle"}))
    assert values(outcome) == {"p": "of the handle"}


def test_a_default_template_that_fails_is_reported() -> None:
    (error,) = errors(settle([parameter("p", default={"template": "{{ nothing }}"})], {}))
    assert error.startswith("Parameter p exception on default: ")
    assert "nothing" in error


# Sticky values


@pytest.mark.parametrize(
    ("parameters", "user_claim", "accepted", "result"),
    [
        ([parameter("p", default={"value": "new"})], {}, {"p": "old"}, {"p": "old"}),
        ([parameter("p", default={"template": "{{ 'new' }}"})], {}, {"p": "old"}, {"p": "old"}),
        ([parameter("p", required=True)], {}, {"p": "old"}, {"p": "old"}),
        ([parameter("p", validation=checked(POSITIVE))], {"p": -1}, {"p": -1}, {"p": -1}),
        ([parameter("p", validation=checked(type="string"))], {}, {"p": 5}, {"p": 5}),
        ([], {"gone": 1}, {"gone": 1}, {"gone": 1}),
        ([], {}, {"gone": 1}, {"gone": 1}),
        ([parameter("new", default={"value": -1}, validation=checked(POSITIVE))], {}, {}, {"new": -1}),
    ],
    ids=[
        "removed from the spec",
        "generated once",
        "required and removed",
        "checked once",
        "removed, of a type no longer allowed",
        "undeclared since",
        "undeclared and removed",
        "declared since: its default is not checked",
    ],
)
def test_accepted_values_stay(parameters: Any, user_claim: Any, accepted: Any, result: Any) -> None:
    assert values(settle(parameters, user_claim, accepted)) == result


def test_a_random_default_is_made_once() -> None:
    token = parameter("token", default={"template": "{{ '[a-z]{20}' | strgen }}"})
    first = values(settle([token], {}))
    assert len(first["token"]) == 20
    assert values(settle([token], {}, first)) == first


# Checking


@pytest.mark.parametrize(
    ("declared", "user_claim", "accepted", "expected"),
    [
        (parameter("p", required=True), {}, None, ["Parameter p is required."]),
        (parameter("p"), {"p": 2}, {"p": 1}, ["Parameter p is immutable."]),
        (parameter("p", allowUpdate=False), {"p": 2}, {"p": 1}, ["Parameter p is immutable."]),
        (parameter("p"), {"p": True}, {"p": 1}, ["Parameter p is immutable."]),
        (parameter("p"), {"p": 1}, {}, ["Parameter p is immutable."]),
        (parameter("p"), {"p": 1, "q": 2}, None, ["No such parameter q."]),
        (parameter("p"), {"q": 2}, {"q": 1}, ["No such parameter q."]),
        (parameter("p", validation=checked(POSITIVE)), {"p": 0}, None, ["Parameter p failed check: positive"]),
        (
            parameter("p", validation=checked(POSITIVE, SMALL, {"name": "odd", "check": "value % 2 == 1"})),
            {"p": 20},
            None,
            ["Parameter p failed check: small", "Parameter p failed check: odd"],
        ),
        (
            parameter("p", allowUpdate=True, validation=checked(POSITIVE)),
            {"p": -1},
            {"p": 1},
            ["Parameter p failed check: positive"],
        ),
        (
            parameter("p", default={"value": 0}, validation=checked(POSITIVE)),
            {},
            None,
            ["Parameter p failed check: positive"],
        ),
    ],
)
def test_a_forbidden_value_is_reported_in_fixed_words(
    declared: Any, user_claim: Any, accepted: Any, expected: Any
) -> None:
    assert errors(settle([declared], user_claim, accepted)) == expected


def test_an_allowed_update_is_accepted() -> None:
    declared = parameter("p", allowUpdate=True, validation=checked(POSITIVE, type="integer"))
    assert values(settle([declared], {"p": 2}, {"p": 1})) == {"p": 2}


def test_a_schema_violation_is_reported_verbatim_and_stops_further_checks() -> None:
    declared = parameter("p", validation=checked(POSITIVE, type="integer"))
    (error,) = errors(settle([declared], {"p": "text"}))
    assert error.startswith("Parameter p schema validation failed: 'text' is not of type 'integer'\n")
    assert error.endswith("On instance:\n    'text'")


def test_a_first_default_is_held_against_the_schema() -> None:
    (error,) = errors(settle([parameter("p", default={"value": "x"}, validation=checked(type="integer"))], {}))
    assert error.startswith("Parameter p schema validation failed: ")


def test_a_check_that_raises_names_itself() -> None:
    declared = parameter("p", validation=checked({"name": "broken", "check": "value + 1 > 0"}))
    (error,) = errors(settle([declared], {"p": "text"}))
    assert error.startswith("Parameter p exception on check broken: ")


def test_a_schema_that_cannot_be_used_is_reported() -> None:
    (error,) = errors(settle([parameter("p", validation=checked(type="strin"))], {"p": "text"}))
    assert error.startswith("Parameter p schema validation failed: openAPIV3Schema cannot be used: ")


@pytest.mark.parametrize(
    "check",
    [
        "value == q",
        "value == p",
        "resource_claim.name == 'mine'",
        "resource_handle is none",
        "resource_provider.name == 'base'",
        "limit == 3",
    ],
)
def test_a_check_sees_the_value_the_other_values_the_vars_and_the_objects(check: str) -> None:
    declared = parameter("p", validation=checked({"name": "sees", "check": check}))
    assert values(settle([declared, parameter("q")], {"p": 1, "q": 1}, vars={"limit": 3})) == {"p": 1, "q": 1}


def test_a_limit_raised_in_the_handles_vars_lifts_an_error() -> None:
    declared = parameter("p", allowUpdate=True, validation=checked({"name": "limit", "check": "value <= limit"}))
    assert errors(settle([declared], {"p": 5}, {"p": 1}, vars={"limit": 3})) == ["Parameter p failed check: limit"]
    raised = settle([declared], {"p": 5}, {"p": 1}, vars={"limit": 3}, handle=handle(vars={"limit": 9}))
    assert values(raised) == {"p": 5}


def test_errors_of_all_parameters_are_reported_at_once() -> None:
    declared = [parameter("a", required=True), parameter("b", validation=checked(POSITIVE))]
    assert errors(settle(declared, {"b": 0, "c": 1})) == [
        "Parameter a is required.",
        "Parameter b failed check: positive",
        "No such parameter c.",
    ]


def test_the_claim_is_not_completed_in_place() -> None:
    user_claim = asking({"q": [1]})
    before = copy.deepcopy(user_claim)
    base = provider("base", parameters=[parameter("p", default={"value": 1}), parameter("q")])
    outcome = settle_parameters(scene(base, claim=user_claim), base)
    assert values(outcome) == {"p": 1, "q": [1]}
    assert user_claim == before


# The status


def test_the_status_of_accepted_values_has_no_errors() -> None:
    rejected_before = claim({"provider": {"name": "base", "validationErrors": ["x"]}}, provider={"name": "base"})
    status = provider_status(rejected_before, Settled(values={"p": 1}))
    assert status == {"name": "base", "parameterValues": {"p": 1}}


def test_the_status_of_rejected_values_keeps_the_accepted_ones() -> None:
    status = provider_status(asking({"p": 2}, {"p": 1}), Settled({}, errors=("no",)))
    assert status == {"name": "base", "parameterValues": {"p": 1}, "validationErrors": ["no"]}


def test_the_status_of_values_never_accepted_has_errors_alone() -> None:
    assert provider_status(asking({"p": 2}), Settled({}, errors=("no",))) == {
        "name": "base",
        "validationErrors": ["no"],
    }


def test_settling_what_was_settled_changes_nothing() -> None:
    declared = [parameter("p", default={"template": "{{ '[a-z]{9}' | strgen }}"}), parameter("q", default={"value": 1})]
    once = values(settle(declared, {}))
    assert values(settle(declared, {}, once)) == once
