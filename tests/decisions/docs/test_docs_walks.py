"""The guided walks through the code name files, functions and classes that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "following-a-behaviour.md").read_text()
FILE = re.compile(r"`([\w/]+\.py)`")
NAME = re.compile(r"`([A-Za-z_][\w.]*)`")
# A row of a walk: a file, names that it defines, and what happens.
ROWS = [
    (found.group(1), name)
    for found in re.finditer(r"^\| `([\w/]+\.py)` \| ((?:`[\w.]+`(?:, )?)+) \|", PAGE, re.MULTILINE)
    for name in NAME.findall(found.group(2))
]


def defined(body: list[ast.stmt], within: str = "") -> Iterator[str]:
    """Functions and classes at any depth; a method has the name of its class before its own."""
    for each in body:
        if isinstance(each, ast.ClassDef):
            yield each.name
            yield from defined(each.body, f"{each.name}.")
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{within}{each.name}"
            yield from defined(each.body)


def names_in(file: str) -> set[str]:
    return set(defined(ast.parse((ROOT / file).read_text()).body))


def test_five_walks_are_read() -> None:
    assert PAGE.count("| file | functions | what happens |") == 5
    assert len(ROWS) > 100


@pytest.mark.parametrize("file", sorted(set(FILE.findall(PAGE))))
def test_each_file_of_a_walk_exists(file: str) -> None:
    assert (ROOT / file).is_file()


@pytest.mark.parametrize("file", sorted({file for file, _ in ROWS}))
def test_a_file_of_a_walk_defines_what_the_walk_names(file: str) -> None:
    assert sorted({name for of, name in ROWS if of == file} - names_in(file)) == []


def test_names_in_sentences_exist_in_a_file_of_the_walks() -> None:
    known = {"World", "Decision", "Action", "Patch", "Delete", "RecordEvents", "fold"}
    for file in set(FILE.findall(PAGE)):
        known |= {part for name in names_in(file) for part in (name, name.rpartition(".")[2])}
    listed = {name for _, name in ROWS}
    named = {name for name in NAME.findall(PAGE) if not name.endswith(".py")} - listed
    assert sorted(named - known) == []
