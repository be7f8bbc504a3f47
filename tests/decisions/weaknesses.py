"""Weaknesses of a replaced system, by the numbers that docstrings of tests name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]


def named(pattern: str, besides: str, files: str = "") -> Iterator[int]:
    """The numbers that the pattern's group finds in docstrings of tests, `besides` being the file that asks.

    `files` finds the names of an area's tests, where other areas count their weaknesses in the same way.
    """
    number = re.compile(pattern)
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text()
        if not number.search(text) or not re.search(files, path.name) or path == Path(besides):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield from map(int, number.findall(ast.get_docstring(node) or ""))
