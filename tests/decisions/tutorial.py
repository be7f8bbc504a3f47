"""A copy of the project in which docs/adding-a-lifecycle.md was followed: its files written, its change made."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import documented
from documented import ROOT

PAGE = ROOT / "docs" / "adding-a-lifecycle.md"
# What runs, and what one looks at while it does.
COPIED = ("domain", "engine", "workflows", "activities", "workers", "starters", "localcloud", "deploy", "examples")
_UNWANTED = shutil.ignore_patterns("__pycache__", ".*_cache")
_NAMED = re.compile(r"# (\S+)\n")


def follow(to: Path) -> Path:
    """Follow the page in a new copy of the project; returns the copy."""
    copy = to / "project"
    copy.mkdir()
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, ignore=_UNWANTED, symlinks=True)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for block in documented.blocks_of(PAGE):
        if block.language == "diff":
            subprocess.run(["git", "apply", "--verbose", "-"], cwd=copy, input=block.text, text=True, check=True)
        elif named := _NAMED.match(block.text):
            written = copy / named[1]
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(block.text[named.end() :])
    return copy
