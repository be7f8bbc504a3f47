"""What a managed resource has to look like: links, variables of the override, names, references, annotations."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from claim_domain import NAMES
from claim_scenes import BOUND, OPERATOR_NAMESPACE, POOLED, claim, config_map, entry, handle, provider, resources

from domain.claims.evaluator_interface import NO_REQUESTER, Requester
from domain.claims.linked_providers import pointed
from domain.claims.references import reference_of
from domain.claims.resource_definitions import DefinitionError, definition_or_wait, definitions, reference_for
from domain.claims.resources.shared import WaitingFor
from domain.claims.template_variables import ProviderError, ProviderMissing
from domain.claims.templates.errors import TemplateError

OVERRIDING = {"enable": True}
ADA = Requester(
    user={"metadata": {"name": "ada"}},
    identities=(
        {"metadata": {"name": "sso:ada"}, "extra": {"email": "ada@example.com", "preferred_username": "lovelace"}},
        {"metadata": {"name": "other:ada"}, "extra": {"email": "second@example.com"}},
    ),
)


def defined(held: dict[str, Any], *providers: dict[str, Any], index: int = 0, **more: Any) -> dict[str, Any]:
    found = definition_or_wait(resources(held, *providers, **more), index)
    assert not isinstance(found, WaitingFor), found
    return found


def overridden(data: Any, held: dict[str, Any] | None = None, *others: dict[str, Any], **more: Any) -> Any:
    """What `data.seen` becomes in the override of a handle's first resource."""
    base = provider("base", template=OVERRIDING, override={"data": {"seen": data}}, **more.pop("spec", {}))
    held = held or handle(entry("base", template=config_map("x")))
    return defined(held, base, *others, **more)["data"]["seen"]


def annotation(name: str) -> str:
    return f"{NAMES.domain}/resource-{name}"


# Override


@pytest.mark.parametrize(
    ("template", "override", "data"),
    [
        (config_map("x", a="1"), None, {"a": "1"}),
        (config_map("x", a="1", b="2"), {"data": {"a": "won"}}, {"a": "won", "b": "2"}),
        (config_map("x"), {"data": {"a": "{{ guid }}"}}, {"a": "{{ guid }}"}),  # literal while templating is off
    ],
)
def test_the_override_wins_over_the_handles_template(template: Any, override: Any, data: Any) -> None:
    base = provider("base", **({"override": override} if override else {}))
    assert defined(handle(entry("base", template=template)), base)["data"] == data


def test_an_override_alone_makes_a_definition() -> None:
    base = provider("base", override=config_map("x"))
    assert reference_of(defined(handle(entry("base")), base)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "x",
        "namespace": "things",
    }


RECORDED = {"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "namespace": "things"}
HELD = handle(
    entry("base", "first", template=config_map("x", a="mine"), reference=RECORDED),
    entry("base", template=config_map("y", a="other")),
    **BOUND,
)
STATES = [{"status": {"phase": "up"}}, None]


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("{{ guid }}", "b7k2q"),
        ("{{ resource_index | int }}", 0),
        ("{{ resource_name }}", "first"),
        ("{{ resource_template.data.a }}", "mine"),
        ("{{ resource_templates[1].data.a }}", "other"),
        ("{{ resource_state.status.phase }}", "up"),
        ("{{ resource_states[1] is none }} {{ resource_states | length }}", "True 2"),
        ("{{ resource_reference.name }}", "one"),
        ("{{ resource_references[1] | object }}", {}),
        ("{{ resource_claim.name }} {{ resource_handle.name }} {{ resource_provider.name }}", "mine guid-b7k2q base"),
        ("{{ requester_user.metadata.name }}", "ada"),
        ("{{ requester_identity.extra.email }}", "ada@example.com"),
        ("{{ requester_identities | length | int }}", 2),
        ("{{ v }} {{ w }}", "of the handle of the provider"),
        ("{{ p | default('no parameter') }}", "no parameter"),  # values reach a resource by its template alone
    ],
)
def test_an_override_sees(template: str, result: Any) -> None:
    held = copy.deepcopy(HELD)
    held["spec"] |= {"vars": {"v": "of the handle"}, "provider": {"name": "base", "parameterValues": {"p": 1}}}
    spec = {"vars": {"v": "of the provider", "w": "of the provider"}, "parameters": [{"name": "p"}]}
    mine = claim({"provider": {"name": "base", "parameterValues": {"p": 1}}})
    seen = overridden(template, held, spec=spec, states=STATES, requester=ADA, claim=mine)
    assert seen == result


