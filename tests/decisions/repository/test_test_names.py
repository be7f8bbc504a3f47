"""The names of tests are sentences for people: at most 80 characters, without numbers of our documents."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
LONGEST = 80
# A weakness, defect, variant, fault or numbered decision of a reference: `test_w28_a_policy_is_refused`.
_NUMBERED = re.compile(r"test_[a-z]\d+_")


def names(source: str) -> list[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = (node.name for node in ast.walk(ast.parse(source)) if isinstance(node, functions))
    return [name for name in found if name.startswith("test_")]


def faulty(name: str) -> bool:
    return len(name) > LONGEST or _NUMBERED.match(name) is not None


def test_names_of_tests_are_short_sentences_without_numbers_of_documents() -> None:
    paths = sorted(TESTS.rglob("test_*.py"))
    assert len(paths) > 300
    assert [
        f"{path.relative_to(TESTS)}: {name}" for path in paths for name in names(path.read_text()) if faulty(name)
    ] == []


def test_a_long_name_and_a_numbered_one_are_found() -> None:
    source = f"def test_w28_it_heals(): ...\nasync def test_{'a' * 76}(): ...\ndef test_ec2_answers(): ...\n"
    assert [name for name in names(source) if faulty(name)] == ["test_w28_it_heals", f"test_{'a' * 76}"]
