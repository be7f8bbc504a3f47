"""Which lifecycles a change wakes, derived from the areas' relations (`domain/relations.py`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from pydantic import ValidationError

from domain.identity import Key, all_kinds
from domain.relations import End, Linked, News, On, Relation, Whom, by_name, kind_name, model_of
from domain.resource import KubeModel
from engine.kube.json import JsonObject
from engine.kube.reflector import Name
from starters.watch.own_writes import own_write
from starters.watch.projection import Place, Projection, Shown, Side
from starters.watch.projection_index import Index

Relations = tuple[Relation, ...]
# Whether an object of this name in a relation is known not to exist.
Missing = Callable[[Place, Hashable, Index], bool]
_Compared = tuple[int, int, Callable[[Any], bool] | None] | None


@cache
def places_of(relations: Relations, kind: str) -> tuple[tuple[Place, End], ...]:
    found: list[tuple[Place, End]] = []
    for relation in relations:
        found += [((relation, Side.REFERRER), end) for end in relation.referrers]
        if _shows(relation):
            found += [((relation, Side.REFERENT), end) for end in relation.referents]
    return tuple((place, end) for place, end in found if kind_name(end) == kind)


def _shows(relation: Relation) -> bool:
    """Whether referrers depend on more of a referent than its namespace and name."""
    return bool(relation.matters or relation.required) or relation.known_as is not by_name


def shown_by(relations: Relations, kind: str, obj: JsonObject, model: KubeModel | None) -> dict[Place, Shown]:
    reading = _reading_of(relations, kind)
    if not reading.groups:
        return {}
    try:
        model = model or reading.model.model_validate(obj)
    except ValidationError:  # an object that cannot be parsed takes part in no relation
        return {}
    values = [made_of(function(model)) for made_of, function in reading.asked]
    found: dict[Place, Shown] = {}
    for names, news, trait, places in reading.groups:
        if values[names] or news is not None:
            value, counts, looks_made = news or (None, None, None)
            hashes = values[value] if value is not None else ()
            as_made = bool(looks_made and looks_made(model))
            shown = Shown(values[names], hashes, as_made, values[trait], counts is None or bool(values[counts]))
            found.update(dict.fromkeys(places, shown))
    return found


@dataclass(frozen=True)
class _Reading:
    model: type[KubeModel]
    # Pairs of a conversion and the function whose result it converts, without duplicates.
    asked: tuple[tuple[Callable[[Any], Any], Callable[[Any], Any]], ...]
    # Per group: the indices in `asked` for the names, the compared values and the trait; then the places that share
    # these.
    groups: tuple[tuple[int, _Compared, int, tuple[Place, ...]], ...]


@cache
def _reading_of(relations: Relations, kind: str) -> _Reading:
    places = places_of(relations, kind)
    indices: dict[tuple[Callable[[Any], Any], Callable[[Any], Any]], int] = {}
    groups: dict[tuple[int, _Compared, int], list[Place]] = {}

    def at(made_of: Callable[[Any], Any], function: Callable[[Any], Any]) -> int:
        return indices.setdefault((made_of, function), len(indices))

    for place, _ in places:
        relation, side = place
        news = _news(relation, side)
        names = at(tuple, relation.by if side is Side.REFERRER else relation.known_as)
        compared = (at(_hashes, news.value), at(_as_it_is, news.counts), news.as_made) if news is not None else None
        groups.setdefault((names, compared, at(_as_it_is, relation.trait)), []).append(place)
    model = model_of(places[0][1]) if places else KubeModel
    shown = tuple((names, compared, trait, tuple(each)) for (names, compared, trait), each in groups.items())
    return _Reading(model, tuple(indices), shown)


def _as_it_is(value: Hashable) -> Hashable:
    return value


def woken(
    relations: Relations, kind: str, before: Projection | None, after: Projection | None, index: Index
) -> set[Key]:
    """The lifecycles that depend on a changed value, at the other ends of the kind's relations."""
    keys: set[Key] = set()
    for place, _ in places_of(relations, kind):
        news = _news(*place)
        was, is_now = (each.shown.get(place) if each is not None else None for each in (before, after))
        if news is None or (not news.ours and before and after and own_write(before, after)):
            continue
        if not _is_news(news, was, is_now, after) or _is_followed(place, was, is_now, after, index):
            continue
        trait = (is_now or was or Shown((), ())).trait
        for known, shown in ((before, was), (after, is_now)):
            if known is not None and shown is not None:
                keys |= _others(place, known, shown.names, index, news, trait) - {known.key}
    return keys


def referents(relations: Relations, known: Projection, index: Index) -> set[Key]:
    """The lifecycles of the objects to which `known` refers, if `known` may wake them (`Relation.news`)."""
    keys: set[Key] = set()
    for place, _ in places_of(relations, known.key.kind):
        news = _news(*place)
        if place[1] is Side.REFERRER and news is not None and place in known.shown:
            keys |= _others(place, known, known.shown[place].names, index, news)
    return keys


def missing_referents(relations: Relations, kind: str, index: Index, is_missing: Missing | None = None) -> set[Key]:
    keys: set[Key] = set()
    for place, _ in places_of(relations, kind):
        if place[1] is Side.REFERENT and place[0].required:
            for referrer in map(kind_name, place[0].referrers):
                for name in index.names_at(referrer, (place[0], Side.REFERRER)):
                    if (is_missing or _is_missing)(place, name, index):
                        keys |= {each.key for each in index.at(referrer, (place[0], Side.REFERRER), name)}
    return keys