def test_fixed_names_hide_vars() -> None:
    assert overridden("{{ guid }}", spec={"vars": {"guid": "of a var"}}) == "b7k2q"


def test_a_missing_requester_is_none_and_an_empty_list() -> None:
    text = "{{ requester_user is none }} {{ requester_identity is none }} {{ requester_identities | length }}"
    assert overridden(text) == "True True 0"


def test_a_status_field_is_no_resource_reference() -> None:
    recorded = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": "things"}
    held = handle(entry("base", template=config_map("x")), status={"resources": [{"reference": recorded}]})
    assert overridden("{{ resource_reference | object }}", held) == {}


def test_a_failing_override_names_its_provider() -> None:
    with pytest.raises(TemplateError, match="ResourceProvider base, override"):
        overridden("{{ nothing }}")


# Links


def linked_pair(link: dict[str, Any], template: str = "{{ v | default('unset') }}", **spec: Any) -> list[Any]:
    top = provider(
        "top",
        template=OVERRIDING,
        override={"data": {"seen": template}},
        linkedResourceProviders=[{"name": "child", **link}],
        **spec,
    )
    return [top, provider("child")]


PAIR = handle(entry("child", "child", template=config_map("c")), entry("top", "top", template=config_map("t")))
UP = {"metadata": {"name": "c"}, "status": {"phase": "up", "ports": [80, 443], "a/b": "slash"}}


def outcome(link: dict[str, Any], state: Any, held: dict[str, Any] = PAIR, **more: Any) -> Any:
    """What the linking resource is, or waits for, while the linked one is in a state."""
    own = more.pop("own", None)
    found = definition_or_wait(resources(held, *linked_pair(link, **more), states=[state, own]), 1)
    return found if isinstance(found, WaitingFor) else found["data"]["seen"]


@pytest.mark.parametrize(
    ("wait_for", "state", "waits"),
    [
        ("", None, False),
        ("true", None, True),
        ("linked_resource_state.status.phase == 'up'", UP, False),
        ("linked_resource_state.status.phase == 'down'", UP, True),
        ("linked_resource_state.status.missing.deeply", UP, True),
        ("resource_state is none", UP, False),
        ("linked_resource_provider.name == 'child' and resource_provider.name == 'top'", UP, False),
        ("resource_handle.guid == 'b7k2q' and limit == 1", UP, False),
        ("phase == 'up'", UP, False),
        ("none_such is defined", UP, True),
    ],
)
def test_a_resource_waits_until_the_linked_one_lets_it_go(wait_for: str, state: Any, waits: bool) -> None:
    lent = [{"name": "phase", "from": "/status/phase"}, {"name": "none_such", "from": "/status/none"}]
    found = outcome({"waitFor": wait_for, "templateVars": lent}, state, vars={"limit": 1, "none_such": "a var"})
    assert (found == WaitingFor.LINKED) is waits


def test_a_resource_waits_although_it_exists() -> None:
    assert outcome({"waitFor": "false"}, UP, own=UP) == WaitingFor.LINKED


