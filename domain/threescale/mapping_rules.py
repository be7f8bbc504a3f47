"""The fewest calls that bring mapping rules into the wanted order.

Inserting a rule moves the later rules down; deleting a rule moves the later rules up. As many rules as possible keep
their place (a longest increasing subsequence). A surplus rule is changed into a missing rule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Literal

from domain.model import Model
from domain.schema import Json
from domain.threescale.calls import Resource, Write
from domain.threescale.methods_and_metrics import Owner
from domain.threescale.remote_state import FoundMappingRule, FoundMetric
from domain.threescale.resources.shared import MappingRule


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


def without(obstacles: Iterable[Write], rules: Iterable[MappingRule], ids: Mapping[str, int]) -> list[MappingRule]:
    """The rules whose metric exists and is not among those that `obstacles` delete."""
    names = {each.about for each in obstacles}
    return [each for each in rules if each.metric_method_ref in ids and each.metric_method_ref not in names]


def order(
    owner: Owner,
    wanted: Sequence[MappingRule],
    metrics: Sequence[FoundMetric],
    found: Sequence[FoundMappingRule],
    refused: Iterable[str] = (),
) -> tuple[Write, ...] | None:
    """The calls that create and order the mapping rules; None if a rule's metric does not exist yet.

    Each call depends on the earlier calls, so the list ends before the first call whose slot is in `refused`.
    """
    ids = owner.ids(metrics)
    if any(rule.metric_method_ref not in ids for rule in wanted):
        return None
    there = [FoundRule(id=each.id, rule=_as_rule(each)) for each in sorted(found, key=_place)]
    made = edits([_rule(each, ids) for each in wanted], there)
    held = set(refused)
    return tuple(takewhile(lambda write: write.slot not in held, (_edit(owner, each) for each in made)))


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


def _place(rule: FoundMappingRule) -> tuple[int, int]:
    return rule.position, rule.id


def _rule(wanted: MappingRule, ids: Mapping[str, int]) -> Rule:
    return Rule(
        http_method=wanted.http_method,
        pattern=wanted.pattern,
        metric_id=ids[wanted.metric_method_ref],
        delta=wanted.increment,
        last=bool(wanted.last),
    )


def _as_rule(found: FoundMappingRule) -> Rule:
    return Rule.model_validate(found.model_dump())


def _edit(owner: Owner, edit: RuleEdit) -> Write:
    fields: dict[str, Json] = edit.rule.model_dump() if edit.rule else {}
    if edit.position is not None:
        fields["position"] = edit.position
    path = f"{owner.rules_path}/{edit.id}" if edit.id else owner.rules_path
    about = f"{edit.rule.http_method} {edit.rule.pattern}" if edit.rule else ""
    # Two rules may match the same requests: the position identifies a rule's creation, also after a lost response.
    key = dict(fields) if edit.call == "POST" else {}
    about += f" at {edit.position}" if key else ""
    return Write(
        resource=Resource.RULE, method=edit.call, path=path, id=edit.id or 0, fields=fields, key=key, about=about
    )
