"""Resources that a claim lists itself: the error for a template that is not allowed."""

from __future__ import annotations

from typing import Any

import pytest
from claim_scenes import claim, handle, provider, scene

from domain.claims.claim_spec_validation import validation_errors


def error(template: Any, **spec: Any) -> str | None:
    entry = {} if template is None else {"template": template}
    objects = {"handle": spec.pop("handle")} if "handle" in spec else {}
    listed = scene(provider("base", **spec), claim=claim(resources=[entry]), **objects)
    (found,) = validation_errors(listed, ["base"])
    return found


def checks(*expressions: str) -> dict[str, Any]:
    return {"checks": [{"name": f"check {n}", "check": each} for n, each in enumerate(expressions)]}


def test_a_template_without_schema_and_checks_is_valid() -> None:
    assert error({"kind": "ConfigMap"}) is None


def test_the_schema_comes_first_in_the_validators_words() -> None:
    failure = error({"a": 1}, validation={"openAPIV3Schema": {"required": ["b"]}, **checks("false")})
    assert failure is not None
    assert failure.startswith("'b' is a required property\n\nFailed validating 'required' in schema")


def test_no_template_is_an_empty_one() -> None:
    failure = error(None, validation={"openAPIV3Schema": {"type": "object", "required": ["b"]}})
    assert str(failure).startswith("'b' is a required property")


@pytest.mark.parametrize(
    ("expressions", "text"),
    [
        (["true", "spec.size == 's'"], None),
        (["false"], "Validation check failed: check 0"),
        (["true", "spec.size == 'xl'", "false"], "Validation check failed: check 1"),
        (["missing.part"], "Validation check failed: check 0"),
    ],
)
def test_the_first_false_check_is_reported(expressions: list[str], text: str | None) -> None:
    assert error({"spec": {"size": "s"}}, validation=checks(*expressions)) == text


def test_a_check_that_raises_is_reported_with_its_exception() -> None:
    failure = error({"spec": {"size": "s"}}, validation=checks("spec.size + 1 > 2"))
    assert str(failure).startswith('Validation check "check 0" failed with exception: ')


@pytest.mark.parametrize(
    "expression",
    [
        "v == 'of the handle'",
        "w == 'of the provider'",
        "resource_claim.name == 'mine'",
        "resource_handle.guid == 'b7k2q'",
        "resource_provider == 'of the template'",
    ],
)
def test_a_check_sees_vars_objects_and_over_all_the_template(expression: str) -> None:
    failure = error(
        {"resource_provider": "of the template"},
        validation=checks(expression),
        vars={"v": "of the provider", "w": "of the provider"},
        handle=handle(vars={"v": "of the handle"}),
    )
    assert failure is None


def test_a_schema_that_cannot_be_used_is_the_providers_fault() -> None:
    failure = error({}, validation={"openAPIV3Schema": {"type": "strin"}})
    assert str(failure).startswith("ResourceProvider base: openAPIV3Schema cannot be used: type: 'strin'")


def test_each_entry_is_judged_by_its_own_provider() -> None:
    strict = provider("strict", validation=checks("false"))
    listed = claim(resources=[{"template": {}}, {"template": {}}])
    found = validation_errors(scene(strict, provider("lax"), claim=listed), ["lax", "strict"])
    assert found == [None, "Validation check failed: check 0"]
