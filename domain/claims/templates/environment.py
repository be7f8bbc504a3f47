"""The sandbox for all templates of claims, providers and pools.

Jinja2 3.1 configured as in Poolboy (chainable undefined that fails when printed, no extensions, no loader), with
restrictions:

- attributes that begin with an underscore or lead into Python's internals are errors; Jinja2's own sandbox returns
  undefined, which conditions treat as false;
- inputs cannot be changed: otherwise a claim's `autoDelete.when` could rewrite the provider for the next rendering;
- the machine's clock is unreachable: `datetime` and `date` use the rendering's clock;
- loop iterations and calls are counted; sums, products, powers, concatenations and formats are measured before they are
  computed (`limits`).
"""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from datetime import date
from typing import NoReturn

from jinja2 import ChainableUndefined, Template, Undefined, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment, SandboxedFormatter, modifies_known_mutable
from jinja2.utils import generate_lorem_ipsum

from domain.claims.templates import limits
from domain.claims.templates.datetimes import Clock
from domain.claims.templates.errors import LimitExceeded
from domain.claims.templates.filters import filters
from domain.claims.templates.views import View

# A short compiled template takes about 5 KiB, a long one eighty times its text.
COMPILED = 6_000
COMPILED_LENGTH = 512 * 1024

_CLOCK_WAYS = frozenset({"now", "utcnow", "today"})
# Methods whose integer arguments determine the result's length.
_SIZED_METHODS = frozenset({"center", "expandtabs", "ljust", "rjust", "to_bytes", "zfill"})
_JINJA_NAMES = ("_loop_vars", "_block_vars")  # added by Jinja2 to every call's arguments

clock_of_rendering: ContextVar[Clock] = ContextVar("clock_of_rendering")


class RenderingContext(Context):
    budget: limits.Budget
    _given: frozenset[int] | None = None

    def derived(self, locals: dict[str, object] | None = None) -> RenderingContext:
        context = super().derived(locals)
        assert isinstance(context, RenderingContext)  # noqa: S101 - made by the environment's context_class
        context.budget = self.budget
        context._given = self._given
        return context

    def resolve_or_missing(self, key: str) -> object:
        value = super().resolve_or_missing(key)
        return value.value() if isinstance(value, LazyVariable) else value

    def was_given(self, value: object) -> bool:
        """Whether the value is one of the template's inputs, which must not be changed. The inputs are collected at the
        first call.
        """
        if self._given is None:
            self._given = frozenset(_containers(self.parent.values()))
        return id(value) in self._given

    def joined(self, parts: tuple[object, ...]) -> str:
        texts = []
        for part in parts:
            limits.values(part)
            texts.append(str(part))
        limits.string(sum(map(len, texts)))
        return "".join(texts)


class LazyVariable:
    __slots__ = ("_render", "_text", "_value")

    def __init__(self, render: Callable[[str], object], text: str) -> None:
        self._render = render
        self._text = text

    def value(self) -> object:
        """The rendered value; after an error, a value that raises the error when it is used.

        Jinja2 resolves names at the start of a template, even for branches not taken.
        """
        if not hasattr(self, "_value"):
            try:
                self._value = self._render(self._text)
            except MemoryError:
                raise
            except Exception as error:
                self._value = _Failing(error)
        return self._value


class _Failing:
    def __init__(self, error: Exception) -> None:
        object.__setattr__(self, "_error", error)

    def __getattribute__(self, name: str) -> object:
        if name == "__class__":
            return _Failing
        raise object.__getattribute__(self, "_error")

    def _fail(self, *_: object) -> NoReturn:
        raise object.__getattribute__(self, "_error")

    __str__ = __repr__ = __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __call__ = _fail
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __truediv__ = __int__ = __float__ = _fail


def _containers(values: Iterable[object]) -> set[int]:
    found: set[int] = set()
    waiting: list[object] = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, View):
            value = value._raw
        if isinstance(value, (dict, list, set)) and id(value) not in found:
            found.add(id(value))
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return found