@pytest.mark.parametrize(
    ("pointer", "template", "seen"),
    [
        ("/status/phase", "{{ v }}", "up"),
        ("/status/ports/1", "{{ v | int }}", 443),
        ("/status/ports", "{{ v | object }}", [80, 443]),
        ("/status/a~1b", "{{ v }}", "slash"),
        ("", "{{ v.metadata.name }}", "c"),
        ("/status/none", "{{ v | default('fallback') }}", "fallback"),
        ("/status/none", "{{ v is defined }}", "False"),
        ("/status/none/deeper", "{{ v.any.part | default('chained') }}", "chained"),
        ("/status/ports/2", "{{ v is defined }}", "False"),
        ("/status/ports/-", "{{ v is defined }}", "False"),
    ],
)
def test_a_link_lends_values_of_the_linked_state(pointer: str, template: str, seen: Any) -> None:
    assert outcome({"templateVars": [{"name": "v", "from": pointer}]}, UP, template=template) == seen


def test_a_lent_value_hides_a_var_and_a_missing_one_is_undefined_all_the_same() -> None:
    found = {"templateVars": [{"name": "v", "from": "/status/phase"}]}
    missing = {"templateVars": [{"name": "v", "from": "/status/none"}]}
    assert outcome(found, UP, vars={"v": "a var"}) == "up"
    assert outcome(missing, UP, vars={"v": "a var"}) == "unset"


def test_without_a_state_nothing_is_lent() -> None:
    lent = {"templateVars": [{"name": "v", "from": "/status/phase"}]}
    assert outcome(lent, None) == "unset"
    assert outcome(lent, None, vars={"v": "a var"}) == "a var"


def test_a_lent_value_cannot_take_a_fixed_name() -> None:
    lent = {"templateVars": [{"name": "guid", "from": "/status/phase"}]}
    assert outcome(lent, UP, template="{{ guid }}") == "b7k2q"


def test_a_link_without_a_resource_neither_waits_nor_lends() -> None:
    alone = handle(entry("top", "top", template=config_map("t")))
    link = {"waitFor": "false", "templateVars": [{"name": "v", "from": "/status/phase"}]}
    found = definition_or_wait(resources(alone, *linked_pair(link), states=[UP]), 0)
    assert not isinstance(found, WaitingFor)
    assert found["data"] == {"seen": "unset"}


def test_a_provider_linked_twice_is_distinguished_by_resource_name() -> None:
    twice = handle(
        entry("child", "one", template=config_map("c")),
        entry("child", "two", template=config_map("d")),
        entry("top", "top", template=config_map("t")),
    )
    states = [{"status": {"phase": "first"}}, {"status": {"phase": "second"}}, None]
    for name, seen in (("two", "second"), ("one", "first"), ("other", "first")):
        link = {"resourceName": name, "templateVars": [{"name": "v", "from": "/status/phase"}]}
        found = definition_or_wait(resources(twice, *linked_pair(link), states=states), 2)
        assert not isinstance(found, WaitingFor)
        assert found["data"] == {"seen": seen}


def test_a_link_without_a_resource_takes_none_of_another_link_to_the_same_provider() -> None:
    held = handle(entry("child", "two", template=config_map("d")), entry("top", "top", template=config_map("t")))
    one = {"resourceName": "one", "waitFor": "false", "templateVars": [{"name": "v", "from": "/status/phase"}]}
    top, child = linked_pair(one)
    linked = top["spec"]["linkedResourceProviders"]
    top["spec"]["linkedResourceProviders"] = [*linked, {"name": "child", "resourceName": "two"}]
    found = definition_or_wait(resources(held, top, child, states=[{"status": {"phase": "second"}}, None]), 1)
    assert not isinstance(found, WaitingFor)
    assert found["data"] == {"seen": "unset"}


def test_the_later_link_lends_last() -> None:
    held = handle(entry("a"), entry("b"), entry("top", template=config_map("t")))
    links = [{"name": name, "templateVars": [{"name": "v", "from": "/v"}]} for name in ("a", "b")]
    top = provider("top", template=OVERRIDING, override={"data": {"seen": "{{ v | default('unset') }}"}})
    top["spec"]["linkedResourceProviders"] = links
    for states, seen in (
        ([{"v": "1"}, {"v": "2"}, None], "2"),
        ([{"v": "1"}, {}, None], "unset"),
        ([{}, {"v": "2"}, None], "2"),
        ([{"v": "1"}, None, None], "1"),
    ):
        found = resources(held, top, provider("a"), provider("b"), states=states)
        assert definitions_of(found, 2)["data"] == {"seen": seen}


