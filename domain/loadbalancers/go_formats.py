"""Booleans, durations (to the microsecond) and JSON as yawol reads and writes them with Go's standard library.

See https://pkg.go.dev/strconv#ParseBool, https://pkg.go.dev/time#ParseDuration,
https://pkg.go.dev/encoding/json#Marshal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction

from domain.schema import Document

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})

_NANOSECOND = Fraction(1, 1000)
_MICROSECONDS = {
    "ns": _NANOSECOND,
    "us": Fraction(1),
    "\u00b5s": Fraction(1),  # the micro sign
    "\u03bcs": Fraction(1),  # the Greek letter
    "ms": Fraction(1000),
    "s": Fraction(10**6),
    "m": Fraction(60 * 10**6),
    "h": Fraction(3600 * 10**6),
}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_TOO_LONG = Fraction(2**63, 1000)  # in microseconds: Go counts nanoseconds in 63 bits
_LONGEST_TEXT = 100  # a sanity limit: parsing longer numbers takes too long

# Go's encoder escapes HTML characters.
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def parse_bool(text: str) -> bool | None:
    return True if text in _TRUE else False if text in _FALSE else None


def parse_duration(text: str) -> timedelta | None:
    """A duration such as `5m30s` or `1.5h`; None for any other text. Every number except 0 needs a unit."""
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text[1:] if text[:1] == "+" else text)
    if rest == "0":
        return timedelta(0)
    if not rest or len(rest) > _LONGEST_TEXT:
        return None
    total, position = Fraction(0), 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None:
            return None
        total += Fraction(part[1].rstrip(".")) * _MICROSECONDS[part[2]]
        position = part.end()
    if total >= _TOO_LONG:
        return None
    return sign * timedelta(microseconds=int(total))


def format_duration(duration: timedelta) -> str:
    """The duration as Go writes it: `1h0m0s`, `5m30s`, `1.5s`, `250ms`, `0s`."""
    if duration < timedelta(0):
        return f"-{format_duration(-duration)}"
    microseconds = duration // timedelta(microseconds=1)
    if microseconds < 1000:
        return f"{microseconds}\u00b5s" if microseconds else "0s"
    if microseconds < 10**6:
        return f"{_decimal(microseconds, 1000)}ms"
    minutes, rest = divmod(microseconds, 60 * 10**6)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(rest, 10**6)}s"
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds


def _decimal(count: int, unit: int) -> str:
    whole, rest = divmod(count, unit)
    digits = len(str(unit)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0") if rest else str(whole)


def to_json(document: Mapping[str, object]) -> str:
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    for character, escape in _ESCAPED.items():
        text = text.replace(character, escape)
    return text


def without_empty(document: Document) -> Document:
    """The document without None, empty, zero and False fields, like Go's `omitempty`."""
    return {name: value for name, value in document.items() if value}


def without_absent(document: Document) -> Document:
    return {name: value for name, value in document.items() if value is not None}
