"""Differences as JSON Patch in the fixed order, and the filters between a definition and the live object."""

from __future__ import annotations

from copy import deepcopy

import jsonpatch
import pytest
from claim_domain import NAMES
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from domain.claims.deep_merge import TooDeep, same
from domain.claims.update_filters import (
    LONGEST_PATH,
    LONGEST_PATTERN,
    BadPattern,
    Operation,
    UpdateFilter,
    differences,
    matches,
    update,
    update_filters,
)

SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.text("a~/", max_size=2)
DOCUMENTS: st.SearchStrategy[JsonValue] = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text("ab~/01", max_size=2), below, max_size=4),
    max_leaves=12,
)
OWN = f"{NAMES.domain}/resource-handle-name"
OWN_PATH = NAMES.own_annotations_path
OWN_PATH = f"/metadata/annotations/{NAMES.domain}~1resource-handle-name"


def lines(old: JsonValue, new: JsonValue) -> list[str]:
    return [f"{op.op} {op.path}" for op in differences(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["replace /a"]),
        (
            {"a": 1, "b": 2, "c": 3},
            {"d": 4, "c": 5, "e": 6, "a": 7},
            ["replace /a", "remove /b", "replace /c", "add /d", "add /e"],
        ),
        (["a", "c"], ["b"], ["replace /0", "remove /1"]),
        ([1, 2, 3, 4], [1], ["remove /3", "remove /2", "remove /1"]),
        ([1], [1, 2, 3], ["add /1", "add /2"]),
        ([1, 2, 3], [3, 1, 2], ["replace /0", "replace /1", "replace /2"]),
        ([{"a": 1}, {"b": 1}], [{"a": 2}, {"c": 1}], ["replace /0/a", "remove /1/b", "add /1/c"]),
        ({"a": {"b": {}}}, {"a": {"b": {"c": {"d": 1}}}}, ["add /a/b/c"]),
        ({"a": [1]}, {"a": {"0": 1}}, ["replace /a"]),
        ({"a": {"x": 1}}, {"a": "s"}, ["replace /a"]),
        ({"old": 1}, {"new": 1}, ["remove /old", "add /new"]),
        ({"a/b": 1, "c~d": 1}, {"a/b": 2, "c~d": 2}, ["replace /a~1b", "replace /c~0d"]),
        ({"~1": 1}, {"~1": 2}, ["replace /~01"]),
        ({"a": None}, {}, ["remove /a"]),
        ({"a": None}, {"a": 0}, ["replace /a"]),
        ({"a": 1}, {"a": True}, ["replace /a"]),
        ({"a": 1}, {"a": 1.0}, []),
        ({}, [], ["replace "]),
    ],
)
def test_the_operations_and_their_order(old: JsonValue, new: JsonValue, expected: list[str]) -> None:
    assert lines(old, new) == expected


def test_values_are_left_unchanged() -> None:
    (operation,) = differences({}, {"a~/": {"b~/": "c~/"}})
    assert operation.as_json() == {"op": "add", "path": "/a~0~1", "value": {"b~/": "c~/"}}
    assert Operation("remove", "/a").as_json() == {"op": "remove", "path": "/a"}
    assert Operation("replace", "/a").as_json() == {"op": "replace", "path": "/a", "value": None}


@given(DOCUMENTS, DOCUMENTS)
def test_applying_the_difference_gives_the_new_document(old: JsonValue, new: JsonValue) -> None:
    before = deepcopy(old)
    patch = list(differences(old, new))
    assert same(jsonpatch.apply_patch(old, [each.as_json() for each in patch]), new)
    assert same(old, before)
    assert (patch == []) == same(old, new)


# --- what reaches a live object ---

