"""Soft limits of templates, far above normal use and far below damage; the error names the limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set

from jinja2 import nodes
from jinja2.sandbox import MAX_RANGE

from domain.claims.templates.errors import LimitExceeded

TEMPLATE_LENGTH = 256 * 1024  # characters of a template with tags; texts without tags are not compiled
TEMPLATE_NODES = 20_000
TEMPLATE_DEPTH = 150  # Python compiles at most 200 nested brackets
STEPS = 200_000  # loop iterations and calls per rendering
STRING_LENGTH = 1024 * 1024
RESULT_LENGTH = 2 * 1024 * 1024  # characters in all texts of one rendering
ITEMS = MAX_RANGE  # items of a list; values within a value that is printed
RESULT_NODES = 200_000
DEPTH = 100  # levels of nested mappings and lists
INTEGER_BITS = 16_384
FIELD_WIDTH = 10_000  # characters of a number or text in a format
WORDS = 10_000  # words of lipsum
PATTERN_LENGTH = 100_000  # characters of strgen's result

_NUMBER = re.compile(r"\d+")


class Budget:
    __slots__ = ("length", "nodes", "steps")

    def __init__(self) -> None:
        self.steps = STEPS
        self.length = RESULT_LENGTH
        self.nodes = RESULT_NODES

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise LimitExceeded(f"more than {STEPS} steps (loop iterations, calls)")

    def printed(self, length: int) -> None:
        self.length -= length
        if self.length < 0:
            raise LimitExceeded(f"a result of more than {RESULT_LENGTH} characters")

    def node(self) -> None:
        self.nodes -= 1
        if self.nodes < 0:
            raise LimitExceeded(f"a result of more than {RESULT_NODES} values")


def template_text(text: str) -> None:
    if len(text) > TEMPLATE_LENGTH:
        raise LimitExceeded(f"a template of more than {TEMPLATE_LENGTH} characters")


def template_tree(tree: nodes.Node) -> None:
    seen = 0
    level: list[nodes.Node] = [tree]
    for _ in range(TEMPLATE_DEPTH):
        seen += len(level)
        if seen > TEMPLATE_NODES:
            raise LimitExceeded(f"a template of more than {TEMPLATE_NODES} parts")
        level = [child for node in level for child in node.iter_child_nodes()]
        if not level:
            return
    raise LimitExceeded(f"a template nested more than {TEMPLATE_DEPTH} levels deep")


def string(length: int) -> None:
    if length > STRING_LENGTH:
        raise LimitExceeded(f"a text of more than {STRING_LENGTH} characters")


def items(count: int) -> None:
    if count > ITEMS:
        raise LimitExceeded(f"a list of more than {ITEMS} items")


def bits(count: int) -> None:
    if count > INTEGER_BITS:
        raise LimitExceeded(f"an integer of more than {INTEGER_BITS} bits")


def values(value: object) -> None:
    """Limit all nested members: lists that share members are small in memory and huge in print."""
    if not _is_container(value):
        return
    seen, length = 0, 0
    level: list[object] = [value]
    for _ in range(DEPTH):
        below: list[object] = []
        for each in level:
            for inner in _within(each):
                seen += 1
                if seen > ITEMS:
                    raise LimitExceeded(f"a value of more than {ITEMS} parts")
                if isinstance(inner, str):
                    length += len(inner)
                    string(length)
                elif _is_container(inner):
                    below.append(inner)
        level = below
        if not level:
            return
    raise LimitExceeded(f"a value of more than {DEPTH} levels")


def _is_container(value: object) -> bool:
    return isinstance(value, (Mapping, Sequence, Set)) and not isinstance(value, (str, bytes, range))


def _within(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from value.keys()
        yield from value.values()
    elif isinstance(value, (Sequence, Set)):
        yield from value


def sized(value: object) -> object:
    if isinstance(value, (str, bytes)):
        string(len(value))
    elif isinstance(value, (list, tuple)):
        items(len(value))
    elif isinstance(value, int):
        bits(value.bit_length())
    return value


def added(left: object, right: object) -> None:
    if isinstance(left, (str, bytes)) and isinstance(right, (str, bytes)):
        string(len(left) + len(right))
    elif isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        items(len(left) + len(right))


def multiplied(left: object, right: object) -> None:
    if isinstance(left, int) and isinstance(right, int):
        bits(left.bit_length() + right.bit_length())
        return
    for one, other in ((left, right), (right, left)):
        if isinstance(one, (str, bytes)) and isinstance(other, int):
            string(len(one) * other)
        elif isinstance(one, (list, tuple)) and isinstance(other, int):
            items(len(one) * other)


def raised(base: object, power: object) -> None:
    """Refuse too large powers; floats are not checked, because they overflow by themselves."""
    if isinstance(base, int) and isinstance(power, int) and power > 0:
        bits(base.bit_length() * power)


def number(value: object) -> None:
    if isinstance(value, int) and abs(value) > STRING_LENGTH:
        raise LimitExceeded(f"a length, width or count of more than {STRING_LENGTH}")


def field(spec: str) -> None:
    if any(int(digits) > FIELD_WIDTH for digits in _NUMBER.findall(spec)):
        raise LimitExceeded(f"a field of more than {FIELD_WIDTH} characters in a format")


def percent_format(text: str, arguments: object) -> None:
    for spec in re.findall(r"%%|%(?:\([^)]*\))?([-+ #0-9.*]*)", text):
        if "*" in spec:
            raise LimitExceeded("a field width of * in a format")
        field(spec)
    values(arguments)
    longest = max((len(each) for each in _within(arguments) if isinstance(each, str)), default=0)
    longest = len(arguments) if isinstance(arguments, str) else longest
    if longest > FIELD_WIDTH:
        string(text.count("%") * longest)


def pattern(text: str) -> None:
    counts = _NUMBER.findall(" ".join(re.findall(r"\{[^}]*", text)))
    if len(text) > FIELD_WIDTH or sum(map(int, counts)) > PATTERN_LENGTH:
        raise LimitExceeded(
            f"a strgen pattern that has more than {FIELD_WIDTH} characters, or may generate more than {PATTERN_LENGTH}"
        )
