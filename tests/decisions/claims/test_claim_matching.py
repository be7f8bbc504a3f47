"""Which free handle a claim takes: filters, order, and the index behind it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from claim_domain import NAMES
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from domain.claims.deep_merge import TooDeep
from domain.claims.evaluator_interface import WantedEntry
from domain.claims.handle_matching import (
    FreeHandle,
    FreeHandles,
    HeldResource,
    Wanted,
    free_handle,
    tolerated_differences,
)
from domain.claims.json_objects import JsonObject
from domain.claims.update_filters import BadPattern, differences
from domain.control_annotations import PAUSED
from domain.resource import timestamp

NOW = datetime(2025, 1, 31, 12, 0, 0, tzinfo=UTC)
BORN = NOW - timedelta(days=1)
SMALL: JsonObject = {"kind": "Thing", "spec": {"size": 1}}
LARGE: JsonObject = {"kind": "Thing", "spec": {"size": 2}}
MORE: JsonObject = {"kind": "Thing", "spec": {"size": 1, "colour": "red"}, "metadata": {"labels": {"a": "b"}}}


def held(template: JsonObject = SMALL, provider: str = "things", name: str = "thing") -> HeldResource:
    return HeldResource(provider, name, template)


def wanted(template: JsonObject = SMALL, provider: str = "things", name: str = "thing", *ignore: str) -> WantedEntry:
    return WantedEntry(provider=provider, name=name, template=template, match_ignore=ignore)


def handle(name: str, *resources: HeldResource, **fields: Any) -> FreeHandle:
    known = {"created": BORN, "healthy": True, "ready": True, **fields}
    return FreeHandle(name, resources or (held(),), **known)


def chosen(handles: Sequence[FreeHandle], *resources: WantedEntry, **fields: str) -> list[str]:
    wanted_handle = Wanted(resources or (wanted(),), **fields)
    return [candidate.name for candidate in FreeHandles(handles).candidates(wanted_handle, NOW)]


# --- which handles are candidates ---


@pytest.mark.parametrize(
    ("candidate", "requested", "taken"),
    [
        pytest.param(handle("h"), [wanted()], True, id="the same"),
        pytest.param(handle("h", held(MORE)), [wanted()], True, id="extra fields are fine"),
        pytest.param(handle("h"), [wanted(MORE)], False, id="missing fields are not"),
        pytest.param(handle("h", held(LARGE)), [wanted()], False, id="another value is not tolerated"),
        pytest.param(
            handle("h", held(LARGE)), [wanted(SMALL, "things", "thing", "/spec/size")], True, id="unless ignored"
        ),
        pytest.param(
            handle("h", held(LARGE)), [wanted(SMALL, "things", "thing", "/spec")], False, id="as a whole path"
        ),
        pytest.param(handle("h"), [wanted(MORE, "things", "thing", "/x", "/spec/.*", "/metadata")], True, id="by any"),
        pytest.param(handle("h"), [wanted(MORE, "things", "thing", "/spec/.*")], False, id="each of them"),
        pytest.param(handle("h"), [wanted({})], True, id="a claim without template takes anything"),
        pytest.param(handle("h"), [wanted(provider="others")], False, id="another provider"),
        pytest.param(handle("h", held(), held()), [wanted()], False, id="more resources than asked for"),
        pytest.param(handle("h"), [wanted(), wanted()], True, id="fewer are extended"),
        pytest.param(handle("h", held(provider="b")), [wanted(), wanted(provider="b")], False, id="compared by index"),
        pytest.param(handle("h", held(name="other")), [wanted()], True, id="names may differ"),
        pytest.param(handle("h", healthy=False), [wanted()], False, id="unhealthy"),
        pytest.param(handle("h", healthy=None, ready=None), [wanted()], True, id="unknown health"),
        pytest.param(handle("h", ready=False), [wanted()], True, id="healthy and not ready"),
        pytest.param(handle("h", end=NOW + timedelta(seconds=119)), [wanted()], False, id="D2: ends within 120 s"),
        pytest.param(handle("h", end=NOW + timedelta(seconds=120)), [wanted()], True, id="D2: ends later"),
        pytest.param(handle("h", end=NOW - timedelta(days=1)), [wanted()], False, id="D2: has ended"),
    ],
)
def test_a_candidate_differs_only_where_it_is_tolerated(
    candidate: FreeHandle, requested: list[WantedEntry], taken: bool
) -> None:
    assert chosen([candidate], *requested) == (["h"] if taken else [])


def test_a_claim_for_a_pool_takes_that_pools_handles_only() -> None:
    handles = [handle("by-hand"), handle("of-a", pool="a"), handle("of-b", pool="b")]
    assert chosen(handles, pool="b") == ["of-b"]
    assert chosen(handles, pool="c") == []
    assert sorted(chosen(handles)) == ["by-hand", "of-a", "of-b"]


def test_a_handle_without_resources_serves_claims_of_its_own_provider_only() -> None:
    handles = [
        FreeHandle("bare", (), BORN),
        FreeHandle("ours", (), BORN, provider="top"),
        FreeHandle("no", (), BORN, provider="x"),
    ]
    assert chosen(handles, provider="top") == ["bare", "ours"]
    assert chosen(handles) == ["bare"]


def test_a_handle_with_resources_is_taken_whatever_its_own_provider() -> None:
    assert chosen([handle("h", provider="top")]) == ["h"]


# --- the order of candidates ---

ORDERED = [
    handle("exact", ready=True, preference_score=1, created=BORN),
    handle("less-preferred", preference_score=0.5),
    handle("older", created=BORN - timedelta(days=2)),
    handle("alpha"),
    handle("beta"),
    handle("not-ready-preferred", ready=False, preference_score=9),
    handle("readiness-unknown-preferred", ready=None, preference_score=8),
    handle("not-ready-old", ready=False, created=BORN - timedelta(days=5)),
    handle("readiness-unknown-young", ready=None, created=BORN + timedelta(hours=1)),
    handle("health-unknown", healthy=None, preference_score=9),
    handle("one-difference", held({"kind": "Thing", "spec": {"size": 1}, "a": 1}), held({"x": 2}, "b", "b")),
    handle("two-differences", held({"kind": "Thing", "spec": {"size": 9}}), held({"x": 2}, "b", "b")),
    handle("name-differs", held(name="other"), held({"x": 1}, "b", "b")),
    handle("one-missing", preference_score=99),
]


def test_candidates_are_ordered_by_every_step_of_the_score() -> None:
    same = [h for h in ORDERED if h.name not in {"one-difference", "two-differences", "name-differs", "one-missing"}]
    expected = [h.name for h in same]
    assert chosen(same) == expected
    assert chosen(same[::-1]) == expected


def test_missing_resources_weigh_more_than_names_and_names_more_than_differences() -> None:
    few = [h for h in ORDERED if h.name in {"one-difference", "two-differences", "name-differs", "one-missing"}]
    requested = (wanted(SMALL, "things", "thing", "/.*"), wanted({"x": 1}, "b", "b", "/x"))
    for order in permutations(few):
        assert chosen(order, *requested) == ["one-difference", "two-differences", "name-differs", "one-missing"]


def test_readiness_that_is_unknown_counts_as_not_ready() -> None:
    unknown, unready = handle("b", ready=None), handle("a", ready=False)
    assert chosen([unknown, unready]) == chosen([unready, unknown]) == ["a", "b"]


# --- the index ---


def brute_force(handles: Sequence[FreeHandle], wanted_handle: Wanted) -> list[str]:
    """The rules without an index."""
    found = []
    for free in handles:
        pairs = list(zip(wanted_handle.resources, free.resources, strict=False))
        if len(free.resources) > len(wanted_handle.resources) or (
            wanted_handle.pool and free.pool != wanted_handle.pool
        ):
            continue
        if any(ask.provider != has.provider for ask, has in pairs) or free.healthy is False:
            continue
        counts = [tolerated_differences(has.template, ask.template, ask.match_ignore) for ask, has in pairs]
        if None in counts:
            continue
        names = sum(ask.name != has.name for ask, has in pairs)
        total = sum(count or 0 for count in counts)
        missing = len(wanted_handle.resources) - len(free.resources)
        rank = (not free.healthy, not free.ready, -free.preference_score, free.created, free.name)
        found.append((missing, names, total, rank))
    return [score[-1][-1] for score in sorted(found)]


TEMPLATES = st.sampled_from([SMALL, LARGE, MORE, {}])
PROVIDERS, RESOURCE_NAMES = st.sampled_from(["a", "b"]), st.sampled_from(["", "n"])
HELD = st.builds(HeldResource, PROVIDERS, RESOURCE_NAMES, TEMPLATES)
WANTED = st.builds(
    WantedEntry,
    provider=PROVIDERS,
    name=RESOURCE_NAMES,
    template=TEMPLATES,
    match_ignore=st.sampled_from([(), ("/spec/.*",), ("/spec/size", "/m.*")]),
)
HANDLES = st.lists(
    st.builds(
        FreeHandle,
        st.sampled_from([f"h{i}" for i in range(12)]),
        st.lists(HELD, max_size=2).map(tuple),
        st.sampled_from([BORN, NOW]),
        st.sampled_from([True, None, False]),
        st.sampled_from([True, None, False]),
        st.sampled_from([0, 1]),
        st.sampled_from(["", "p"]),
        provider=st.just(""),
        end=st.none(),
    ),
    max_size=12,
)  # fmt: skip


@given(
    HANDLES,
    st.sets(st.sampled_from([f"h{i}" for i in range(12)])),
    st.lists(WANTED, max_size=2),
    st.sampled_from(["", "p"]),
)
def test_the_index_chooses_as_the_rules_without_it(
    handles: list[FreeHandle], gone: set[str], resources: list[WantedEntry], pool: str
) -> None:
    free, wanted_handle = FreeHandles(handles), Wanted(tuple(resources), pool)
    for name in gone:
        free.remove(name)
    left = [h for h in {h.name: h for h in handles}.values() if h.name not in gone]  # the last of a name counts
    assert [h.name for h in free.candidates(wanted_handle, NOW)] == brute_force(left, wanted_handle)
    assert len(free) == len(left)


@given(TEMPLATES, TEMPLATES)
def test_without_ignored_paths_a_template_fits_when_nothing_is_added_or_replaced(
    has: JsonObject, asks: JsonObject
) -> None:
    changed = any(operation.op != "remove" for operation in differences(has, asks))
    assert tolerated_differences(has, asks, ()) == (None if changed else 0)


def test_a_handle_can_be_added_again_and_removed_twice() -> None:
    free = FreeHandles([handle("h", ready=False)])
    free.add(handle("h", ready=True))
    assert [h.ready for h in free.candidates(Wanted((wanted(),)), NOW)] == [True]
    free.remove("h")
    free.remove("h")
    assert free.get("h") is None
    assert list(free.candidates(Wanted((wanted(),)), NOW)) == []


def test_an_answer_is_remembered_for_the_tolerance_that_it_was_given_for() -> None:
    free = FreeHandles([handle("h", held(LARGE))])
    for ignored, found in (((), []), (("/spec/size",), ["h"]), (("/spec/colour",), []), (("/spec/size",), ["h"])):
        wanted_handle = Wanted((wanted(SMALL, "things", "thing", *ignored),))
        assert [h.name for h in free.candidates(wanted_handle, NOW)] == found


def test_300_claims_find_200_distinct_handles_among_a_thousand_others() -> None:
    others = [handle(f"other-{i}", held({"kind": "Thing", "spec": {"size": 100 + i}})) for i in range(1_000)]
    free = FreeHandles([*others, *(handle(f"fit-{i}") for i in range(200))])
    taken = []
    began = time.process_time()
    for _ in range(300):
        first = next(free.candidates(Wanted((wanted(),)), NOW), None)
        if first is not None:
            free.remove(first.name)
            taken.append(first.name)
    assert len(taken) == len(set(taken)) == 200
    assert time.process_time() - began < 10  # a comparison of all with all would take far longer


# --- faults of authors ---


def test_a_bad_expression_is_reported_when_it_is_needed() -> None:
    requested = wanted(SMALL, "things", "thing", "(")
    assert chosen([handle("h")], requested) == ["h"]
    with pytest.raises(BadPattern, match="regular expression"):
        chosen([handle("h", held(LARGE))], requested)


def test_a_template_nested_beyond_reason_is_refused() -> None:
    bottomless: JsonValue = 1
    for _ in range(5_000):
        bottomless = [bottomless]
    with pytest.raises(TooDeep):
        chosen([handle("h")], wanted().model_copy(update={"template": {"a": bottomless}}))
    with pytest.raises(TooDeep):
        FreeHandles([handle("h", held({"a": bottomless}))])


# --- reading handles ---

BODY: JsonObject = {
    "metadata": {"name": "guid-abcde", "creationTimestamp": timestamp(BORN)},
    "spec": {
        "lifespan": {"end": timestamp(NOW)},
        "preferenceScore": 2.5,
        "provider": {"name": "top"},
        "resourcePool": {"name": "pool", "namespace": "operator"},
        "resources": [
            {"name": "thing", "provider": {"name": "things", "namespace": "operator"}, "template": SMALL},
            {"provider": {"name": "b"}},
        ],
    },
    "status": {"healthy": True, "ready": False},
}


def with_fields(part: str, **fields: JsonValue) -> JsonObject:
    section = BODY[part]
    assert isinstance(section, dict)
    return {**BODY, part: {**section, **fields}}


def test_a_free_handle_is_read_from_its_object() -> None:
    assert free_handle(NAMES, BODY) == FreeHandle(
        name="guid-abcde",
        resources=(HeldResource("things", "thing", SMALL), HeldResource("b")),
        created=BORN,
        healthy=True,
        ready=False,
        preference_score=2.5,
        pool="pool",
        provider="top",
        end=NOW,
    )


def test_a_hand_made_handle_needs_nothing_but_a_name() -> None:
    assert free_handle(
        NAMES, {"metadata": {"name": "guid-demo-base-7", "creationTimestamp": timestamp(BORN)}}
    ) == FreeHandle("guid-demo-base-7", (), BORN)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(with_fields("spec", resourceClaim={"name": "c", "namespace": "n"}), id="bound"),
        pytest.param(with_fields("metadata", deletionTimestamp=timestamp(NOW)), id="being deleted"),
        pytest.param(
            with_fields("metadata", labels={NAMES.ignore_label: ""}), id="ignored, whatever the label's value"
        ),
        pytest.param(with_fields("status", healthy=False), id="unhealthy"),
        pytest.param(with_fields("metadata", annotations={PAUSED: "true"}), id="paused"),
    ],
)
def test_a_handle_that_no_claim_may_take_is_not_free(body: JsonObject) -> None:
    assert free_handle(NAMES, body) is None
