"""Changes of unique values, one at a time: names of metrics, paths of backends.

3scale refuses a value that another object still has. Changes that free a value come first. Objects that swap their
values need a temporary value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

ASIDE = "{} (moves)"


def in_turn(
    current: Mapping[int, str],
    wanted: Mapping[int, str],
    *,
    aside: str = ASIDE,
    normalized: Callable[[str], str] = str,
) -> list[tuple[int, str]]:
    """The changes (id, value) in an order that never makes two values equal.

    A change to a value that another object keeps is left out. `aside` is a template for temporary values. `normalized`
    returns the same text for values that 3scale treats as equal.
    """
    held = dict(current)
    left = {id_: value for id_, value in wanted.items() if held.get(id_) != value}
    changes: list[tuple[int, str]] = []
    while left:
        free = next((id_ for id_ in sorted(left) if not _has_another(left[id_], id_, held, normalized)), None)
        if free is not None:
            held[free] = left.pop(free)
            changes.append((free, held[free]))
            continue
        blocking = (id_ for id_ in sorted(left) if _has_another(held[id_], id_, left, normalized))
        mover = next(blocking, None)
        if mover is None:
            break
        held[mover] = aside.format(current[mover])
        changes.append((mover, held[mover]))
    return changes


def _has_another(value: str, id_: int, values: Mapping[int, str], normalized: Callable[[str], str]) -> bool:
    return any(other != id_ and normalized(has) == normalized(value) for other, has in values.items())
