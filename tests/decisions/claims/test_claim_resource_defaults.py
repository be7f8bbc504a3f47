"""Resources that a claim lists itself: defaults applied once."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from claim_scenes import claim, provider, reference, scene

from domain.claims.resource_defaults import with_defaults
from domain.claims.template_variables import ProviderMissing
from domain.claims.templates.errors import TemplateError


def initialised(entry: dict[str, Any], newer: bool = False, **spec: Any) -> dict[str, Any]:
    listed = scene(provider("base", **spec), newer=newer, claim=claim(resources=[entry]))
    (found,) = with_defaults(listed, ["base"])
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