LIVE: dict[str, JsonValue] = {
    "metadata": {"name": "x", "uid": "u", "annotations": {OWN: "guid-old", "theirs": "1"}, "labels": {"l": "1"}},
    "spec": {"size": 1, "set-by-others": True, "list": [1, 2]},
    "status": {"phase": "Up"},
}
DEFINITION: dict[str, JsonValue] = {
    "metadata": {"name": "x", "annotations": {OWN: "guid-new"}},
    "spec": {"size": 2, "new": {"leaf": 1}, "list": [1]},
}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        pytest.param([], [f"replace {OWN_PATH}"], id="without filters only our annotations are updated"),
        pytest.param(
            [UpdateFilter("/spec/size")],
            [f"replace {OWN_PATH}", "replace /spec/size"],
            id="the expression must match the whole path",
        ),
        pytest.param(
            [UpdateFilter("/spec/si"), UpdateFilter("spec/size")], [f"replace {OWN_PATH}"], id="no part of it"
        ),
        pytest.param([UpdateFilter("/x|/spec/size")], [f"replace {OWN_PATH}", "replace /spec/size"], id="alternatives"),
        pytest.param([UpdateFilter("/spec/new/leaf")], [f"replace {OWN_PATH}"], id="a leaf is not its new subtree"),
        pytest.param(
            [UpdateFilter("/spec/.*")],
            [
                f"replace {OWN_PATH}",
                "replace /spec/size",
                "remove /spec/set-by-others",
                "remove /spec/list/1",
                "add /spec/new",
            ],
            id="D15: with all operations what others set is removed",
        ),
        pytest.param(
            [UpdateFilter("/spec/.*", ("add", "replace"))],
            [f"replace {OWN_PATH}", "replace /spec/size", "add /spec/new"],
            id="only allowed operations",
        ),
        pytest.param(
            [UpdateFilter("/spec/size", ("add",)), UpdateFilter("/spec/.*", ("replace",))],
            [f"replace {OWN_PATH}"],
            id="the first filter that matches decides",
        ),
        pytest.param([UpdateFilter("/metadata/.*", ("add",))], [], id="even over our annotations"),
        pytest.param([UpdateFilter("/spec/new", ())], [f"replace {OWN_PATH}"], id="a filter may allow nothing"),
    ],
)
def test_filters_decide_what_is_patched(filters: list[UpdateFilter], expected: list[str]) -> None:
    assert [f"{op.op} {op.path}" for op in update(LIVE, DEFINITION, filters, own_path=OWN_PATH)] == expected


def test_an_adopted_object_without_annotations_gets_ours_and_only_ours() -> None:
    live: dict[str, JsonValue] = {"metadata": {"name": "x"}}
    definition: dict[str, JsonValue] = {"metadata": {"name": "x", "annotations": {OWN: "guid-new", "wanted": "1"}}}
    assert update(live, definition, (), own_path=OWN_PATH) == (
        Operation("add", "/metadata/annotations", {OWN: "guid-new"}),
    )
    everything = (UpdateFilter("/metadata/annotations"),)
    assert update(live, definition, everything, own_path=OWN_PATH) == (
        Operation("add", "/metadata/annotations", {OWN: "guid-new", "wanted": "1"}),
    )
    assert update(live, {"metadata": {"annotations": {"wanted": "1"}}}, (), own_path=OWN_PATH) == ()


def test_filters_are_read_from_a_provider_and_allow_everything_by_default() -> None:
    spec: JsonValue = [{"pathMatch": "/a"}, {"pathMatch": "/b", "allowedOps": ["add"]}, {"allowedOps": []}, "nonsense"]
    assert update_filters(spec) == (
        UpdateFilter("/a", ("add", "remove", "replace")),
        UpdateFilter("/b", ("add",)),
    )
    assert update_filters(None) == ()


# --- expressions of administrators ---


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "*", "a{2,1}", "(?P<n>a)(?P<n>b", r"\p{Nonsense}", "a" * (LONGEST_PATTERN + 1)]
)
def test_an_expression_that_cannot_be_compiled_is_quoted_with_the_reason(pattern: str) -> None:
    with pytest.raises(BadPattern) as caught:
        matches(pattern, "/spec")
    assert repr(pattern[:100])[:-1] in str(caught.value)
    assert caught.value.reason
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("pattern", ["(?R)", "(?:a?){500}a{500}"])
def test_an_expression_that_never_ends_is_stopped(pattern: str) -> None:
    with pytest.raises(BadPattern, match="takes more than"):  # without the limit it would not come back
        matches(pattern, "a" * 600)


def test_a_path_beyond_reason_is_not_tried() -> None:
    with pytest.raises(BadPattern, match="characters"):
        matches(".*", "/" + "a" * LONGEST_PATH)


def nested(levels: int) -> JsonValue:
    document: JsonValue = 1
    for _ in range(levels):
        document = [document]
    return document


def test_documents_beyond_reason_are_refused() -> None:
    with pytest.raises(TooDeep):
        list(differences(nested(5_000), nested(5_001)))
