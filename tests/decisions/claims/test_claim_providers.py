"""What a provider yields: order, names, values, links that are off, links without end, and which providers it takes."""

from __future__ import annotations

from typing import Any

import pytest
from claim_domain import NAMES
from claim_scenes import asking, claim, config_map, entry, handle, link, provider, reference, scene

from domain.claims.linked_providers import DEEPEST_LINK, MOST_PROVIDERS
from domain.claims.provider_resources import resource_list
from domain.claims.references import named_providers
from domain.claims.references import provider_reference as reference_to
from domain.claims.template_variables import ProviderError, ProviderMissing
from domain.claims.templates.errors import TemplateError
from domain.claims.templates.views import parameter_defaults


def thing(name: str, data: str = "", **spec: Any) -> dict[str, Any]:
    """A provider of a ConfigMap with one templated value."""
    return provider(name, template={"definition": config_map(data=data or f"of {name}")}, **spec)


def linking(name: str, *linked: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return provider(name, linkedResourceProviders=list(linked), **spec)


def data_of(resource: dict[str, Any]) -> Any:
    return resource["template"]["data"]["data"]


def test_a_provider_with_a_definition_yields_one_resource() -> None:
    assert resource_list(scene(thing("base")), "base") == [
        {"name": "base", "provider": reference("base"), "template": config_map(data="of base")}
    ]


@pytest.mark.parametrize(
    ("spec", "yields"),
    [
        ({}, False),
        ({"match": config_map()}, False),
        ({"override": {"kind": "ConfigMap"}}, True),
        ({"template": {"enable": True}}, False),
        ({"template": {"definition": {"kind": "ConfigMap"}}}, True),
    ],
)
def test_only_an_override_or_a_definition_makes_a_resource(spec: dict[str, Any], yields: bool) -> None:
    assert bool(resource_list(scene(provider("base", **spec)), "base")) is yields


def test_a_provider_with_an_override_alone_yields_no_template() -> None:
    (resource,) = resource_list(scene(provider("base", override={"kind": "ConfigMap"})), "base")
    assert resource == {"name": "base", "provider": reference("base")}


def test_linked_resources_come_in_link_order_before_the_own_one_depth_first() -> None:
    top = linking("top", {"name": "a"}, {"name": "b"}, template={"definition": config_map(data="x")})
    a = linking("a", {"name": "deep"}, template={"definition": config_map(data="x")})
    found = resource_list(scene(top, a, thing("b"), thing("deep")), "top")
    assert [each["name"] for each in found] == ["deep", "a", "b", "top"]


@pytest.mark.parametrize(
    ("linked", "spec", "name"),
    [
        ({"name": "child"}, {}, "child"),
        ({"name": "child"}, {"resourceName": "own-name"}, "child"),  # a link's resourceName defaults to its name
        ({"name": "child", "resourceName": "linked-name"}, {"resourceName": "own-name"}, "linked-name"),
    ],
)
def test_a_linked_resource_is_named_by_its_link(linked: Any, spec: Any, name: str) -> None:
    assert resource_list(scene(linking("top", linked), thing("child", **spec)), "top")[0]["name"] == name


def test_an_own_resource_is_named_by_the_providers_resource_name() -> None:
    assert resource_list(scene(thing("base", resourceName="cluster")), "base")[0]["name"] == "cluster"


def test_one_provider_may_be_linked_twice() -> None:
    top = linking(
        "top",
        {"name": "node", "resourceName": "first", "parameterValues": {"size": "s"}},
        {"name": "node", "resourceName": "second", "parameterValues": {"size": "l"}},
    )
    found = resource_list(scene(top, thing("node", "{{ size }}")), "top")
    assert [(each["name"], data_of(each)) for each in found] == [("first", "s"), ("second", "l")]


def test_the_definition_is_rendered_although_templating_is_off() -> None:
    base = thing("base", "{{ 1 + 1 }}")
    assert data_of(resource_list(scene(base), "base")[0]) == "2"


# Values and variables


def with_default(name: str, **default: Any) -> dict[str, Any]:
    return {"name": name, "default": default}


@pytest.mark.parametrize(
    ("parameter", "defaults"),
    [
        ({"name": "p"}, {}),
        ({"name": "p", "default": {"value": 0}}, {"p": 0}),
        ({"name": "p", "default": {"value": None}}, {"p": None}),
        ({"name": "p", "validation": {"openAPIV3Schema": {"default": {"a": [1]}}}}, {"p": {"a": [1]}}),
        ({"name": "p", "default": {"value": 1}, "validation": {"openAPIV3Schema": {"default": 2}}}, {"p": 1}),
        ({"name": "p", "default": {"template": "{{ 1 }}"}}, {}),
    ],
)
def test_default_values_are_the_parameters_own_then_the_schemas(parameter: Any, defaults: Any) -> None:
    assert parameter_defaults(provider(parameters=[parameter])) == defaults


@pytest.mark.parametrize(
    ("objects", "values", "seen"),
    [
        ({}, None, "default"),
        ({"claim": asking({"p": "wished"})}, None, "default"),  # not accepted yet
        ({"claim": asking({"p": "wished"}, {"p": "accepted"})}, None, "accepted"),
        ({"claim": asking({"p": "wished"}, {"p": "accepted"})}, {"p": "given"}, "given"),
        ({"claim": asking({}, {"p": "accepted"})}, {}, "default"),
        ({"handle": handle(provider={"name": "base", "parameterValues": {"p": "held"}})}, None, "held"),
        (
            {"claim": asking({}, {}), "handle": handle(provider={"name": "base", "parameterValues": {"p": "held"}})},
            None,
            "default",
        ),
    ],
    ids=["none", "wished", "accepted", "given", "given none", "held by a handle", "a claim beside a handle"],
)
def test_values_lie_over_the_defaults(objects: Any, values: Any, seen: str) -> None:
    base = thing("base", "{{ p }}", parameters=[with_default("p", value="default")])
    assert data_of(resource_list(scene(base, **objects), "base", values)[0]) == seen


def test_a_default_template_does_not_count() -> None:
    base = thing("base", "{{ p | default('none') }}", parameters=[with_default("p", template="{{ 'x' }}")])
    assert data_of(resource_list(scene(base), "base")[0]) == "none"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ v }}", "of the handle"),
        ("{{ w }}", "of the provider"),
        ("{{ x }}", "a value"),
        ("{{ resource_claim.name }}", "mine"),  # a value of that name does not hide it
        ("{{ resource_handle.guid }}", "b7k2q"),
        ("{{ resource_provider.name }}", "base"),
    ],
)
def test_variables_are_of_the_provider_then_the_handle_then_values_then_objects(template: str, text: str) -> None:
    base = thing("base", template, vars={"v": "of the provider", "w": "of the provider", "x": "of the provider"})
    held = handle(vars={"v": "of the handle", "x": "of the handle"})
    found = resource_list(
        scene(base, claim=claim(), handle=held), "base", {"x": "a value", "resource_claim": {"name": "a value"}}
    )
    assert data_of(found[0]) == text


