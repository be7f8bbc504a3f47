"""Deep merges: how templates, defaults and overrides come together, and whether one template is part of another.

One rule everywhere: mappings merge key by key; lists index by index; what the target lacks is copied; anything else
(two scalars, two different types) is overwritten if that is allowed and stays if not. Poolboy appended the whole list
once for every surplus index of the update; here each surplus element is appended once, which is what everybody means.

Results share nothing with the arguments, so whoever puts a name or an annotation into one changes no template.
Templates are written by users, and Python bounds recursion: what is nested deeper than any real object is refused.
"""

from __future__ import annotations

from typing import overload

from pydantic import JsonValue

# Real objects stay below 30 levels; Python's own bound lies near 1,000 calls, of which the caller has used some.
DEEPEST = 100


class TooDeep(ValueError):  # noqa: N818 - says what the object is
    """The document is nested deeper than any real object."""

    def __init__(self) -> None:
        super().__init__(f"nested deeper than {DEEPEST} levels")


@overload
def merge(target: dict[str, JsonValue], update: dict[str, JsonValue], *, overwrite: bool) -> dict[str, JsonValue]: ...
@overload
def merge(target: JsonValue, update: JsonValue, *, overwrite: bool) -> JsonValue: ...
def merge(target: JsonValue, update: JsonValue, *, overwrite: bool) -> JsonValue:
    """The target with the update merged in; with `overwrite` the update wins over the target's leaves.

    Raises:
        TooDeep: when either is nested beyond reason.
    """
    return _merged(target, update, overwrite, 0)


def contains(whole: JsonValue, part: JsonValue) -> bool:
    """True if merging the part over the whole would change nothing.

    Raises:
        TooDeep: when both are nested beyond reason.
    """
    return _contains(whole, part, 0)


def same(one: JsonValue, other: JsonValue) -> bool:
    """Equality of JSON: 1 is 1.0 but not true, which Python's own comparison takes for 1.

    Raises:
        TooDeep: when both are nested beyond reason.
    """
    return _same(one, other, 0)


def schema_defaults(schema: JsonValue) -> dict[str, JsonValue]:
    """The defaults that an OpenAPI schema gives to an object's properties.

    A property of type object whose own properties have defaults takes these instead of its own default. Arrays and
    combinations (`allOf` and the like) are not descended into. What is no schema has no defaults.
    """
    return _defaults(schema, 0)


def _merged(target: JsonValue, update: JsonValue, overwrite: bool, depth: int) -> JsonValue:
    below = _deeper(depth)
    if isinstance(target, dict) and isinstance(update, dict):
        merged = {
            key: _merged(value, update[key], overwrite, below) if key in update else _copied(value, below)
            for key, value in target.items()
        }
        return merged | {key: _copied(value, below) for key, value in update.items() if key not in target}
    if isinstance(target, list) and isinstance(update, list):
        both = [_merged(old, new, overwrite, below) for old, new in zip(target, update, strict=False)]
        longer = target if len(target) > len(update) else update
        return both + [_copied(element, below) for element in longer[len(both) :]]
    return _copied(update if overwrite else target, depth)


def _contains(whole: JsonValue, part: JsonValue, depth: int) -> bool:
    below = _deeper(depth)
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(key in whole and _contains(whole[key], value, below) for key, value in part.items())
    if isinstance(whole, list) and isinstance(part, list):
        return len(part) <= len(whole) and all(
            _contains(old, new, below) for old, new in zip(whole, part, strict=False)
        )
    return _same(whole, part, depth)


def _same(one: JsonValue, other: JsonValue, depth: int) -> bool:
    if one is other:
        return True  # most of an object is handed on as it is; walking it would cost more than the pass
    below = _deeper(depth)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key], below) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(left, right, below) for left, right in zip(one, other, strict=True))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _copied(document: JsonValue, depth: int) -> JsonValue:
    if isinstance(document, dict):
        below = _deeper(depth)
        return {key: _copied(value, below) for key, value in document.items()}
    if isinstance(document, list):
        below = _deeper(depth)
        return [_copied(element, below) for element in document]
    return document


def _defaults(schema: JsonValue, depth: int) -> dict[str, JsonValue]:
    below = _deeper(depth)
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return {}
    defaults: dict[str, JsonValue] = {}
    for name, declared in properties.items():
        if not isinstance(declared, dict):
            continue
        if "default" in declared:
            defaults[name] = _copied(declared["default"], below)
        if declared.get("type") == "object" and (nested := _defaults(declared, below)):
            defaults[name] = nested
    return defaults


def _deeper(depth: int) -> int:
    if depth >= DEEPEST:
        raise TooDeep
    return depth + 1
