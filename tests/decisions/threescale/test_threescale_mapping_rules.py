"""Mapping rules are brought into their order with the fewest calls, whatever was there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.threescale.mapping_rules import FoundRule, Rule, RuleEdit, edits


def rule(name: str, *, method: str = "GET", delta: int = 1) -> Rule:
    return Rule(http_method=method, pattern=f"/{name}", metric_id=1, delta=delta)


def there(*rules: Rule) -> tuple[FoundRule, ...]:
    return tuple(FoundRule(id=number, rule=each) for number, each in enumerate(rules, 100))


def carried_out(found: Sequence[FoundRule], calls: Sequence[RuleEdit]) -> list[Rule]:
    """The list as 3scale has it after the calls: insertion shifts, deletion closes the gap."""
    rules = [(each.id, each.rule) for each in found]
    for number, call in enumerate(calls):
        index = next((place for place, (id_, _) in enumerate(rules) if id_ == call.id), None)
        if call.call == "POST":
            assert call.rule is not None
            assert call.position is not None
            assert 1 <= call.position <= len(rules) + 1
            rules.insert(call.position - 1, (1000 + number, call.rule))
            continue
        assert index is not None
        id_, _ = rules.pop(index)
        if call.call == "PUT":
            assert call.rule is not None
            where = index if call.position is None else call.position - 1
            assert 0 <= where <= len(rules)
            rules.insert(where, (id_, call.rule))
    return [each for _, each in rules]


def calls(wanted: Sequence[Rule], found: Sequence[FoundRule]) -> list[str]:
    made = edits(wanted, found)
    assert carried_out(found, made) == list(wanted)
    return [each.call for each in made]


TEN = tuple(rule(name) for name in "abcdefghij")


def test_rules_in_order_ask_for_nothing() -> None:
    assert calls(TEN, there(*TEN)) == []


def test_a_rule_inserted_first_among_ten_is_one_call() -> None:
    wanted = (rule("new"), *TEN)

    assert edits(wanted, there(*TEN)) == (RuleEdit(call="POST", rule=rule("new"), position=1),)
    assert calls(wanted, there(*TEN)) == ["POST"]


@pytest.mark.parametrize("place", [0, 4, 10])
def test_a_rule_inserted_anywhere_is_one_call(place: int) -> None:
    assert calls((*TEN[:place], rule("new"), *TEN[place:]), there(*TEN)) == ["POST"]


@pytest.mark.parametrize("place", [0, 4, 9])
def test_a_rule_taken_out_is_one_call(place: int) -> None:
    assert calls(TEN[:place] + TEN[place + 1 :], there(*TEN)) == ["DELETE"]


def test_a_rule_moved_is_one_call() -> None:
    assert calls((*TEN[1:], TEN[0]), there(*TEN)) == ["PUT"]
    assert calls((TEN[9], *TEN[:9]), there(*TEN)) == ["PUT"]


def test_a_rule_changed_stays_where_it_is() -> None:
    changed = (*TEN[:3], rule("d", delta=5), *TEN[4:])
    (made,) = edits(changed, there(*TEN))

    assert (made.call, made.id, made.position) == ("PUT", 103, None)


def test_a_rule_for_other_requests_takes_the_place_of_the_old_one() -> None:
    assert calls((*TEN[:3], rule("z", method="POST"), *TEN[4:]), there(*TEN)) == ["PUT"]


def test_a_reversed_list_moves_all_but_one() -> None:
    assert calls(tuple(reversed(TEN)), there(*TEN)) == ["PUT"] * 9


def test_the_rule_of_a_new_product_is_reused_or_deleted() -> None:
    default = there(rule(""))

    assert calls((rule("a"),), default) == ["PUT"]
    assert calls((), default) == ["DELETE"]
    assert calls(TEN, default) == ["PUT"] + ["POST"] * 9


names = st.builds(
    rule, st.sampled_from("abcd"), method=st.sampled_from(["GET", "POST"]), delta=st.integers(min_value=1, max_value=2)
)


@given(st.lists(names, max_size=8), st.lists(names, max_size=8))
def test_any_list_becomes_any_other_and_then_asks_for_nothing(wanted: list[Rule], found: list[Rule]) -> None:
    made = edits(wanted, there(*found))

    assert carried_out(there(*found), made) == wanted
    assert len(made) <= max(len(wanted), len(found))
    assert edits(wanted, there(*wanted)) == ()


@given(st.permutations(TEN), st.integers(min_value=0, max_value=9))
def test_as_many_rules_as_possible_stay_where_they_are(wanted: list[Rule], place: int) -> None:
    moved = [*wanted[:place], *wanted[place + 1 :], wanted[place]]

    assert len(edits(moved, there(*wanted))) <= 1