def test_without_claim_and_handle_both_are_none() -> None:
    base = thing("base", "{{ resource_claim is none }} {{ resource_handle is none }}")
    assert data_of(resource_list(scene(base), "base")[0]) == "True True"


def test_a_link_renders_values_of_every_type_for_the_linked_provider() -> None:
    linked = {
        "name": "child",
        "parameterValues": {"size": "{{ size }}", "count": "{{ n | int }}", "flag": True, "nested": {"a": ["{{ n }}"]}},
    }
    child = thing("child", "{{ [size, count, flag, nested] | to_json }}")
    found = resource_list(scene(linking("top", linked), child), "top", {"size": "xl", "n": 3})
    assert data_of(found[0]) == '["xl", 3, true, {"a": ["3"]}]'


def test_values_of_the_linking_provider_do_not_reach_the_linked_one() -> None:
    child = thing("child", "{{ size | default('unset') }}")
    found = resource_list(scene(linking("top", {"name": "child"}), child), "top", {"size": "xl"})
    assert data_of(found[0]) == "unset"


def test_vars_with_jinja_text_are_text_or_templates_by_the_rules_asked_for() -> None:
    base = thing("base", "{{ v }}", vars={"v": "{{ 1 + 1 }}"})
    assert data_of(resource_list(scene(base), "base")[0]) == "{{ 1 + 1 }}"
    assert data_of(resource_list(scene(base, newer=True), "base")[0]) == "2"


