"""The fewest calls that bring mapping rules into the wanted order.

Inserting a rule moves the later rules down; deleting a rule moves the later rules up. As many rules as possible keep
their place (a longest increasing subsequence). A surplus rule is changed into a missing rule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence
from typing import Literal

from domain.model import Model


class Rule(Model):
    http_method: str
    pattern: str
    metric_id: int
    delta: int
    last: bool = False


class FoundRule(Model):
    id: int
    rule: Rule


class RuleEdit(Model):
    """A change of one rule. `position` is None if the rule keeps its place."""

    call: Literal["DELETE", "PUT", "POST"]
    id: int | None = None
    rule: Rule | None = None
    position: int | None = None


def edits(wanted: Sequence[Rule], found: Sequence[FoundRule]) -> tuple[RuleEdit, ...]:
    """Return the edits in the order in which they are made. `found` is sorted by position."""
    pairs = _pair(wanted, found)
    reused = set(pairs.values())
    deletions = [RuleEdit(call="DELETE", id=each.id) for index, each in enumerate(found) if index not in reused]
    in_place = _in_order([(place, pairs[place]) for place in sorted(pairs)])
    return (*deletions, *_placed(wanted, found, pairs, in_place))


def _placed(
    wanted: Sequence[Rule], found: Sequence[FoundRule], pairs: dict[int, int], in_place: set[int]
) -> Iterator[RuleEdit]:
    # The rules after each call, as indexes of `wanted`.
    current = sorted(pairs, key=lambda place: pairs[place])
    for place, rule in enumerate(wanted):
        before = found[pairs[place]] if place in pairs else None
        if place in in_place:
            assert before is not None  # noqa: S101 - a rule that keeps its place was found
            if before.rule != rule:
                yield RuleEdit(call="PUT", id=before.id, rule=rule)
            continue
        if before is not None:
            current.remove(place)
        index = current.index(place - 1) + 1 if place else 0
        current.insert(index, place)
        if before is not None:
            yield RuleEdit(call="PUT", id=before.id, rule=rule, position=index + 1)
        else:
            yield RuleEdit(call="POST", rule=rule, position=index + 1)


def _pair(wanted: Sequence[Rule], found: Sequence[FoundRule]) -> dict[int, int]:
    pairs: dict[int, int] = {}
    for comparable in (_itself, _requests, _anything):
        free: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        taken = set(pairs.values())
        for index, each in enumerate(found):
            if index not in taken:
                free[comparable(each.rule)].append(index)
        for place, rule in enumerate(wanted):
            if place not in pairs and free[comparable(rule)]:
                pairs[place] = free[comparable(rule)].popleft()
    return pairs


def _itself(rule: Rule) -> Hashable:
    return (rule.http_method, rule.pattern, rule.metric_id, rule.delta, rule.last)


def _requests(rule: Rule) -> Hashable:
    return (rule.http_method, rule.pattern)


def _anything(_: Rule) -> Hashable:
    return None


def _in_order(pairs: Sequence[tuple[int, int]]) -> set[int]:
    ends: list[int] = []  # the smallest last index of a run of each length
    runs: list[int] = []  # the length, less one, of the longest run that ends with each pair
    for _, index in pairs:
        length = bisect_left(ends, index)
        ends[length : length + 1] = [index]
        runs.append(length)
    in_place: set[int] = set()
    wanted = len(ends) - 1
    for (place, _), length in zip(reversed(pairs), reversed(runs), strict=True):
        if length == wanted:
            in_place.add(place)
            wanted -= 1
    return in_place
