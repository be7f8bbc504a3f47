"""What a claim changes in its handle's resource list."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from claim_scenes import asking, claim, config_map, entry, handle, provider, reference, scene

from domain.claims.handle_edits import ClaimEdits, claim_edits
from domain.claims.template_variables import ProviderMissing


def at(provider_name: str, name: str) -> dict[str, Any]:
    return entry(provider_name, name, template=config_map(data="1"))


def push(user_claim: dict[str, Any], held: dict[str, Any], *names: str) -> ClaimEdits:
    return claim_edits(scene(*[provider(name) for name in ("a", "b")], claim=user_claim, handle=held), names)


def test_a_claim_in_provider_mode_hands_over_its_effective_values() -> None:
    held = handle(at("a", "a"), provider={"name": "a", "parameterValues": {"p": 1}})
    found = push(asking({"p": 2}, {"p": 2, "default": 3}, name="a"), held)
    assert found == ClaimEdits(
        provider={"name": "a", "parameterValues": {"p": 2, "default": 3}}, resources=(at("a", "a"),)
    )


def test_a_rejected_edit_hands_over_the_accepted_values() -> None:
    found = push(asking({"p": "bad"}, {"p": "good"}, name="a"), handle(at("a", "a")))
    assert found.provider == {"name": "a", "parameterValues": {"p": "good"}}


def test_a_claim_in_list_mode_takes_the_provider_from_its_handle() -> None:
    held = handle(at("a", "x"), provider={"name": "a"})
    assert push(claim(resources=[{"name": "x"}]), held, "a").provider is None


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1, "kept": [1, 2]}, {"b": 1}, {"a": 1, "kept": [1, 2], "b": 1}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": [1, 2, 3]}, {"a": [9]}, {"a": [9, 2, 3]}),
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"a": True}, {"a": True}),
    ],
)
def test_a_claims_template_is_merged_over_the_handles_and_takes_nothing_away(
    before: Any, edit: Any, after: Any
) -> None:
    found = push(claim(resources=[{"template": edit}]), handle(entry("a", "x", template=before)), "a")
    assert found.resources == (entry("a", "x", template=after),)


def test_list_entries_meet_by_index_whatever_their_names() -> None:
    user_claim = claim(resources=[{"name": "renamed", "template": {"n": 1}}, {"template": {"n": 2}}])
    held = handle(entry("a", "x"), entry("a", "y"))
    found = push(user_claim, held, "a", "a")
    assert found.resources == (entry("a", "x", template={"n": 1}), entry("a", "y", template={"n": 2}))


@pytest.mark.parametrize(
    ("names", "numbers", "entries"),
    [
        ("cxy", (3, 1, 2), {"x": 1, "y": 2, "c": 3}),
        ("xcy", (1, 3, 2), {"x": 1, "y": 2, "c": 3}),
        ("yx", (2, 1), {"x": 1, "y": 2}),
        ("y", (2,), {"x": 0, "y": 2}),
        ("yc", (2, 3), {"x": 0, "y": 2, "c": 3}),
    ],
    ids=["one more in front", "one more between", "another order", "one less in front", "one less, one more"],
)
def test_a_listed_resource_keeps_its_entry_wherever_it_is_listed(
    names: str, numbers: tuple[int, ...], entries: dict[str, int]
) -> None:
    listed = [{"name": name, "template": {"n": number}} for name, number in zip(names, numbers, strict=True)]
    held = handle(entry("a", "x", template={"n": 0}), entry("a", "y", template={"n": 0}))
    found = push(claim(resources=listed), held, *("a" * len(names)))
    assert found == ClaimEdits(
        provider=None, resources=tuple(entry("a", name, template={"n": number}) for name, number in entries.items())
    )


def test_entries_that_the_handle_lacks_are_added_whole() -> None:
    user_claim = claim(resources=[{"name": "x"}, {"name": "y", "template": {"n": 2}}, {}])
    found = push(user_claim, handle(at("a", "x")), "a", "b", "a")
    assert found.resources[1:] == (
        {"name": "y", "provider": reference("b"), "template": {"n": 2}},
        {"provider": reference("a")},
    )


def test_another_provider_at_an_index_is_refused_template_and_all() -> None:
    user_claim = claim(resources=[{"template": {"n": 1}}, {"template": {"n": 2}}])
    held = handle(at("a", "x"), entry("a", "y", template={}))
    found = push(user_claim, held, "b", "a")
    assert found.resources == (at("a", "x"), entry("a", "y", template={"n": 2}))
    (text,) = found.refused
    assert text.startswith("resource 0 keeps ResourceProvider a and its template")


def test_a_resource_of_another_name_and_provider_is_a_new_one() -> None:
    found = push(claim(resources=[{"name": "y", "template": {"n": 1}}]), handle(at("a", "x")), "b")
    assert found.resources == (at("a", "x"), {"name": "y", "provider": reference("b"), "template": {"n": 1}})


def test_another_provider_of_the_same_name_is_refused() -> None:
    found = push(claim(resources=[{"name": "x", "template": {"n": 1}}]), handle(at("a", "x")), "b")
    assert (found.resources, len(found.refused)) == ((at("a", "x"),), 1)


def test_the_provider_of_an_added_entry_has_to_exist() -> None:
    with pytest.raises(ProviderMissing, match="gone"):
        push(claim(resources=[{}]), handle(), "gone")


def test_pushing_changes_nothing_given_and_settles() -> None:
    user_claim = claim(resources=[{"template": {"l": [{"a": 1}]}}, {"template": {"n": 2}}])
    held = handle(entry("a", "x", template={"l": [{"b": 2}]}))
    before = copy.deepcopy((user_claim, held))
    once = push(user_claim, held, "a", "b")
    assert (user_claim, held) == before
    again = push(user_claim, handle(*once.resources), "a", "b")
    assert again.resources == once.resources