def definitions_of(found: Any, index: int) -> dict[str, Any]:
    definition = definition_or_wait(found, index)
    assert not isinstance(definition, WaitingFor)
    return definition


def test_a_pointer_that_is_none_is_the_providers_error() -> None:
    with pytest.raises(ProviderError, match=r"link to child, templateVars v: 'status\.phase'"):
        outcome({"templateVars": [{"name": "v", "from": "status.phase"}]}, UP)


def test_a_wait_that_fails_names_its_link() -> None:
    with pytest.raises(TemplateError, match="ResourceProvider top, link to child, waitFor"):
        outcome({"waitFor": "1 // 0"}, UP)


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("", (True, {"a": [1, {"b": None}], "": 2, "m~n": 3})),
        ("/a/0", (True, 1)),
        ("/a/1/b", (True, None)),
        ("/", (True, 2)),
        ("/m~0n", (True, 3)),
        ("/a/00", (False, None)),
        ("/a/x", (False, None)),
        ("/a/²", (False, None)),
        ("/a/0/b", (False, None)),
    ],
)
def test_a_pointer_leads_as_rfc_6901_says(pointer: str, found: Any) -> None:
    assert pointed({"a": [1, {"b": None}], "": 2, "m~n": 3}, pointer) == found


# Claims


@pytest.mark.parametrize(
    ("held", "waits"), [({}, True), (POOLED, True), (BOUND, False)], ids=["unbound", "pooled", "bound"]
)
def test_a_provider_that_requires_a_claim_waits_for_one(held: dict[str, Any], waits: bool) -> None:
    needy = provider("base", resourceRequiresClaim=True)
    found = definition_or_wait(resources(handle(entry("base", template=config_map("x")), **held), needy), 0)
    assert (found == WaitingFor.CLAIM) is waits


def test_a_missing_provider_is_an_error() -> None:
    with pytest.raises(ProviderMissing, match="gone"):
        defined(handle(entry("gone", template=config_map("x"))))


# Names and references


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"name": "given"}, "given"),
        ({"generateName": "thing-"}, "thing-b7k2q"),
        ({"name": "given", "generateName": "thing-"}, "given"),
        ({}, "guid0-b7k2q"),
        (None, "guid0-b7k2q"),
    ],
)
def test_a_resource_is_named_by_its_definition_or_the_guid(metadata: Any, name: str) -> None:
    template = {"apiVersion": "v1", "kind": "ConfigMap", **({} if metadata is None else {"metadata": metadata})}
    found = defined(handle(entry("base", template=template)), provider("base"))["metadata"]
    assert found["name"] == name
    assert found.get("generateName") == (metadata or {}).get("generateName")


def recorded(name: str = "old", **more: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "namespace": "old-things", **more}


def test_name_and_namespace_follow_the_recorded_reference() -> None:
    in_spec = handle(entry("base", template=config_map("new"), reference=recorded()))
    in_status = handle(entry("base", template=config_map("new")), status={"resources": [{"reference": recorded()}]})
    for held in (in_spec, in_status):
        assert reference_of(defined(held, provider("base"))) == recorded()


@pytest.mark.parametrize(
    ("wrong", "state", "unreadable", "followed"),
    [
        ({"name": "Foo_Bar"}, None, (), True),
        ({"name": "foo."}, None, (), True),
        ({"name": "foo..bar"}, None, (), True),
        ({"name": "a" * 254}, None, (), True),
        ({"namespace": "Old_Things"}, None, (), True),
        ({"namespace": "old.things"}, None, (), True),
        ({"namespace": "a" * 64}, None, (), True),
        ({"name": "system:foo"}, config_map("system:foo"), (), False),
        ({"name": "Foo_Bar"}, None, (0,), False),
        ({"name": "foo.bar-2"}, None, (), False),
    ],
)
def test_a_name_that_the_api_server_refuses_is_pinned_only_if_its_object_may_exist(
    wrong: dict[str, str], state: Any, unreadable: tuple[int, ...], followed: bool
) -> None:
    reference = recorded(**wrong)
    seen = resources(
        handle(entry("base", template=config_map("new"), reference=reference)), provider("base"), states=[state]
    )
    seen = replace(seen, question=seen.question.model_copy(update={"unreadable": unreadable}))
    (made,) = definitions(seen)
    assert not isinstance(made, WaitingFor)
    assert reference_of(made) == (recorded("new", namespace="things") if followed else reference)
    assert reference_for(seen, 0, made) == reference_of(made)


