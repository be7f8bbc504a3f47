"""The filters: Poolboy's additions and Jinja2's own, each guarded by limits.

`json_query` uses the community edition of JMESPath (`zip`, `from_items`, `items`, `let`, ...) under a module name of
its own, because as `jmespath` it would replace the library that boto3 needs.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice

import jmespath_community_fs as jmespath  # type: ignore[import-untyped]
from jinja2 import Undefined
from jinja2.filters import FILTERS
from strgen import StringGenerator  # type: ignore[import-untyped]

from domain.claims.templates import limits
from domain.claims.templates.datetimes import interval

Filter = Callable[..., object]

_TRUE = {"y", "yes", "t", "true", "on", "1"}
_FALSE = {"n", "no", "f", "false", "off", "0"}


def truth(value: object, *, unknown_is_false: bool = False) -> bool:
    """The truth of words such as `yes` and `false`. Other texts raise ValueError, unless `unknown_is_false`."""
    if not isinstance(value, str):
        return bool(value)
    word = value.lower()
    if word in _TRUE:
        return True
    if word in _FALSE or unknown_is_false:
        return False
    raise ValueError(f"invalid truth value {word[:100]!r}")


def json_query(value: object, expression: str) -> object:
    limits.string(len(expression) * 16)  # 64 KiB: the parser is slow
    found = jmespath.search(expression, value)
    limits.values(found)
    return limits.sized(found)


def merge_list_of_dicts(value: object) -> object:
    if not value:
        return {}
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, Iterable):
        raise TypeError(f"not a list of mappings: {type(value).__name__}")
    members = list(value)
    if len(members) == 1 and members[0] is not None:
        return members[0]
    merged: dict[object, object] = {}
    for member in members:
        if member is not None:
            merged.update(member)
    return merged


def to_json(value: object) -> str:
    return json.dumps(value)


def parse_time_interval(value: object) -> timedelta:
    return interval(value)


def strgen(pattern: str) -> str:
    limits.pattern(pattern)
    return str(StringGenerator(pattern).render())


def to_datetime(text: str, fmt: str = "%Y-%m-%d %H:%M:%S") -> datetime:
    return datetime.strptime(text, fmt)  # noqa: DTZ007 - naive where the format has no offset, as Poolboy's


def bool_filter(value: object) -> bool:
    return truth(value)


def newer_bool_filter(value: object) -> bool:
    return truth(value, unknown_is_false=True)


ADDED: dict[str, Filter] = {
    "json_query": json_query,
    "merge_list_of_dicts": merge_list_of_dicts,
    "object": to_json,
    "parse_time_interval": parse_time_interval,
    "strgen": strgen,
    "to_datetime": to_datetime,
    "to_json": to_json,
}

# Filters that print a value: its whole content counts towards the limits.
_WRITES_OUT = {
    "e",
    "escape",
    "forceescape",
    "format",
    "join",
    "object",
    "pprint",
    "replace",
    "string",
    "to_json",
    "tojson",
    "urlencode",
    "xmlattr",
}


# By filter: the name of its first argument, a width or count that determines the cost.
_SIZED = {"batch": "linecount", "center": "width", "indent": "width", "round": "precision", "slice": "slices"}


def guarded(name: str, filter_: Filter) -> Filter:
    first = 1 if hasattr(filter_, "jinja_pass_arg") else 0
    check = _CHECKS.get(name)
    size = _SIZED.get(name)
    writes_out = name in _WRITES_OUT

    @functools.wraps(filter_)
    def limited(*args: object, **kwargs: object) -> object:
        value, rest = args[first], args[first + 1 :]
        if name == "join" and isinstance(value, Iterator):  # a list, because its length is checked
            value = list(islice(value, limits.ITEMS + 1))
            args = (*args[:first], value, *rest)
        if size:
            limits.number(rest[0] if rest else kwargs.get(size))
        if writes_out:
            limits.values(value)
        if check is not None and not isinstance(value, Undefined):
            check(value, *rest, **kwargs)
        return limits.sized(filter_(*args, **kwargs))

    return limited


def _check_indent(value: object, width: object = 4, *_: object, **__: object) -> None:
    text = str(value)
    step = len(width) if isinstance(width, str) else int(width) if isinstance(width, int) else 0
    limits.string(len(text) + step * (text.count("\n") + 1))


def _check_replace(value: object, old: object, new: object = "", *_: object, **__: object) -> None:
    limits.values(value)
    text = str(value)
    limits.string(len(text) + text.count(str(old)) * len(str(new)))


def _check_join(value: object, d: object = "", *_: object, **__: object) -> None:
    if hasattr(value, "__len__"):
        limits.string(len(value) * len(str(d)))


def _check_format(value: object, *args: object, **kwargs: object) -> None:
    limits.percent_format(str(value), kwargs or args)


def _check_tojson(value: object, indent: object = None, *_: object, **__: object) -> None:
    if isinstance(indent, int) and indent > limits.DEPTH:
        limits.field(str(indent * limits.FIELD_WIDTH))


def _check_wordwrap(value: object, width: object = 79, *rest: object, **named: object) -> None:
    wrapper = rest[1] if len(rest) > 1 else named.get("wrapstring")
    if isinstance(wrapper, str):
        limits.string(len(str(value)) * max(1, len(wrapper)))


_CHECKS: dict[str, Callable[..., None]] = {
    "format": _check_format,
    "indent": _check_indent,
    "join": _check_join,
    "replace": _check_replace,
    "tojson": _check_tojson,
    "wordwrap": _check_wordwrap,
}


def filters(*, newer: bool) -> dict[str, Filter]:
    named = {**FILTERS, **ADDED, "bool": newer_bool_filter if newer else bool_filter}
    return {name: guarded(name, filter_) for name, filter_ in named.items()}
