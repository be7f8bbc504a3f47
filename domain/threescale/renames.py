"""Values that must be unique, changed one at a time: names of metrics, paths of backends.

3scale refuses a value that another object still has. The change that frees a value comes first; where two objects swap
their values, one of them takes a temporary value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

ASIDE = "{} (moves)"


def in_turn(
    current: Mapping[int, str],
    wanted: Mapping[int, str],
    *,
    aside: str = ASIDE,
    alike: Callable[[str], str] = str,
) -> list[tuple[int, str]]:
    """The changes, in an order in which no value is ever had twice.

    Args:
        current: what each has, by id; of those also that do not change.
        wanted: what each shall have, by id. A change to a value that another keeps is left out.
        aside: of which the value is made that one takes for a moment, out of its own.
        alike: values that it makes equal are the same to 3scale.
    """
    held = dict(current)
    left = {id_: value for id_, value in wanted.items() if held.get(id_) != value}
    changes: list[tuple[int, str]] = []
    while left:
        free = next((id_ for id_ in sorted(left) if not _has_another(left[id_], id_, held, alike)), None)
        if free is not None:
            held[free] = left.pop(free)
            changes.append((free, held[free]))
            continue
        blocking = (id_ for id_ in sorted(left) if _has_another(held[id_], id_, left, alike))
        mover = next(blocking, None)
        if mover is None:
            break
        held[mover] = aside.format(current[mover])
        changes.append((mover, held[mover]))
    return changes


def _has_another(value: str, id_: int, values: Mapping[int, str], alike: Callable[[str], str]) -> bool:
    return any(other != id_ and alike(has) == alike(value) for other, has in values.items())
