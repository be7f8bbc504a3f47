"""docs/security.md says of every annotation of Perdure's own who writes it and what a made-up value does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "security.md"
PRODUCT = ("domain", "activities", "engine", "starters", "workers", "workflows", "yawollet")
NAME = re.compile(r"perdure\.dev/[A-Za-z0-9-]+")


def named_by_the_code() -> set[str]:
    """What the product's code names: annotations, finalizers, conditions and tags. Docstrings do not count."""
    files = (path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))
    return {each for path in files for each in literals(ast.parse(path.read_text()))}


def literals(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
            yield node.value


def section() -> str:
    return PAGE.read_text().partition("\n## Annotations\n")[2].partition("\n## ")[0]


def rows() -> list[list[str]]:
    lines = [line for line in section().splitlines() if line.startswith("| `perdure.dev/")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_every_annotation_of_the_code_is_on_the_page_and_no_other() -> None:
    assert set(NAME.findall(section())) == named_by_the_code()


def test_every_annotation_has_a_writer_an_effect_and_what_holds() -> None:
    assert len(rows()) > 20
    assert [row for row in rows() if len(row) != 5 or not all(row)] == []


def test_every_documented_admission_policy_is_shipped_and_names_its_annotations() -> None:
    named = {(name, row[1]): file for row in rows() for name in NAME.findall(row[0]) for file in policies(row[4])}
    assert set(named.values()) == {path.name for path in (ROOT / "deploy" / "rbac").glob("*-policy.yaml")}
    for (annotation, _), file in named.items():
        text = (ROOT / "deploy" / "rbac" / file).read_text()
        assert annotation in text or "object.metadata.?annotations == oldObject" in text


def policies(cell: str) -> list[str]:
    return re.findall(r"`([a-z]+-policy\.yaml)`", cell)
