"""A handle's resource list over time: what is yielded again, and what is never moved or taken."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from claim_scenes import config_map, entry
from hypothesis import given
from hypothesis import strategies as st

from domain.claims.resource_entries import paired, recomputed


def at(provider_name: str, name: str = "", data: str = "1", **more: Any) -> dict[str, Any]:
    return entry(provider_name, name, template=config_map(data=data), **more)


REFERENCE = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}


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
