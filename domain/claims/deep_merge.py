"""Deep merge of templates, defaults and overrides, and the test whether one template contains another.

Mappings merge by key, lists by index. Extra elements of the longer list are appended once (Poolboy appends the whole
list for each extra element). Results share no object with the arguments. Nesting deeper than `DEEPEST` raises TooDeep.
"""

from __future__ import annotations

from typing import overload

from pydantic import JsonValue

# Real objects have fewer than 30 levels. Python allows about 1,000 nested calls, those of the caller included.
DEEPEST = 100


class TooDeep(ValueError):  # noqa: N818 - says what the object is
    def __init__(self) -> None:
        super().__init__(f"nested deeper than {DEEPEST} levels")


# Callers of the public functions omit `depth`, which counts the levels of recursion.
@overload
def merge(
    target: dict[str, JsonValue], update: dict[str, JsonValue], *, overwrite: bool, depth: int = 0
) -> dict[str, JsonValue]: ...
@overload
def merge(target: JsonValue, update: JsonValue, *, overwrite: bool, depth: int = 0) -> JsonValue: ...
def merge(target: JsonValue, update: JsonValue, *, overwrite: bool, depth: int = 0) -> JsonValue:
    """The merged value. Of two leaves, the update's is used with `overwrite`, else the target's. Raises TooDeep."""
    below = _deeper(depth)
    if isinstance(target, dict) and isinstance(update, dict):
        merged = {
            key: merge(value, update[key], overwrite=overwrite, depth=below) if key in update else _copied(value, below)
            for key, value in target.items()
        }
        return merged | {key: _copied(value, below) for key, value in update.items() if key not in target}
    if isinstance(target, list) and isinstance(update, list):
        pairs = zip(target, update, strict=False)
        both = [merge(old, new, overwrite=overwrite, depth=below) for old, new in pairs]
        longer = target if len(target) > len(update) else update
        return both + [_copied(element, below) for element in longer[len(both) :]]
    return _copied(update if overwrite else target, depth)


def contains(whole: JsonValue, part: JsonValue, depth: int = 0) -> bool:
    """Whether merging the part over the whole would change nothing; raises TooDeep."""
    below = _deeper(depth)
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(key in whole and contains(whole[key], value, below) for key, value in part.items())
    if isinstance(whole, list) and isinstance(part, list):
        pairs = zip(whole, part, strict=False)
        return len(part) <= len(whole) and all(contains(old, new, below) for old, new in pairs)
    return same(whole, part, depth)


def same(one: JsonValue, other: JsonValue, depth: int = 0) -> bool:
    """Whether both are equal as JSON. Unlike in Python, 1 does not equal `true`; 1 equals 1.0. Raises TooDeep."""
    if one is other:
        return True  # unchanged parts are shared, and comparing them would be the most expensive part
    below = _deeper(depth)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key], below) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(left, right, below) for left, right in zip(one, other, strict=True))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def schema_defaults(schema: JsonValue, depth: int = 0) -> dict[str, JsonValue]:
    """The defaults of the schema's properties. Defaults of nested properties replace an object property's own default.

    Arrays and combinations (`allOf` etc.) are skipped; an invalid schema has no defaults.
    """
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
        if declared.get("type") == "object" and (nested := schema_defaults(declared, below)):
            defaults[name] = nested
    return defaults


def _copied(document: JsonValue, depth: int) -> JsonValue:
    if isinstance(document, dict):
        below = _deeper(depth)
        return {key: _copied(value, below) for key, value in document.items()}
    if isinstance(document, list):
        below = _deeper(depth)
        return [_copied(element, below) for element in document]
    return document


def _deeper(depth: int) -> int:
    if depth >= DEEPEST:
        raise TooDeep
    return depth + 1