# Links that are off, and links without end


@pytest.mark.parametrize(
    ("when", "names"),
    [
        ("", ["child", "top"]),
        ("true", ["child", "top"]),
        ("size == 'xl'", ["child", "top"]),
        ("size == 's'", ["top"]),
        ("resource_provider.name == 'top'", ["child", "top"]),  # the provider, not the link
        ("resource_provider.vars.on", ["child", "top"]),
        ("missing.attribute", ["top"]),
    ],
)
def test_a_link_counts_while_its_when_holds(when: str, names: list[str]) -> None:
    top = linking("top", {"name": "child", "when": when}, override={"kind": "ConfigMap"}, vars={"on": True})
    found = resource_list(scene(top, thing("child")), "top", {"size": "xl"})
    assert [each["name"] for each in found] == names


def test_a_link_that_is_off_needs_no_provider() -> None:
    assert resource_list(scene(linking("top", {"name": "gone", "when": "false"})), "top") == []


def test_a_missing_provider_is_named() -> None:
    with pytest.raises(ProviderMissing, match="ResourceProvider gone: not found"):
        resource_list(scene(linking("top", {"name": "gone"})), "top")


def test_a_failing_template_names_its_place() -> None:
    with pytest.raises(TemplateError, match=r"ResourceProvider top, link to child, parameterValues\.size"):
        resource_list(
            scene(linking("top", {"name": "child", "parameterValues": {"size": "{{ nothing }}"}}), thing("child")),
            "top",
        )


def test_providers_that_link_in_a_ring_are_an_error_that_names_it() -> None:
    ring = [linking("a", {"name": "b"}), linking("b", {"name": "c"}), linking("c", {"name": "a"})]
    with pytest.raises(ProviderError, match="ResourceProvider a: links to itself: a → b → c → a"):
        resource_list(scene(*ring), "a")


def test_a_provider_may_meet_itself_while_its_when_ends_it() -> None:
    step = {"name": "base", "when": "n > 0", "parameterValues": {"n": "{{ (n - 1) | int }}"}}
    assert len(resource_list(scene(thing("base", linkedResourceProviders=[step])), "base", {"n": 3})) == 4


def test_links_that_only_grow_end_at_a_depth() -> None:
    step = {"name": "base", "parameterValues": {"n": "{{ (n + 1) | int }}"}}
    with pytest.raises(ProviderError, match=f"links deeper than {DEEPEST_LINK} providers"):
        resource_list(scene(thing("base", linkedResourceProviders=[step])), "base", {"n": 0})


def test_links_that_fan_out_end_at_a_number() -> None:
    fan = [linking(f"p{level}", *[{"name": f"p{level + 1}"}] * 4) for level in range(8)]
    with pytest.raises(ProviderError, match=f"links to more than {MOST_PROVIDERS} providers"):
        resource_list(scene(*fan, thing("p8")), "p0")


def test_nothing_given_is_changed() -> None:
    base = thing("base", "{{ p }}", parameters=[with_default("p", value={"a": 1})])
    user_claim, values = asking({}, {}), {"q": 1}
    resource_list(scene(base, claim=user_claim), "base", values)
    assert values == {"q": 1}
    assert user_claim == asking({}, {})
    assert base == thing("base", "{{ p }}", parameters=[with_default("p", value={"a": 1})])


# Names


def test_a_reference_is_of_the_configured_domain() -> None:
    foreign = {**provider("base"), "apiVersion": "other.example.com/v1"}
    assert reference_to(NAMES, foreign) == reference("base")


def test_an_object_names_its_providers_in_spec_and_status() -> None:
    listed = claim({"resources": [{"provider": {"name": "b"}}]}, resources=[{"provider": {"name": "a"}}, {}])
    assert named_providers(listed) == {"a", "b"}
    assert named_providers(asking({}, {}, name="top")) == {"top"}
    assert named_providers(handle(entry("c"), resourcePool=link("ResourcePool", "poolboy", "spare"))) == {"c"}
