"""Every known weakness of the replaced system is held by a test that names it in its docstring: W1 to W31."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
KNOWN = range(1, 32)
_NAMED = re.compile(r"\bW(\d+)\b")


def named() -> Iterator[int]:
    """The weaknesses that docstrings of tests name."""
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text()
        if not _NAMED.search(text) or path == Path(__file__):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield from map(int, _NAMED.findall(ast.get_docstring(node) or ""))


def test_every_weakness_has_a_test() -> None:
    assert set(named()) == set(KNOWN)