class _Generator(CodeGenerator):
    def visit_ExprStmt(self, node: nodes.ExprStmt, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        """Emit code that counts a step, for each statement (a bare context reference) that `_generate` has inserted."""
        if isinstance(node.node, nodes.ContextReference):
            self.writeline("context.budget.step()", node)
        else:
            super().visit_ExprStmt(node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802 - Jinja2's name
        self.write("context.joined((")
        for each in node.nodes:
            self.visit(each, frame)
            self.write(", ")
        self.write("))")


class _Formatter(SandboxedFormatter):
    length = 0

    def format_field(self, value: object, format_spec: str) -> str:
        """Check the size before formatting, because the width may come from an argument."""
        limits.field(format_spec)
        limits.values(value)
        text = str(super().format_field(value, format_spec))
        self.length += len(text)
        limits.string(self.length)
        return text


class Sandbox(SandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "**", "%"})
    context_class = RenderingContext
    code_generator_class = _Generator

    def __init__(self, *, newer: bool) -> None:
        super().__init__(undefined=ChainableUndefined, finalize=_printed, cache_size=0)
        self.filters = filters(newer=newer)
        self.globals["lipsum"] = _lipsum
        self._compiled: OrderedDict[str, Template] = OrderedDict()
        self._compiled_length = 0

    def template(self, text: str) -> Template:
        template = self._compiled.get(text)
        if template is not None:
            self._compiled.move_to_end(text)
            return template
        limits.template_text(text)
        template = self.from_string(text)
        self._compiled[text] = template
        self._compiled_length += len(text)
        while len(self._compiled) > COMPILED or self._compiled_length > COMPILED_LENGTH:
            oldest, _ = self._compiled.popitem(last=False)
            self._compiled_length -= len(oldest)
        return template

    def run(self, template: Template, names: Mapping[str, object], budget: limits.Budget) -> str:
        context = template.new_context(dict(names))
        assert isinstance(context, RenderingContext)  # noqa: S101 - made by context_class
        context.budget = budget
        pieces = []
        for piece in template.root_render_func(context):
            budget.printed(len(piece))
            pieces.append(piece)
        return "".join(pieces)

    def _generate(
        self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
    ) -> str:
        limits.template_tree(source)
        for body in source.find_all((nodes.For, nodes.Macro, nodes.CallBlock)):
            step = nodes.ExprStmt(nodes.ContextReference(lineno=body.lineno), lineno=body.lineno)
            body.body.insert(0, step)  # type: ignore[attr-defined]
        return super()._generate(source, name, filename, defer_init)

    def getattr(self, obj: object, attribute: str) -> object:
        if attribute in _CLOCK_WAYS and (kind := _date_kind(obj)) is not None:
            return clock_of_rendering.get().way(kind, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: object, argument: object) -> object:
        if isinstance(argument, str) and argument in _CLOCK_WAYS and _date_kind(obj) is not None:
            return self.getattr(obj, str(argument))
        return super().getitem(obj, argument)

    def unsafe_undefined(self, obj: object, attribute: str) -> Undefined:
        """Raise SecurityError, because an undefined value would be false in a condition."""
        if isinstance(obj, Undefined):
            return obj
        raise SecurityError(f"access to attribute {attribute!r} of {type(obj).__name__!r} object is unsafe.")

    def wrap_str_format(self, value: object) -> Callable[..., str] | None:
        if not isinstance(value, types.BuiltinMethodType) or value.__name__ not in ("format", "format_map"):
            return None
        text = value.__self__
        if not isinstance(text, str):
            return None
        mapped = value.__name__ == "format_map"

        def formatted(*args: object, **kwargs: object) -> str:
            if mapped:
                (mapping,) = args
                return _Formatter(self).vformat(text, (), mapping)  # type: ignore[call-overload, no-any-return]
            return _Formatter(self).vformat(text, args, kwargs)

        return formatted

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        if operator == "+":
            limits.added(left, right)
        elif operator == "*":
            limits.multiplied(left, right)
        elif operator == "**":
            limits.raised(left, right)
        elif isinstance(left, str):
            limits.percent_format(left, right)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: object, *args: object, **kwargs: object) -> object:  # noqa: N805
        assert isinstance(__context, RenderingContext)  # noqa: S101 - made by context_class
        __context.budget.step()
        if isinstance(__obj, types.BuiltinMethodType):
            for name in _JINJA_NAMES:
                kwargs.pop(name, None)
            _check_method(__context, __obj, (*args, *kwargs.values()))
            return limits.sized(super().call(__context, __obj, *args, **kwargs))
        return super().call(__context, __obj, *args, **kwargs)


def _printed(value: object) -> object:
    if isinstance(value, Undefined):
        value._fail_with_undefined_error()
    if not isinstance(value, (str, int, float)):
        limits.values(value)
    return value


def _date_kind(value: object) -> type[date] | None:
    if isinstance(value, date):
        return type(value)
    return value if isinstance(value, type) and issubclass(value, date) else None


def _check_method(context: RenderingContext, method: types.BuiltinMethodType, args: tuple[object, ...]) -> None:
    owner, name = method.__self__, method.__name__
    if name in _SIZED_METHODS:
        for each in args:
            limits.number(each)
    if isinstance(owner, (dict, list, set)):
        if modifies_known_mutable(owner, name) and context.was_given(owner):
            raise SecurityError(f"{name!r} would change a variable of the template")
        if name == "extend" and args and hasattr(args[0], "__len__"):
            limits.items(len(owner) + len(args[0]))
    elif isinstance(owner, (str, bytes)):
        _check_text_method(owner, name, args)


def _check_text_method(text: str | bytes, name: str, args: tuple[object, ...]) -> None:
    if name == "replace" and len(args) > 1 and isinstance(args[1], type(text)):
        limits.string(len(text) + (text.count(args[0]) * len(args[1])))  # type: ignore[arg-type]
    elif name == "join" and args:
        limits.values(args[0])
        if hasattr(args[0], "__len__"):
            limits.string(len(args[0]) * len(text))
    elif name == "expandtabs":
        width = args[0] if args and isinstance(args[0], int) else 8
        limits.string(len(text) + len(text.split("\t" if isinstance(text, str) else b"\t")) * width)  # type: ignore[arg-type]
    elif name == "translate" and args and isinstance(args[0], dict):
        longest = max((len(each) for each in args[0].values() if isinstance(each, str)), default=1)
        limits.string(len(text) * longest)


def _lipsum(n: int = 5, html: bool = True, min: int = 20, max: int = 100) -> str:
    if n * max > limits.WORDS:
        raise LimitExceeded(f"more than {limits.WORDS} words of lipsum")
    return generate_lorem_ipsum(n, html, min, max)
