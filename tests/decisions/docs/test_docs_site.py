"""The documentation as a site: each page has its place in the navigation, and the site needs nothing of others."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
# What a browser fetches by itself when it shows a page.
FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?(?:https?:)?//|<link\b[^>]*\bhref=\"?(?:https?:)?//"
)


def navigation() -> object:
    text = (ROOT / "mkdocs.yml").read_text()
    return yaml.safe_load(text.partition("\nnav:\n")[2])


def pages(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, list | dict):
        for each in entry.values() if isinstance(entry, dict) else entry:
            yield from pages(each)


def test_every_page_has_one_place_in_the_navigation() -> None:
    named = list(pages(navigation()))
    assert sorted(named) == sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))


def test_every_page_is_named_on_the_first() -> None:
    first = (ROOT / "docs" / "index.md").read_text()
    assert [page for page in pages(navigation()) if page != "index.md" and f"]({page})" not in first] == []


def test_the_tools_that_build_the_site_are_pinned() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["docs"]
    pinned = re.findall(r"^([a-z0-9-]+)==\S+", (ROOT / "docs.lock").read_text(), re.MULTILINE)
    assert {re.split(r"[<>=~]", line, maxsplit=1)[0] for line in wanted} <= set(pinned)


@pytest.mark.slow
def test_the_site_is_built_without_a_link_that_leads_nowhere_and_fetches_nothing(tmp_path: Path) -> None:
    command = [ROOT / ".ci" / "site", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"TERM": "dumb"})
    assert built.returncode == 0, built.stdout + built.stderr
    written = list(tmp_path.rglob("*.html"))
    assert len(written) > len(list((ROOT / "docs").rglob("*.md")))  # and those of deploy/ and examples/
    assert [page.name for page in written if FETCHED.search(page.read_text())] == []
    styles = "".join(style.read_text() for style in tmp_path.rglob("*.css"))
    assert styles
    assert re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)\"']*", styles) == []
