"""What the site needs beside docs/: the pages and files that lie with the code, and links that lead to both.

A page in docs/ links to `../deploy/rbac/` or `../examples/api/README.md`, as the repository shows it. On the site these
directories lie beside the pages, so the way up is left out; pages that come from there go up by one directory less. A
directory's link leads to its README, or to a page that lists its files.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
BESIDE = ("deploy", "examples")
SHOWN = {".md", ".yaml", ".yml", ".json"}
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies beside docs/."""
    for path in _beside():
        uri = path.relative_to(ROOT).as_posix()
        added = File.generated(config, uri, abs_src_path=str(path))
        added.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(added)
    for directory in {path.parent for path in _beside()}:
        if not (directory / "README.md").exists():
            uri = f"{directory.relative_to(ROOT).as_posix()}/README.md"
            listed = File.generated(config, uri, content=_listing(directory))
            listed.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(listed)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead each link to where its target lies on the site."""
    here = PurePosixPath(page.file.src_uri)
    in_repository = here if here.parts[0] in BESIDE and len(here.parts) > 1 else PurePosixPath("docs") / here

    def led(found: re.Match[str]) -> str:
        before, path, anchor, after = found.groups()
        return f"{before}{_on_site(path, in_repository, here)}{anchor or ''}{after}"

    return LINK.sub(led, markdown)


def _beside() -> list[Path]:
    found = (path for name in BESIDE for path in sorted((ROOT / name).rglob("*")) if path.suffix in SHOWN)
    return [path for path in found if "templates" not in path.parts]  # the chart's are no YAML yet


def _listing(directory: Path) -> str:
    names = [each.name for each in sorted(directory.iterdir()) if each.suffix in SHOWN]
    links = "\n".join(f"- [{name}]({name})" for name in names)
    return f"# {directory.relative_to(ROOT).as_posix()}\n\n{links}\n"


def _on_site(path: str, in_repository: PurePosixPath, here: PurePosixPath) -> str:
    """The link from a page of the site, of what a path means in the repository."""
    target = (ROOT / in_repository.parent / path).resolve()
    if not target.is_relative_to(ROOT):
        return path
    if target.is_dir():
        target = target / "README.md"
    wanted = target.relative_to(ROOT)
    if wanted.parts[0] == "docs":
        wanted = wanted.relative_to("docs")
    elif wanted.parts[0] not in BESIDE:
        return path
    return "../" * (len(here.parts) - 1) + wanted.as_posix()
