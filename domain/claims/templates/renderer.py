"""Rendering of values whose strings are templates, and of conditions (docs/templates.md).

Keys are not rendered, and results are not rendered again. A string becomes another type only if it consists of one
expression on one line, without outer blanks, that ends with a typing filter (`bool`, `int`, `float`, `object`). An
entry or item that renders to `omit` is left out; a whole value that renders to `omit` becomes null.

With `newer`, the default unless `PERDURE_CLAIMS_OLDER_TEMPLATES` is set, the rules are those of Poolboy 1.13 and later,
else those of 1.12 (docs/migration-poolboy.md compares them).
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import TypeGuard, TypeVar, cast

from jinja2 import TemplateSyntaxError
from jinja2.lexer import newline_re
from typing_extensions import TypeAliasType

from domain.claims.templates import limits
from domain.claims.templates.datetimes import Clock, names
from domain.claims.templates.environment import LazyVariable, Sandbox, clock_of_rendering
from domain.claims.templates.errors import LimitExceeded, TemplateError, text_of
from domain.claims.templates.filters import truth

# A named alias, so that models can have fields of this type.
Json = TypeAliasType("Json", "bool | int | float | str | list[Json] | dict[str, Json] | None")

T = TypeVar("T")

LAZY_DEPTH = 100  # of variables that refer to variables; Poolboy's limit

_TYPED = re.compile(r"\{\{(?!.*\{\{).*\| *(bool|float|int|object) *\}\}$")
_TYPED_NEWER = re.compile(r"\{\{(?!.*\{\{).*\| *(bool|float|int|list|object) *\}\}$")
_TAG = re.compile(r"\{[{%#]")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_OMITTED = object()

# Called with each template's location before rendering. The evaluator records the location, so that it is known even if
# the process is killed.
announce: Callable[[str], None] = lambda what: None  # noqa: E731


def announce_to(listener: Callable[[str], None]) -> None:
    global announce
    announce = listener


def condition_template(expression: str) -> str:
    return "{{(" + expression + ")|bool}}"


class Renderer:
    def __init__(self, now: datetime, *, newer: bool = False) -> None:
        """`now` is the start of the pass, with a time zone."""
        self._clock = Clock(now)
        self._names = names(self._clock)
        self.newer = newer
        self._sandbox = _sandbox(newer)

    def render(
        self,
        template: Json,
        variables: Mapping[str, object],
        *,
        what: str,
        lazy: Mapping[str, object] | None = None,
    ) -> Json:
        """Render the strings of a template. Raises TemplateError.

        `what` is the template's location, for errors: "provider x, override". `lazy` are the vars of providers and
        handles, which `variables` override; if `self.newer`, strings in `lazy` are templates, too.
        """
        announce(what)
        run = _Run(self, variables, lazy or {})
        value = self._guarded(lambda: _without_omitted(run.value(template, 0), run), what)
        return None if value is _OMITTED else cast(Json, value)

    def condition(
        self,
        expression: str,
        variables: Mapping[str, object],
        *,
        what: str,
        lazy: Mapping[str, object] | None = None,
    ) -> bool:
        """Whether the expression is true. Raises TemplateError."""
        # Multi-line expressions are evaluated like others, whereas Poolboy always takes them as true.
        announce(what)
        run = _Run(self, variables, lazy or {})
        return self._guarded(lambda: truth(run.text(condition_template(expression))), what)

    def _guarded(self, work: Callable[[], T], what: str) -> T:
        token = clock_of_rendering.set(self._clock)
        try:
            return work()
        except MemoryError:
            raise
        except TemplateError as error:
            raise TemplateError(what, error.text) from None
        except Exception as error:
            raise TemplateError(what, text_of(error)) from error
        finally:
            clock_of_rendering.reset(token)


class _Run:
    def __init__(self, renderer: Renderer, variables: Mapping[str, object], lazy: Mapping[str, object]) -> None:
        self._sandbox = renderer._sandbox
        self._newer = renderer.newer
        self.budget = limits.Budget()
        self.omit = f"__omit_place_holder__{secrets.token_hex(16)}"
        self._lazy_depth = 0
        given: dict[str, object] = {**variables, **renderer._names, "omit": self.omit}
        self._names = {**(self._rendered_when_used(lazy) if self._newer else lazy), **given}

    def value(self, template: Json, depth: int) -> object:
        """The rendered value, which still contains the markers of values to omit."""
        self.budget.node()
        if isinstance(template, str):
            return self.typed(template)
        if depth > limits.DEPTH:
            raise LimitExceeded(f"a value of more than {limits.DEPTH} levels")
        if isinstance(template, dict):
            return {key: self.value(each, depth + 1) for key, each in template.items()}
        if isinstance(template, list):
            return [self.value(each, depth + 1) for each in template]
        return template

    def typed(self, template: str) -> object:
        matched = (_TYPED_NEWER if self._newer else _TYPED).match(template)
        if matched is None:
            return self.text(template)
        kind = matched.group(1)
        if kind == "list":  # render the whole expression as JSON: a filter binds tightest
            whole = f"{{{{ ({template[2 : matched.end(1)].removeprefix('-').removeprefix('+')}) | object }}}}"
            try:
                self._sandbox.template(whole)
            except TemplateSyntaxError:
                return self.text(template)  # not an expression, or faulty: the original text gives the error
            template = whole
        text = self.text(template)
        try:
            return _converted(text, kind, newer=self._newer)
        except (ValueError, RecursionError):
            return text if self._newer else None

    def text(self, template: str) -> str:
        if _TAG.search(template) is None:
            text = _plain(template)
            self.budget.printed(len(text))
            return text
        text = self._sandbox.run(self._sandbox.template(template), self._names, self.budget)
        _refuse_halves(text)
        return text

    def _rendered_when_used(self, lazy: Mapping[str, object]) -> dict[str, object]:
        return {
            name: LazyVariable(self.lazily, value) if is_rendered_when_used(value) else value
            for name, value in lazy.items()
        }

    def lazily(self, template: str) -> object:
        self._lazy_depth += 1
        try:
            if self._lazy_depth > LAZY_DEPTH:
                raise LimitExceeded(f"more than {LAZY_DEPTH} variables that refer to each other")
            return self.typed(template)
        finally:
            self._lazy_depth -= 1


def is_rendered_when_used(value: object) -> TypeGuard[str]:
    """Whether the newer rules render the variable. (The older rules render no variable.)"""
    return isinstance(value, str) and ("{{" in value or "{%" in value)


@cache
def _sandbox(newer: bool) -> Sandbox:
    return Sandbox(newer=newer)


def _plain(text: str) -> str:
    """The text as Jinja2 renders it: line ends are normalized, and a final line end is removed."""
    if "\n" not in text and "\r" not in text:
        return text
    lines = newline_re.split(text)[::2]
    return "\n".join(lines[:-1] if lines[-1] == "" else lines)


def _converted(text: str, kind: str, *, newer: bool) -> object:
    if kind == "bool":
        return truth(text, unknown_is_false=newer)
    if kind == "int":
        return int(text)
    if kind == "float":
        number = float(text)
        if not math.isfinite(number):
            raise ValueError("not a JSON number")
        return number
    if _HALF.search(text):
        _refuse_halves(json.dumps(json.loads(text), ensure_ascii=False))
    return json.loads(text, parse_constant=_no_constant)


def _refuse_halves(text: str) -> None:
    """Raise UnicodeEncodeError for surrogates, which Kubernetes objects and the evaluator's answers cannot contain."""
    if not text.isascii():
        text.encode()


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


def _without_omitted(value: object, run: _Run) -> object:
    if isinstance(value, str):
        return _OMITTED if value == run.omit else value
    if isinstance(value, dict):
        entries = ((key, _without_omitted(each, run)) for key, each in value.items())
        return {key: each for key, each in entries if each is not _OMITTED}
    if isinstance(value, list):
        items = (_without_omitted(each, run) for each in value)
        return [each for each in items if each is not _OMITTED]
    return value
