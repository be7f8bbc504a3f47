"""The documentation says what the code does: settings, dependencies, links.

`./run python tests/decisions/test_docs.py` writes docs/settings.md anew.
"""

from __future__ import annotations

import re
import tomllib
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest
from pydantic import AliasChoices

from engine.settings import Settings

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / "docs" / "settings.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "deploy").rglob("*.md")])

HEADER = """# Settings

Every process reads environment variables, once, when it starts. This page is written from `engine/settings.py` and held
to it by a test. Durations are seconds (`90`, `0.5`), Go's notation (`90s`, `5m`, `1h30m`) or ISO 8601.

Temporal's connection is set by Temporal's own variables (`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`,
`TEMPORAL_TLS_*`, or a profile in its configuration file), Kubernetes' by `KUBECONFIG` or the pod's service account.
What users change while Perdure runs stays in the replaced systems' own ConfigMaps and Secrets
([AWS accounts](accounts.md#configuration)).

`OPERATOR_DOMAIN` is the API group of resource claims and the prefix of all their labels and annotations, by default
`poolboy.gpte.redhat.com`. Worker, watcher and command line of one installation need the same one.

| variable | default | meaning |
|---|---|---|
"""


def shown(default: object) -> str:
    if isinstance(default, timedelta):
        return f"`{default.total_seconds():g}s`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default}`" if default not in ("", ()) else ""


def rendered() -> str:
    rows = []
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        names = [str(choice) for choice in alias.choices] if isinstance(alias, AliasChoices) else []
        variable = " or ".join(f"`{each}`" for each in names or [f"PERDURE_{name.upper()}"])
        rows.append(f"| {variable} | {shown(field.default)} | {field.description} |")
    return HEADER + "\n".join(rows) + "\n"


def test_every_setting_is_documented_as_it_is() -> None:
    assert SETTINGS.read_text() == rendered(), f"write it anew: ./run python {Path(__file__).relative_to(ROOT)}"


def test_every_dependency_is_documented_with_a_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [
        *project["project"]["dependencies"],
        *(one for extra in project["project"]["optional-dependencies"].values() for one in extra),
        *(one for group in project["dependency-groups"].values() for one in group),
    ]
    names = {re.split(r"[\[<>=~! ]", line, maxsplit=1)[0] for line in wanted}
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", (ROOT / "docs" / "dependencies.md").read_text(), re.MULTILINE)
    assert {name for name, _ in rows} == names
    assert len(rows) == len(names)
    assert all(reason.strip() for _, reason in rows)


def anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_leads_nowhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, part = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not part or part in anchors(target), link


if __name__ == "__main__":
    SETTINGS.write_text(rendered())