def _is_missing(place: Place, name: Hashable, index: Index) -> bool:
    return not any(_known(end, place, name, index) for end in place[0].referents)


def ending_with_referrer(
    relations: Relations, kind: str, before: Projection | None, after: Projection | None, index: Index
) -> bool:
    """Whether the changed object is gone or being deleted, and the change wakes an object that is being deleted."""
    if after is not None and not after.deleting:
        return False
    keys = woken(relations, kind, before, after, index)
    found = (index.get(key.kind, key.namespace, key.name) for key in keys)
    return any(each is not None and each.deleting for each in found)


def _news(relation: Relation, side: Side) -> News[KubeModel] | None:
    return relation.news if side is Side.REFERRER else relation.matters


def _hashes(value: Hashable) -> tuple[int, ...]:
    return tuple(sorted(map(hash, value))) if isinstance(value, frozenset) else (hash(value),)


def _is_news(news: News[KubeModel], was: Shown | None, is_now: Shown | None, after: Projection | None) -> bool:
    new = was is None
    was, is_now = (each if each is not None and each.counts else None for each in (was, is_now))
    if was is None or is_now is None:
        if was is is_now:
            return False
        if is_now is None:
            return On.GOES in news.on
        made = new and is_now.as_made and after is not None and after.ours and not after.deleting
        return On.COMES in news.on and bool(is_now.hashes) and not made
    has_more = bool(set(is_now.hashes) - set(was.hashes))
    named_otherwise = was.names != is_now.names and news.linked is not Linked.NEVER
    if named_otherwise and not was.names and not has_more and news.linked is Linked.KNOWN:
        return False
    return On.CHANGES in news.on and (has_more or named_otherwise)


def _is_followed(place: Place, was: Shown | None, is_now: Shown | None, after: Projection | None, index: Index) -> bool:
    """Whether another write of Perdure follows and wakes the referent's lifecycle: Perdure has only added the
    reference, and the referent does not refer back yet.
    """
    news = _news(*place)
    if news is None or news.linked is not Linked.FOLLOWED or was is None or is_now is None or after is None:
        return False
    if was.names or was.hashes != is_now.hashes or not after.ours:
        return False
    at, ends = (place[0], Side.REFERENT), place[0].referents
    found = [each for name in is_now.names for end in ends for each in _known(end, at, name, index)]
    back = [
        shown
        for each in found
        for (other, side), shown in each.shown.items()
        if side is Side.REFERRER and after.key.kind in map(kind_name, other.referents)
    ]
    return bool(found) and not any(each.names for each in back)


def _others(
    place: Place,
    known: Projection,
    names: Iterable[Hashable],
    index: Index,
    news: News[KubeModel],
    trait: Hashable = (),
) -> set[Key]:
    """The lifecycles of the objects with these names, and the lifecycles that `News.onward` adds for these objects."""
    relation, side = place
    ends, other = (relation.referents, Side.REFERENT) if side is Side.REFERRER else (relation.referrers, Side.REFERRER)
    at = (relation, other)
    found = [each for name in names for end in ends for each in _known(end, at, name, index)]
    if news.among is not None:
        found = [each for each in found if at in each.shown and news.among(trait, each.shown[at].trait)]
    if relation.transitive:
        found = _all_linked(place, found, at, index)
    if news.whom is Whom.ONE:
        found = found[:1]
    keys = {each.key for each in found if _is_woken(each, news.whom)}
    for further, way in ((further, way) for further in news.onward for way in Side):
        if (passed_on := _news(further, way)) is not None:
            for each in (each for each in found if (further, way) in each.shown):
                keys |= _others((further, way), each, each.shown[further, way].names, index, passed_on)
    standing = [end for end in ends if isinstance(end, Key) and _has(end, side, index)]
    standing += [name for name in names if isinstance(name, Key)]
    return keys | {each.model_copy(update={"cluster": known.key.cluster}) for each in standing}


def _all_linked(place: Place, first: list[Projection], at: Place, index: Index) -> list[Projection]:
    reached: dict[Name, Projection] = {}
    ahead = list(first)
    while ahead:
        known = ahead.pop()
        if known.name not in reached:
            reached[known.name] = known
            names = known.shown[place].names if place in known.shown else ()
            ahead += [each for name in names for each in index.at(known.key.kind, at, name)]
    return list(reached.values())


def _known(end: End, at: Place, name: Hashable, index: Index) -> list[Projection]:
    if isinstance(end, Key) or isinstance(name, Key):
        return []
    if at[1] is Side.REFERENT and at[0].known_as is by_name:
        one = index.of(kind_name(end)).get(cast(Name, name))
        return [] if one is None else [one]
    return index.at(kind_name(end), at, name)


def _has(end: Key, side: Side, index: Index) -> bool:
    """Whether to wake an objectless lifecycle: always if the changed object refers to it, else only if the lifecycle's
    area has objects.
    """
    area = all_kinds()[end.kind].area
    kinds = (kind.name for kind in all_kinds().values() if kind.area == area and kind.plural)
    return side is Side.REFERRER or any(len(index.of(kind)) for kind in kinds)


def _is_woken(known: Projection, whom: Whom) -> bool:
    return {Whom.UNSETTLED: not known.settled, Whom.DELETING: known.deleting, Whom.NONE: False}.get(whom, True)
