"""Summaries of actions, which Temporal's web UI shows, begin with a verb of the field's own vocabulary."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from documented import ROOT

# Words for which docs/concepts.md and the rest of the documentation have another: observe, reconcile, validate.
UNWANTED = re.compile(r"\b(look|looked|looks|mend|mends|whoever|have IAM|tell)\b")


def summaries() -> Iterator[tuple[str, str]]:
    """The text of every `title` and `summary` in `domain`, with its place; filled-in values become braces."""
    for path in sorted((ROOT / "domain").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "title":
                if isinstance(node.value, ast.Constant) and node.value.value:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", str(node.value.value)
            elif isinstance(node, ast.FunctionDef) and node.name == "summary":
                for each in ast.walk(node):
                    if isinstance(each, ast.Return) and each.value is not None:
                        words = [part.value for part in ast.walk(each.value) if isinstance(part, ast.Constant)]
                        yield f"{path.relative_to(ROOT)}:{each.lineno}", "{}".join(map(str, words))


def test_summaries_use_the_words_of_the_documentation() -> None:
    found = list(summaries())
    assert len(found) > 50
    assert [each for each in found if UNWANTED.search(each[1])] == []
