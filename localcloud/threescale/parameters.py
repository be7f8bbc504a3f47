"""Parameters of a call, from query, form, multipart or JSON, flat or wrapped in the resource's name.

Bracketed names nest (`annotations[managed_by]=operator`, `service[name]=API`). Numbers and booleans may be strings. A
GET may have a JSON body.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from pydantic import JsonValue

from localcloud.threescale import refusals
from localcloud.threescale.contract import JsonObject

_FALSE = {"false", "0", "off", "no", "f", ""}
_BRACKETS = re.compile(r"\[([^\]]*)\]")


@dataclass(frozen=True)
class Parameters:
    values: Mapping[str, JsonValue]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def within(self, *wrappers: str) -> Parameters:
        inner: JsonObject = {}
        for wrapper in wrappers:
            found = self.values.get(wrapper)
            if isinstance(found, dict):
                inner |= found
        return Parameters({**self.values, **inner})

    def get(self, name: str) -> JsonValue:
        return self.values.get(name)

    def text(self, name: str) -> str:
        return as_text(self.values.get(name)) or ""

    def integer(self, name: str) -> int | None:
        return as_integer(self.values.get(name))

    def flag(self, name: str) -> bool:
        return as_flag(self.values.get(name))

    def required(self, name: str) -> str:
        if not self.text(name):
            raise refusals.missing(name)
        return self.text(name)

    def texts(self, names: Iterable[str]) -> dict[str, JsonValue]:
        return {name: as_text(self.values[name]) for name in names if name in self.values}

    def flags(self, names: Iterable[str]) -> dict[str, JsonValue]:
        return {name: as_flag(self.values[name]) for name in names if name in self.values}

    def annotations(self, known: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        sent = self.values.get("annotations")
        if not isinstance(sent, dict):
            return dict(known)
        merged = {**known, **{name: as_text(value) for name, value in sent.items()}}
        return {name: value for name, value in merged.items() if value}


def read(query: Iterable[tuple[str, str]], body: bytes, content_type: str) -> Parameters:
    """The request's parameters. Parameters in a JSON body take precedence. Refuses malformed JSON."""
    values = nested(query)
    if content_type == "application/json" and body.strip():
        try:
            sent = json.loads(body)
        except ValueError:
            raise refusals.malformed() from None
        if isinstance(sent, dict):
            values |= sent
    return Parameters(values)


def nested(pairs: Iterable[tuple[str, str]]) -> JsonObject:
    values: JsonObject = {}
    for name, value in pairs:
        head, bracket, _ = name.partition("[")
        steps = [head, *_BRACKETS.findall(name)] if bracket else [head]
        _put(values, steps, value)
    return values


def as_text(value: JsonValue) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def as_flag(value: JsonValue) -> bool:
    if isinstance(value, str):
        return value.strip().lower() not in _FALSE
    return bool(value)


def as_integer(value: JsonValue) -> int | None:
    number = as_decimal(value)
    return int(number) if number is not None and number == number.to_integral_value() else None


def as_decimal(value: JsonValue) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _put(values: JsonObject, steps: list[str], value: str) -> None:
    head, *rest = steps
    if not rest:
        values[head] = value
    elif rest == [""]:
        found = values.get(head)
        values[head] = [*found, value] if isinstance(found, list) else [value]
    else:
        inner = values.get(head)
        if not isinstance(inner, dict):
            inner = values[head] = {}
        _put(inner, rest, value)