def test_the_reference_in_the_spec_counts_first() -> None:
    held = handle(
        entry("base", template=config_map("new"), reference=recorded("in-spec")),
        status={"resources": [{"reference": recorded("in-status")}]},
    )
    assert reference_of(defined(held, provider("base")))["name"] == "in-spec"


@pytest.mark.parametrize("changed", [{"apiVersion": "v2"}, {"kind": "Secret"}])
def test_another_kind_than_recorded_is_refused(changed: dict[str, Any]) -> None:
    held = handle(entry("base", "x", template={**config_map("old"), **changed}, reference=recorded()))
    (field,) = changed
    with pytest.raises(DefinitionError, match=f"resource x of ResourceProvider base: {field} may not change from"):
        defined(held, provider("base"))


NEW = {"apiVersion": "lab.dev/v1", "kind": "Gadget"}


@pytest.mark.parametrize(
    ("was", "unknown", "name"),
    [
        ({"kind": "Gadgett"}, "unserved", "new"),
        ({"apiVersion": "lab.dve/v1"}, "unserved", "new"),
        ({"apiVersion": "lab.dev/v11"}, "outdated", "old"),
        ({}, "unserved", "old"),
        ({"kind": "Gadgett"}, "outdated", ""),
        ({"apiVersion": "lab.dve/v1"}, "outdated", ""),
        ({"apiVersion": "lab.dev/v11"}, "", ""),
    ],
    ids=[
        "a kind that does not exist",
        "a group that does not exist",
        "a version that is not served",
        "the same as ever",
        "a kind that another version serves",
        "a group that serves it in another version",
        "a version that is served",
    ],
)
def test_a_definition_that_the_api_server_does_not_know_is_not_pinned(
    was: dict[str, str], unknown: str, name: str
) -> None:
    reference = {**NEW, **was, "name": "old"}
    held = handle(entry("base", template={**config_map("new"), **NEW}, reference=reference))
    seen = resources(held, provider("base"))
    seen = replace(seen, question=seen.question.model_copy(update={unknown: (0,)})) if unknown else seen
    if not name:
        with pytest.raises(DefinitionError, match="may not change"):
            definitions(seen)
        return
    (made,) = definitions(seen)
    assert not isinstance(made, WaitingFor)
    assert (made["kind"], made["metadata"]["name"]) == ("Gadget", name)  # type: ignore[index, call-overload]
    assert {**NEW, "name": name}.items() <= reference_for(seen, 0, made).items()


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ({"kind": "ConfigMap"}, "has no apiVersion"),
        ({"apiVersion": "v1"}, "has no kind"),
        ({}, "has no apiVersion"),
        ({**config_map(), "metadata": "text"}, "or its metadata is not an object"),
    ],
)
def test_a_definition_that_is_no_object_is_refused(template: Any, text: str) -> None:
    with pytest.raises(DefinitionError, match=f"resource 0 of ResourceProvider base: the definition {text}"):
        defined(handle(entry("base", template=template)), provider("base"))


def test_a_definition_nested_beyond_reason_is_refused() -> None:
    deep: Any = {}
    for _ in range(300):
        deep = {"a": deep}
    with pytest.raises(DefinitionError, match="nested deeper"):
        defined(handle(entry("base", template={**config_map("x"), "data": deep})), provider("base", override={"b": 1}))


# Annotations and labels


