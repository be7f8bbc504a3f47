"""A handle's resource list over time: what is yielded again, what claims change, and what is never moved or taken."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from claim_scenes import asking, claim, config_map, entry, handle, provider, reference, scene
from hypothesis import given
from hypothesis import strategies as st

from domain.claims.provider_resources import ProviderMissing
from domain.claims.resource_entries import Pushed, paired, pushed, recomputed


def at(provider_name: str, name: str = "", data: str = "1", **more: Any) -> dict[str, Any]:
    return entry(provider_name, name, template=config_map(data=data), **more)


REFERENCE = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}


# What a provider yields again


@pytest.mark.parametrize(
    ("entries", "yielded", "result"),
    [
        ([], [at("a", "a"), at("b", "b")], [at("a", "a"), at("b", "b")]),
        ([at("a", "a")], [at("a", "a", "2")], [at("a", "a", "2")]),
        ([at("a", "a", reference=REFERENCE)], [at("a", "a", "2")], [at("a", "a", "2", reference=REFERENCE)]),
        ([at("top", "top")], [at("link", "link"), at("top", "top", "2")], [at("top", "top", "2"), at("link", "link")]),
        ([at("link", "link"), at("top", "top")], [at("top", "top", "2")], [at("link", "link"), at("top", "top", "2")]),
        ([at("a", "x")], [at("b", "x")], [at("a", "x"), at("b", "x")]),
        ([at("a", "x")], [at("a", "y")], [at("a", "x"), at("a", "y")]),
        ([at("a", "y"), at("a", "x")], [at("a", "x", "2"), at("a", "y", "3")], [at("a", "y", "3"), at("a", "x", "2")]),
        ([at("a"), at("b")], [at("b", "b", "2"), at("a", "a", "3")], [at("a", "a", "3"), at("b", "b", "2")]),
        ([at("a"), at("a", "x")], [at("a", "x", "2"), at("a", "y", "3")], [at("a", "y", "3"), at("a", "x", "2")]),
        ([at("a"), at("a", "x")], [at("a", "x", "2"), at("a", "x", "3")], [at("a", "x", "2"), at("a", "x", "3")]),
    ],
    ids=[
        "first list",
        "template whole",
        "the reference stays",
        "a link that comes is appended",
        "a link that goes stays",
        "another provider of that name",
        "another name of that provider",
        "order does not matter",
        "entries of older releases are named",
        "names before namelessness",
        "one name for two, in order",
    ],
)
def test_entries_meet_by_provider_and_name(entries: Any, yielded: Any, result: Any) -> None:
    assert recomputed(entries, yielded) == result


@pytest.mark.parametrize(
    ("entries", "yielded", "result"),
    [
        ([at("a", "x")], [at("a", "y", "2")], [at("a", "x", "2")]),
        (
            [at("b", "x"), at("a", "x")],
            [at("b", "y"), at("a", "y", "2")],
            [at("b", "x"), at("a", "x", "2"), at("b", "y")],
        ),
        ([at("a", "x")], [at("a", "x", "2"), at("a", "y")], [at("a", "x", "2"), at("a", "y")]),
    ],
    ids=["the only one", "a link's new name is another link", "one of that name is met already"],
)
def test_a_providers_own_resource_is_the_same_under_another_name(entries: Any, yielded: Any, result: Any) -> None:
    assert recomputed(entries, yielded, own="a") == result


def test_a_template_is_replaced_whole() -> None:
    old = entry("a", "a", template={"kind": "ConfigMap", "gone": 1})
    assert recomputed([old], [entry("a", "a", template={"kind": "ConfigMap"})])[0]["template"] == {"kind": "ConfigMap"}


def test_a_resource_without_a_template_leaves_the_entrys() -> None:
    assert recomputed([at("a", "a")], [entry("a", "a")]) == [at("a", "a")]


RESOURCES = st.lists(
    st.builds(at, st.sampled_from("ab"), st.sampled_from(["", "x", "y"]), st.sampled_from("12")), max_size=5
)


@given(RESOURCES, RESOURCES)
def test_entries_are_never_moved_removed_or_given_to_another_provider(entries: Any, yielded: Any) -> None:
    before = copy.deepcopy((entries, yielded))
    result = recomputed(entries, yielded)
    assert (entries, yielded) == before
    assert len(result) >= len(entries)
    for old, new in zip(entries, result, strict=False):
        assert new["provider"] == old["provider"]
        assert new.get("name") == old.get("name") or "name" not in old


OWN = st.sampled_from(["", "a"])


@given(RESOURCES, RESOURCES, OWN)
def test_recomputing_again_changes_nothing(entries: Any, yielded: Any, own: str) -> None:
    once = recomputed(entries, yielded, own)
    assert recomputed(once, yielded, own) == once


@given(RESOURCES, RESOURCES, OWN)
def test_no_entry_is_paired_with_two_resources(entries: Any, yielded: Any, own: str) -> None:
    taken = [index for index in paired(entries, yielded, own) if index is not None]
    assert len(taken) == len(set(taken))


# What claims change


def push(user_claim: dict[str, Any], held: dict[str, Any], *names: str) -> Pushed:
    return pushed(scene(*[provider(name) for name in ("a", "b")], claim=user_claim, handle=held), names)


def test_a_claim_in_provider_mode_hands_over_its_effective_values() -> None:
    held = handle(at("a", "a"), provider={"name": "a", "parameterValues": {"p": 1}})
    found = push(asking({"p": 2}, {"p": 2, "default": 3}, name="a"), held)
    assert found == Pushed(provider={"name": "a", "parameterValues": {"p": 2, "default": 3}}, resources=(at("a", "a"),))


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
