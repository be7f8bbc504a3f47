"""Every demo links to Temporal's list of its lifecycles, and the docs name the query of each area."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from documented import ROOT

from domain.identity import all_areas, all_kinds
from localcloud.demo.scenarios import SCENARIOS
from localcloud.temporal_ui import lifecycles_link, lifecycles_query


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_demo_names_the_areas_of_all_kinds_that_it_shows(name: str) -> None:
    kinds = {**all_kinds(), **{kind.name: kind for kind in SCENARIOS[name].kinds if SCENARIOS[name].package}}
    shown = {kinds[kind.name].area for kind in SCENARIOS[name].kinds if kind.name in kinds}
    assert shown - {""} <= set(SCENARIOS[name].areas) <= {*all_areas(), *(kind.area for kind in kinds.values())}


def test_a_link_brings_its_query_to_the_web_ui_unchanged() -> None:
    query = lifecycles_query("claims")
    link = urlsplit(lifecycles_link("http://127.0.0.1:8233", query))
    assert link.path == "/namespaces/default/workflows"
    assert parse_qs(link.query) == {"query": [query]}
    assert all(character.isascii() and character not in " '\"()" for character in link.query)


@pytest.mark.parametrize("area", all_areas())
def test_the_query_of_each_area_is_in_the_documentation(area: str) -> None:
    assert lifecycles_query(area) in (ROOT / "docs" / "temporal.md").read_text()
