"""Differences as JSON Patch, in Poolboy's fixed order, and the filters that decide which of them reach a live object.

Order: for a mapping first the changes and removes in the order of the old keys, then the adds in the order of the new
ones; for a list first the shared prefix, then removes from the end, then adds at the end. There is no move, copy or
test: a renamed key is a remove and an add, a reordered list one replace per changed index. What changes its type is one
replace at its path, a new subtree one add at its top: a filter on a leaf below that does not match it.

A live object has much that its definition lacks (status, uid, defaults of the API server), so the raw difference is
full of removes; only the filters save them. The first filter whose `pathMatch` matches the whole path decides; what no
filter matches stays as it is. One filter is implied after the provider's own: the operator's annotations.

The expressions come from administrators, the paths partly from users (keys of templates), and one expression with
nested repeats can run for hours on thirty characters. Therefore the `regex` package, which reads Python's syntax and
stops after a time: a `BadPattern` tells the provider's author, and everybody else goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import jsonpatch
import regex
from pydantic import JsonValue

from domain.claims.constants import DEFAULT_ALLOWED_OPS
from domain.claims.merging import DEEPEST, TooDeep

Op = Literal["add", "remove", "replace"]

ANNOTATIONS_PATH = "/metadata/annotations"
# Paths of real objects stay below 300 characters; matching takes microseconds.
LONGEST_PATH = 2_000
LONGEST_PATTERN = 2_000
PATTERN_SECONDS = 0.05
CACHED_PATTERNS = 1_024


class BadPattern(ValueError):  # noqa: N818 - says what the expression is
    """A regular expression of an administrator cannot be used; the text quotes it and says why."""

    def __init__(self, pattern: str, reason: str) -> None:
        shown = pattern if len(pattern) <= 100 else f"{pattern[:100]}..."
        super().__init__(f"regular expression {shown!r}: {reason}")
        self.pattern = pattern
        self.reason = reason


class Operation(NamedTuple):
    """One operation of a JSON Patch; `value` means nothing for a remove."""

    op: Op
    path: str
    value: JsonValue = None

    def as_json(self) -> dict[str, JsonValue]:
        """The operation as the API server reads it."""
        body: dict[str, JsonValue] = {"op": self.op, "path": self.path}
        return body if self.op == "remove" else {**body, "value": self.value}


class UpdateFilter(NamedTuple):
    """What may be updated in a live object: the operations allowed on the paths that the expression matches whole."""

    path_match: str
    allowed_ops: tuple[str, ...] = DEFAULT_ALLOWED_OPS


def differences(old: JsonValue, new: JsonValue) -> Iterator[Operation]:
    """The operations that turn `old` into `new`, in the fixed order, found while they are asked for.

    Raises:
        TooDeep: when both are nested beyond reason.
    """
    return _differences(old, new, "", 0)


def update_filters(update_filters: JsonValue) -> tuple[UpdateFilter, ...]:
    """A provider's `updateFilters` as they stand in its spec; without `allowedOps` a filter allows every operation."""
    if not isinstance(update_filters, list):
        return ()
    return tuple(
        UpdateFilter(pattern, _allowed(entry.get("allowedOps")))
        for entry in update_filters
        if isinstance(entry, dict) and isinstance(pattern := entry.get("pathMatch"), str)
    )


def update(
    live: dict[str, JsonValue], definition: dict[str, JsonValue], filters: Iterable[UpdateFilter], *, own_path: str
) -> tuple[Operation, ...]:
    """What is patched in a live object to bring it to its definition, as far as the provider's filters let it.

    Nothing marks an adopted object that has no annotations at all as ours: the difference is then one add of all
    annotations, which the implied filter does not match. So of these the operator's own are added all the same: those
    that `own_path` matches.

    Raises:
        BadPattern: a filter's expression is unusable.
        TooDeep: when both are nested beyond reason.
    """
    every = (*filters, UpdateFilter(own_path))
    patch = []
    for operation in differences(live, definition):
        if _passes(operation, every):
            patch.append(operation)
        elif operation.op == "add" and operation.path == ANNOTATIONS_PATH and (own := _own(operation.value, own_path)):
            patch.append(operation._replace(value=own))
    return tuple(patch)


def matches(pattern: str, path: str) -> bool:
    """True if the expression matches the path from its beginning to its end.

    Raises:
        BadPattern: it cannot be compiled, or takes too long on this path.
    """
    if len(path) > LONGEST_PATH:
        raise BadPattern(pattern, f"not tried on a path of {len(path)} characters, more than {LONGEST_PATH}")
    try:
        return _compiled(pattern).fullmatch(path, timeout=PATTERN_SECONDS) is not None
    except TimeoutError as error:
        raise BadPattern(pattern, f"takes more than {PATTERN_SECONDS} s on {path[:100]!r}") from error


def apply(document: JsonValue, patch: Sequence[Operation]) -> JsonValue:
    """The document after the patch; the argument stays as it is.

    Raises:
        jsonpatch.JsonPatchException: the patch does not fit the document.
    """
    after: JsonValue = jsonpatch.apply_patch(document, [operation.as_json() for operation in patch])
    return after


def pointer_token(key: str) -> str:
    """A key as it stands in a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def _differences(old: JsonValue, new: JsonValue, path: str, depth: int) -> Iterator[Operation]:
    if depth > DEEPEST:
        raise TooDeep
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key in new:
                yield from _differences(value, new[key], f"{path}/{pointer_token(key)}", depth + 1)
            else:
                yield Operation("remove", f"{path}/{pointer_token(key)}")
        for key, value in new.items():
            if key not in old:
                yield Operation("add", f"{path}/{pointer_token(key)}", value)
    elif isinstance(old, list) and isinstance(new, list):
        for index, (before, after) in enumerate(zip(old, new, strict=False)):
            yield from _differences(before, after, f"{path}/{index}", depth + 1)
        for index in range(len(old) - 1, len(new) - 1, -1):
            yield Operation("remove", f"{path}/{index}")
        for index in range(len(old), len(new)):
            yield Operation("add", f"{path}/{index}", new[index])
    elif isinstance(old, bool) != isinstance(new, bool) or old != new:
        yield Operation("replace", path, new)


def _passes(operation: Operation, filters: Iterable[UpdateFilter]) -> bool:
    for update_filter in filters:
        if matches(update_filter.path_match, operation.path):
            return operation.op in update_filter.allowed_ops
    return False


def _own(annotations: JsonValue, own_path: str) -> dict[str, JsonValue]:
    if not isinstance(annotations, dict):
        return {}
    return {
        key: value
        for key, value in annotations.items()
        if matches(own_path, f"{ANNOTATIONS_PATH}/{pointer_token(key)}")
    }


def _allowed(ops: JsonValue) -> tuple[str, ...]:
    return tuple(op for op in ops if isinstance(op, str)) if isinstance(ops, list) else DEFAULT_ALLOWED_OPS


@lru_cache(CACHED_PATTERNS)
def _compiled(pattern: str) -> regex.Pattern[str]:
    if len(pattern) > LONGEST_PATTERN:
        raise BadPattern(pattern, f"has {len(pattern)} characters, more than {LONGEST_PATTERN}")
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise BadPattern(pattern, str(error)) from error
