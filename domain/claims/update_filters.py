"""JSON Patches in Poolboy's fixed order, and the filters that decide which operations reach a live object.

Mappings give changes and removals in the order of the old keys, then additions in the order of the new keys. Lists give
changes index by index, then removals or additions at the end. There is no move, copy or test. A type change is one
replace; a new subtree is one add at its top, which a filter for a leaf does not match.

The first filter whose `pathMatch` matches the whole path decides; operations that no filter matches are dropped,
because a live object has much that its definition lacks. An implied last filter allows the operator's annotations.
Paths come partly from users, so patterns are matched with a timeout, which raises `BadPattern`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

import regex
from pydantic import JsonValue

from domain.claims.constants import DEFAULT_ALLOWED_OPS
from domain.claims.deep_merge import DEEPEST, TooDeep

Op = Literal["add", "remove", "replace"]

ANNOTATIONS_PATH = "/metadata/annotations"
# Real paths have fewer than 300 characters; matching takes microseconds.
LONGEST_PATH = 2_000
LONGEST_PATTERN = 2_000
PATTERN_SECONDS = 0.05
CACHED_PATTERNS = 1_024


class BadPattern(ValueError):  # noqa: N818 - says what the expression is
    def __init__(self, pattern: str, reason: str) -> None:
        shown = pattern if len(pattern) <= 100 else f"{pattern[:100]}..."
        super().__init__(f"regular expression {shown!r}: {reason}")
        self.pattern = pattern
        self.reason = reason


class Operation(NamedTuple):
    op: Op
    path: str
    value: JsonValue = None

    def as_json(self) -> dict[str, JsonValue]:
        body: dict[str, JsonValue] = {"op": self.op, "path": self.path}
        return body if self.op == "remove" else {**body, "value": self.value}


class UpdateFilter(NamedTuple):
    path_match: str
    allowed_ops: tuple[str, ...] = DEFAULT_ALLOWED_OPS


def differences(old: JsonValue, new: JsonValue, path: str = "", depth: int = 0) -> Iterator[Operation]:
    """The operations that turn `old` into `new`, in a fixed order; raises TooDeep."""
    if depth > DEEPEST:
        raise TooDeep
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if key in new:
                yield from differences(value, new[key], f"{path}/{pointer_token(key)}", depth + 1)
            else:
                yield Operation("remove", f"{path}/{pointer_token(key)}")
        for key, value in new.items():
            if key not in old:
                yield Operation("add", f"{path}/{pointer_token(key)}", value)
    elif isinstance(old, list) and isinstance(new, list):
        for index, (before, after) in enumerate(zip(old, new, strict=False)):
            yield from differences(before, after, f"{path}/{index}", depth + 1)
        for index in range(len(old) - 1, len(new) - 1, -1):
            yield Operation("remove", f"{path}/{index}")
        for index in range(len(old), len(new)):
            yield Operation("add", f"{path}/{index}", new[index])
    elif isinstance(old, bool) != isinstance(new, bool) or old != new:
        yield Operation("replace", path, new)


def update_filters(update_filters: JsonValue) -> tuple[UpdateFilter, ...]:
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
    """The operations from a live object to its definition that the filters allow. Raises BadPattern, TooDeep.

    `own_path` matches the paths of the operator's annotations. If the live object has no annotations, one operation
    adds all annotations of the definition, or, if the filters refuse this, only the operator's.
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
    """Whether the pattern matches the whole path. Raises BadPattern."""
    if len(path) > LONGEST_PATH:
        raise BadPattern(pattern, f"not tried on a path of {len(path)} characters; at most {LONGEST_PATH} are allowed")
    try:
        return _compiled(pattern).fullmatch(path, timeout=PATTERN_SECONDS) is not None
    except TimeoutError as error:
        raise BadPattern(pattern, f"takes more than {PATTERN_SECONDS} s on {path[:100]!r}") from error


def pointer_token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


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
        raise BadPattern(pattern, f"has {len(pattern)} characters; at most {LONGEST_PATTERN} are allowed")
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise BadPattern(pattern, str(error)) from error
