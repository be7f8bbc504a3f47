"""Resources that a claim lists itself: defaults applied once, and the error for a template that is not allowed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from claim_scenes import claim, handle, provider, reference, scene

from domain.claims.claim_defaults import with_defaults
from domain.claims.provider_resources import ProviderMissing
from domain.claims.schema_validation import validation_errors
from domain.claims.templates.errors import TemplateError


def initialised(entry: dict[str, Any], newer: bool = False, **spec: Any) -> dict[str, Any]:
    listed = scene(provider("base", **spec), newer=newer, claim=claim(resources=[entry]))
    (found,) = with_defaults(listed, ["base"])
    return found


def error(template: Any, **spec: Any) -> str | None:
    entry = {} if template is None else {"template": template}
    objects = {"handle": spec.pop("handle")} if "handle" in spec else {}
    listed = scene(provider("base", **spec), claim=claim(resources=[entry]), **objects)
    (found,) = validation_errors(listed, ["base"])
    return found


SCHEMA = {
    "properties": {
        "spec": {
            "type": "object",
            "default": {"lost": True},
            "properties": {"size": {"default": "s"}, "zone": {"type": "string"}},
        }
    }
}


# Initialisation


@pytest.mark.parametrize(
    ("entry", "spec", "template"),
    [
        ({"template": {"a": 1}}, {"default": {"a": 2, "b": 3}}, {"a": 1, "b": 3}),
        ({}, {"default": {"a": 2}}, {"a": 2}),
        ({"template": {}}, {"validation": {"openAPIV3Schema": SCHEMA}}, {"spec": {"size": "s"}}),
        (
            {"template": {"spec": {"size": "xl"}}},
            {"validation": {"openAPIV3Schema": SCHEMA}},
            {"spec": {"size": "xl"}},
        ),
        (
            {},
            {"default": {"spec": {"size": "m"}}, "validation": {"openAPIV3Schema": SCHEMA}},
            {"spec": {"size": "m"}},
        ),
    ],
    ids=["the user's wins", "no template", "schema", "the user's over the schema's", "provider's over the schema's"],
)
def test_defaults_fill_up_what_the_user_wrote(entry: Any, spec: Any, template: Any) -> None:
    assert initialised(entry, **spec) == {"provider": reference("base"), "template": template}


def test_defaults_see_variables_as_poolboy_1_13_and_later_have_them() -> None:
    default = {"url": "{{ url | default('none') }}"}
    spec: Any = {"default": default, "template": {"enable": True}, "vars": {"base": "x", "url": "https://{{ base }}"}}
    assert initialised({}, newer=True, **spec)["template"] == {"url": "https://x"}
    assert initialised({}, **spec)["template"] == {"url": "none"}


def test_a_template_without_content_is_not_written() -> None:
    assert initialised({"name": "x"}) == {"name": "x", "provider": reference("base")}


def test_the_provider_is_written_as_full_reference() -> None:
    foreign = {"name": "base", "namespace": "elsewhere", "apiVersion": "other.example.com/v1"}
    assert initialised({"provider": foreign})["provider"] == reference("base")


@pytest.mark.parametrize(
    ("text", "enable", "result"),
    [
        ("{{ resource_index }}", False, "{{ resource_index }}"),
        ("{{ resource_index | int }}", True, 0),
        ("{{ resource_name }}", True, "first"),
        ("{{ resource_claim.name }} {{ resource_provider.name }}", True, "mine base"),
        ("{{ v | default('no vars here') }}", True, "no vars here"),
    ],
)
def test_a_default_is_a_template_where_templating_is_on(text: str, enable: bool, result: Any) -> None:
    entry = {"name": "first"}
    filled = initialised(entry, default={"a": text}, template={"enable": enable}, vars={"v": "a var"})
    assert filled["template"] == {"a": result}


def test_a_default_that_fails_names_its_provider() -> None:
    with pytest.raises(TemplateError, match="ResourceProvider base, default"):
        initialised({}, default={"a": "{{ nothing }}"}, template={"enable": True})


def test_entries_keep_their_order_and_providers() -> None:
    two = claim(resources=[{"name": "x"}, {"name": "y", "template": {"a": 1}}])
    found = with_defaults(scene(provider("a", default={"d": 1}), provider("b"), claim=two), ["b", "a"])
    assert found == [
        {"name": "x", "provider": reference("b")},
        {"name": "y", "provider": reference("a"), "template": {"a": 1, "d": 1}},
    ]


def test_initialising_changes_nothing_given_and_settles() -> None:
    listed = claim(resources=[{"template": {"list": [{"a": 1}]}}])
    before = copy.deepcopy(listed)
    base = provider("base", default={"list": [{"b": 2}]})
    once = with_defaults(scene(base, claim=listed), ["base"])
    assert listed == before
    assert once[0]["template"] == {"list": [{"a": 1, "b": 2}]}
    assert with_defaults(scene(base, claim=claim(resources=once)), ["base"]) == once


def test_a_provider_that_is_gone_is_named() -> None:
    with pytest.raises(ProviderMissing, match="gone"):
        with_defaults(scene(claim=claim(resources=[{}])), ["gone"])


# Validation


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
