"""The documentation says what the code does: settings, dependencies, links.

`./run python tests/decisions/test_docs.py` regenerates docs/settings.md.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest
from claim_domain import NAMES

from domain.claims.domain_names import DomainNames
from domain.custom_resources import custom_resources
from domain.loadbalancers import constants as balancers
from domain.resource import CustomResource
from domain.schema import field_schema
from engine.settings import GROUPS, Settings, as_text, range_of, settings_of, unknown_variables, variable_of

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / "docs" / "settings.md"
CUSTOM_RESOURCES = ROOT / "docs" / "custom-resources.md"
PAGES = sorted(
    [*ROOT.glob("*.md"), *(page for name in ("docs", "deploy", "examples") for page in (ROOT / name).rglob("*.md"))]
)

HEADER = """# Settings

Every process reads environment variables once, when it starts. This page is generated from `engine/settings.py`, and a
test compares the two. Durations are seconds (`90`, `0.5`), Go's notation (`90s`, `5m`, `1h30m`) or ISO 8601.

Temporal's own variables (`TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`, `TEMPORAL_API_KEY`, `TEMPORAL_TLS_*`, or a profile
in its configuration file) set the connection to Temporal; `KUBECONFIG` or the pod's service account sets the connection
to Kubernetes. Settings that users may change while Perdure runs are read from the replaced systems' own ConfigMaps and
Secrets, as before ([AWS accounts](accounts.md#configuration)).

Worker, watcher and command line of one installation need the same `OPERATOR_DOMAIN`; `perdure crds` renders the
definitions of resource claims for it.

If a value cannot be used, the process ends with one line that names the variable. A variable `PERDURE_*` that is no
setting has no effect: each process that starts, and each command that reads settings, such as `perdure up`, names the
variable once on standard error, together with the setting whose name is most similar.

`perdure settings` prints the settings in effect, where each comes from (the environment, the state directory of a
local deployment, or the default), and the variables that have no effect. With `--set` it omits settings that are not
set. A variable without the prefix `PERDURE_` has the name that a replaced system or OpenTelemetry gives it.
"""
TABLE = """
| variable | default | values | meaning |
|---|---|---|---|
"""


def rendered() -> str:
    return HEADER + "".join(
        f"\n## {group.__doc__}\n{TABLE}" + "".join(map(row, settings_of(group))) for group in GROUPS
    )


def row(name: str) -> str:
    field = Settings.model_fields[name]
    default = as_text(field.default)
    shown = f"`{default}`" if default else ""
    return f"| `{variable_of(name)}` | {shown} | {range_of(name)} | {field.description} |\n"


def test_perdures_own_settings_are_at_most_45() -> None:
    names = map(variable_of, Settings.model_fields)
    assert len([name for name in names if name.startswith("PERDURE_")]) <= 45


def test_every_setting_is_in_one_group() -> None:
    assert sorted(name for group in GROUPS for name in settings_of(group)) == sorted(Settings.model_fields)


def test_every_setting_is_documented_correctly() -> None:
    assert SETTINGS.read_text() == rendered(), f"regenerate it: ./run python {Path(__file__).relative_to(ROOT)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_speaks_of_a_setting_that_is_not_there(page: Path) -> None:
    assert unknown_variables(re.findall(r"\bPERDURE_[A-Z_]*[A-Z]\b", page.read_text())) == {}


def test_every_variable_that_is_read_is_a_setting_or_declared_as_none() -> None:
    sources = [file for each in ROOT.iterdir() if each.name[0] != "." for file in each.rglob("*.py")]
    read = re.compile(r"""environ(?:\.get\(|\.pop\(|\[)"(PERDURE_\w+)""")
    names = {name for file in sources for name in read.findall(file.read_text())}
    assert "PERDURE_USER" in names
    assert unknown_variables(names) == {}


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


DOCUMENTED = [model for model in custom_resources() if model.kind_of.area in ("claims", "loadbalancers")]
# What every reference has, and what Poolboy left, is said once for all kinds.
SAID_ONCE = {"apiVersion", "kind", "namespace", "diffBase", "kopf"}


def section(heading: str) -> str:
    """What the page on custom resources says under a heading."""
    _, _, rest = CUSTOM_RESOURCES.read_text().partition(f"\n{heading}\n")
    assert rest, heading
    return re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def names_within(schema: object) -> set[str]:
    """Every field's name in a schema, however deep."""
    if not isinstance(schema, dict):
        return set()
    properties = schema.get("properties", {})
    return set(properties).union(*(names_within(part) for part in [*properties.values(), schema.get("items")]))


@pytest.mark.parametrize("model", DOCUMENTED, ids=lambda model: model.kind_of.name)
def test_every_field_and_column_is_documented(model: type[CustomResource]) -> None:
    documented = section(f"### {model.kind_of.name}")
    fields = [model.model_fields[part] for part in ("spec", "status") if part in model.model_fields]
    wanted = set().union(*(names_within(field_schema(field)) for field in fields)) - SAID_ONCE
    assert wanted - set(re.findall(r"\w+", documented)) == set()
    assert f"Columns: {', '.join(column.name for column in model.printer_columns)}." in documented


def test_every_label_and_annotation_of_resource_claims_is_documented() -> None:
    names = [getattr(NAMES, name) for name in vars(DomainNames) if name.endswith(("_label", "_key", "_annotation"))]
    keys = {key.removeprefix(f"{NAMES.domain}/") for key in names}
    assert len(keys) > 15
    documented = re.findall(r"`([a-z-]+)`", section("### Labels, annotations, finalizers of resource claims"))
    assert keys - set(documented) == set()


def test_every_label_annotation_and_finalizer_of_load_balancers_is_documented() -> None:
    prefixes = ("yawol.stackit.cloud/", "stackit.cloud/", "loadbalancer.yawol", "perdure.dev/", "lbm-")
    elsewhere = {balancers.API_VERSION, balancers.DEFAULT_CLASS}  # no keys
    keys = {value for value in vars(balancers).values() if str(value).startswith(prefixes)} - elsewhere
    assert keys
    page = CUSTOM_RESOURCES.read_text()
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []


def anchor(heading: str) -> str:
    remaining = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return remaining.replace(" ", "-")


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
