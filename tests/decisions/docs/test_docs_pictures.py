"""Every picture of the documentation is shown by a page, and one command takes the screenshots again."""

from __future__ import annotations

import re

from documented import PAGES, ROOT

FOLDER = ROOT / "docs" / "pictures"
MOST_BYTES = 300_000


def test_every_picture_is_shown_by_a_page() -> None:
    shown = {name for page in PAGES for name in re.findall(r"\]\((?:docs/)?pictures/([^)\s]+)\)", page.read_text())}
    assert shown == {picture.name for picture in FOLDER.iterdir()}


def test_one_command_takes_every_screenshot() -> None:
    [names] = re.findall(r"^TAKEN = \((.*?)\)", _script(), re.MULTILINE | re.DOTALL)
    taken = set(re.findall(r'"([a-z-]+)"', names))
    assert taken == {picture.stem for picture in FOLDER.glob("*.png")}


def test_no_screenshot_is_large() -> None:
    assert all(picture.stat().st_size <= MOST_BYTES for picture in FOLDER.glob("*.png"))


def _script() -> str:
    return (ROOT / "tests" / "temporal" / "pictures.py").read_text()
