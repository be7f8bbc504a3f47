"""Deep merges as templates, defaults and overrides need them; and which template is part of another."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from domain.claims.deep_merge import DEEPEST, TooDeep, contains, merge, same, schema_defaults

X: JsonValue = {"x": {"default": 1}}
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-1, 1) | st.text("ab", max_size=2)
DOCUMENTS: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("target", "update", "winning", "yielding"),
    [
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, {"a": 1}, id="a leaf is overwritten or stays"),
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, {"a": 1, "b": 2}, id="a missing key is copied"),
        pytest.param({"a": None}, {"a": 2}, {"a": 2}, {"a": None}, id="a null is a leaf that exists"),
        pytest.param({"a": 1}, {"a": None}, {"a": None}, {"a": 1}, id="null overwrites and removes nothing"),
        pytest.param(
            {"a": {"x": 1, "y": 2}},
            {"a": {"y": 3, "z": 4}},
            {"a": {"x": 1, "y": 3, "z": 4}},
            {"a": {"x": 1, "y": 2, "z": 4}},
            id="mappings recurse",
        ),
        pytest.param([1, 2, 3], [9], [9, 2, 3], [1, 2, 3], id="lists go by index and never shrink"),
        pytest.param([{"x": 1}], [{"y": 2}], [{"x": 1, "y": 2}], [{"x": 1, "y": 2}], id="mappings in lists recurse"),
        pytest.param([[1], 2], [[3, 4]], [[3, 4], 2], [[1, 4], 2], id="lists in lists recurse"),
        pytest.param(["a"], ["x", "y", "z"], ["x", "y", "z"], ["a", "y", "z"], id="D9: each surplus element once"),
        pytest.param({"a": [1]}, {"a": {"x": 1}}, {"a": {"x": 1}}, {"a": [1]}, id="another type is a leaf"),
        pytest.param({"a": {"x": 1}}, {"a": "s"}, {"a": "s"}, {"a": {"x": 1}}, id="a scalar over a mapping"),
        pytest.param({}, {}, {}, {}, id="nothing and nothing"),
    ],
)
def test_merging_with_and_without_overwrite(
    target: JsonValue, update: JsonValue, winning: JsonValue, yielding: JsonValue
) -> None:
    assert merge(target, update, overwrite=True) == winning
    assert merge(target, update, overwrite=False) == yielding


def test_keys_keep_the_targets_order_and_new_ones_follow() -> None:
    assert list(merge({"b": 1, "a": 2}, {"c": 3, "a": 4}, overwrite=True)) == ["b", "a", "c"]


def _scribble(document: JsonValue) -> None:
    """Change every mapping and list in place."""
    for below in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        _scribble(below)
    if isinstance(document, dict):
        document["scribbled"] = True
    elif isinstance(document, list):
        document.append("scribbled")


@given(DOCUMENTS, DOCUMENTS, st.booleans())
def test_the_result_shares_nothing_with_the_arguments(target: JsonValue, update: JsonValue, overwrite: bool) -> None:
    before = deepcopy((target, update))
    _scribble(merge(target, update, overwrite=overwrite))
    assert (target, update) == before


@given(DOCUMENTS, DOCUMENTS)
def test_merging_again_changes_nothing(target: JsonValue, update: JsonValue) -> None:
    for overwrite in (True, False):
        once = merge(target, update, overwrite=overwrite)
        assert same(merge(once, update, overwrite=overwrite), once)


@given(DOCUMENTS, DOCUMENTS)
def test_a_part_is_contained_exactly_when_merging_it_changes_nothing(whole: JsonValue, part: JsonValue) -> None:
    assert contains(whole, part) == same(merge(whole, part, overwrite=True), whole)
    assert contains(merge(whole, part, overwrite=True), part)


@pytest.mark.parametrize(
    ("whole", "part", "contained"),
    [
        ({"kind": "A", "spec": {"x": 1}}, {"kind": "A"}, True),
        ({"kind": "A"}, {"kind": "B"}, False),
        ({"kind": "A"}, {"kind": "A", "spec": {}}, False),
        ({"l": [{"a": 1, "b": 2}, 3]}, {"l": [{"b": 2}]}, True),
        ({"l": [1]}, {"l": [1, 2]}, False),
        ({"l": [1, 2]}, {"l": [2]}, False),
        ({"l": [1]}, {"l": []}, True),
        ({"x": 1}, {"x": True}, False),
        ({"x": 1}, {"x": 1.0}, True),
        ({"x": 0}, {"x": False}, False),
    ],
)
def test_a_template_contains_what_merging_would_not_change(whole: JsonValue, part: JsonValue, contained: bool) -> None:
    assert contains(whole, part) is contained


@pytest.mark.parametrize(
    ("schema", "defaults"),
    [
        ({"properties": {"a": {"default": 1}, "b": {"type": "string"}}}, {"a": 1}),
        ({"properties": {"a": {"default": None}}}, {"a": None}),
        ({"properties": {"o": {"type": "object", "properties": {"x": {"default": 1}}}}}, {"o": {"x": 1}}),
        ({"properties": {"o": {"type": "object", "default": {"y": 2}, "properties": X}}}, {"o": {"x": 1}}),
        ({"properties": {"o": {"type": "object", "default": {"y": 2}, "properties": {"x": {}}}}}, {"o": {"y": 2}}),
        ({"properties": {"o": {"type": "object", "properties": {"x": {}}}}}, {}),
        ({"properties": {"o": {"properties": {"x": {"default": 1}}}}}, {}),
        ({"properties": {"l": {"type": "array", "items": {"properties": {"x": {"default": 1}}}}}}, {}),
        ({"allOf": [{"properties": {"a": {"default": 1}}}]}, {}),
        ({"default": {"a": 1}}, {}),
        ({"properties": {"a": "nonsense", "b": {"default": 2}}}, {"b": 2}),
        ({"properties": ["a"]}, {}),
        ({}, {}),
        (None, {}),
    ],
)
def test_defaults_of_a_schema(schema: JsonValue, defaults: JsonValue) -> None:
    assert schema_defaults(schema) == defaults


def test_excessive_nesting_is_refused_and_deep_nesting_is_not() -> None:
    def nested(levels: int) -> JsonValue:
        document: JsonValue = 1
        for _ in range(levels):
            document = {"a": [document]}
        return document

    deep, bottomless = nested(DEEPEST // 2 - 1), nested(5_000)
    assert contains(merge(deep, deep, overwrite=True), deep)
    with pytest.raises(TooDeep, match="nested deeper than"):
        merge(bottomless, {}, overwrite=True)
    with pytest.raises(TooDeep):
        merge({}, {"a": bottomless}, overwrite=False)
    with pytest.raises(TooDeep):
        contains(bottomless, bottomless)
    with pytest.raises(TooDeep):
        same(bottomless, nested(5_000))
