"""Values that are unique: in which order objects take them, so that no two ever have the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.threescale.swapped_values import in_turn


@given(st.permutations("abcdef"), st.permutations("abcdef"))
def test_values_that_are_unique_move_one_at_a_time(before: list[str], wanted: list[str]) -> None:
    held = dict(enumerate(before))
    for id_, value in in_turn(held, dict(enumerate(wanted))):
        assert all(other == id_ or has != value for other, has in held.items())
        held[id_] = value
    assert held == dict(enumerate(wanted))


def test_a_value_that_another_keeps_is_left_out() -> None:
    assert in_turn({1: "a", 2: "b"}, {1: "b"}) == []
    assert in_turn({1: "a", 2: "b"}, {1: "B", 2: "c"}, normalized=str.lower) == [(2, "c"), (1, "B")]