OWN = {
    annotation("provider-name"): "base",
    annotation("provider-namespace"): OPERATOR_NAMESPACE,
    annotation("handle-name"): "guid-b7k2q",
    annotation("handle-namespace"): OPERATOR_NAMESPACE,
    annotation("handle-uid"): "handle-uid",
    annotation("index"): "0",
}
OF_CLAIM = {annotation("claim-name"): "mine", annotation("claim-namespace"): "user-ada"}
OF_POOL = {annotation("pool-name"): "spare", annotation("pool-namespace"): OPERATOR_NAMESPACE}
OF_ADA = {
    annotation("requester-user"): "ada",
    annotation("requester-email"): "ada@example.com",
    annotation("requester-name"): "",
    annotation("requester-preferred-username"): "lovelace",
}


@pytest.mark.parametrize(
    ("held", "requester", "annotations"),
    [
        ({}, NO_REQUESTER, OWN),
        (BOUND, NO_REQUESTER, OWN | OF_CLAIM),
        (POOLED, NO_REQUESTER, OWN | OF_POOL),
        (BOUND | POOLED, ADA, OWN | OF_CLAIM | OF_POOL | OF_ADA),
        (BOUND, Requester(user={"metadata": {"name": "ada"}}), OWN | OF_CLAIM | {annotation("requester-user"): "ada"}),
        ({"resourceAnnotations": {"team": "blue"}}, NO_REQUESTER, OWN | {"team": "blue"}),
        ({"resourceAnnotations": {annotation("index"): "9"}}, NO_REQUESTER, OWN),
    ],
    ids=["alone", "bound", "pooled", "all", "user without identity", "the handle's own", "ours cannot be taken"],
)
def test_a_resource_says_whose_it_is(held: Any, requester: Requester, annotations: Any) -> None:
    found = defined(handle(entry("base", template=config_map("x")), **held), provider("base"), requester=requester)[
        "metadata"
    ]
    assert found["annotations"] == annotations
    assert "labels" not in found


def test_annotations_and_labels_of_the_definition_stay_under_the_handles() -> None:
    template = config_map("x")
    template["metadata"] |= {"annotations": {"a": "1", "b": "2"}, "labels": {"a": "1", "b": "2"}}
    held = handle(entry("base", template=template), resourceAnnotations={"b": "3"}, resourceLabels={"b": "3", "c": "4"})
    found = defined(held, provider("base"))["metadata"]
    assert found["labels"] == {"a": "1", "b": "3", "c": "4"}
    assert found["annotations"] == {**OWN, "a": "1", "b": "3"}


def test_the_index_is_a_decimal_string() -> None:
    held = handle(*[entry("base", template=config_map(f"x{n}")) for n in range(3)])
    assert defined(held, provider("base"), index=2)["metadata"]["annotations"][annotation("index")] == "2"


# All of a handle


def test_later_resources_see_the_references_recorded_before_them() -> None:
    base = provider("base", template=OVERRIDING, override={"data": {"refs": "{{ resource_references | object }}"}})
    held = handle(entry("base", template=config_map("x")), entry("base", template=config_map("y")))
    first, second = definitions(resources(held, base))
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["data"] == {"refs": [{}, {}]}
    assert second["data"] == {"refs": [reference_of(first), {}]}


def test_a_waiting_resource_lets_the_others_go_on() -> None:
    found = definitions(resources(PAIR, *linked_pair({"waitFor": "true"}), states=[None, None]))
    assert isinstance(found[0], dict)
    assert found[1] == WaitingFor.LINKED


def test_defining_changes_nothing_given_and_settles() -> None:
    held = handle(entry("base", template=config_map("x", a="1")), resourceLabels={"a": "b"}, **BOUND)
    base = provider("base", override={"data": {"b": "2"}})
    before = copy.deepcopy((held, base))
    found = resources(held, base)
    first = definitions(found)
    assert (held, base) == before
    assert isinstance(first[0], dict)
    assert definitions(found.with_reference(0, reference_of(first[0]))) == first
