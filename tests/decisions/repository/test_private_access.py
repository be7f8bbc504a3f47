"""Tests use the public surface of the product, and none of its private names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[2]
PRODUCT = ("domain", "activities", "workflows", "workers", "starters", "engine", "localcloud", "yawollet")
NAMED_TUPLES = ("_replace", "_asdict", "_fields", "_make")  # public in spite of their names


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLES


def defined(tree: ast.AST) -> Iterator[str]:
    """The names of functions and classes, and of attributes of `self` and `cls`."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def accesses(tree: ast.AST, products: frozenset[str]) -> Iterator[str]:
    """Imports and attributes with a private name that the product defines and the test's module does not."""
    own = frozenset(defined(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PRODUCT:
            yield from (alias.name for alias in node.names if private(alias.name))
        elif isinstance(node, ast.Attribute) and private(node.attr) and node.attr in products - own:
            yield node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("setattr") and len(node.args) > 1:
            name = node.args[1].value if isinstance(node.args[1], ast.Constant) else ""
            yield from [str(name)] if private(str(name)) and name in products else []


def test_no_test_accesses_a_private_name_of_the_product() -> None:
    root = TESTS.parent
    sources = (ast.parse(path.read_text()) for folder in PRODUCT for path in (root / folder).rglob("*.py"))
    products = frozenset(name for tree in sources for name in defined(tree) if private(name))
    found = [
        f"{path.relative_to(TESTS)}: {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name in accesses(ast.parse(path.read_text()), products)
    ]
    assert not found, "\n".join(found)


def test_private_imports_attributes_and_replacements_are_found() -> None:
    source = "from domain.a import _b\nx._c\nself._d\nx._own\ndef _own(): ...\nmonkeypatch.setattr(x, '_c', 1)\n"
    source += "x._replace()\n"
    assert list(accesses(ast.parse(source), frozenset({"_c", "_own", "_replace"}))) == ["_b", "_c", "_c"]
