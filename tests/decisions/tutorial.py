"""The package that docs/adding-a-lifecycle.md builds: its files written as the page says, and installed."""

from __future__ import annotations

import re
from pathlib import Path

import documented
from documented import ROOT

from localcloud.packages import install

PAGE = ROOT / "docs" / "adding-a-lifecycle.md"
EXAMPLE = ROOT / "examples" / "greeting"
_NAMED = re.compile(r"# (\S+\.(?:py|toml))\n")


def files() -> dict[str, str]:
    """The files of the page, by their path in the package."""
    blocks = (block.text for block in documented.blocks_of(PAGE))
    return {named[1]: text[named.end() :] for text in blocks if (named := _NAMED.match(text))}


def build(to: Path) -> Path:
    """Write the package as the page says and install it; returns what belongs on PYTHONPATH."""
    for name, text in files().items():
        path = to / "greeting" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    install(to / "greeting", to / "packages")
    return to / "packages"
