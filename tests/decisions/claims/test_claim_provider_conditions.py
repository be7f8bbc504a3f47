"""Which ResourceProviders say that their vars render differently under the two sets of template rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from domain.claims.json_objects import JsonObject
from domain.claims.provider_conditions import VARS_ARE_TEMPLATES, with_vars_condition
from domain.claims.stalled_condition import condition_at
from domain.claims.templates.renderer import Renderer

NOW = datetime(2026, 11, 24, 3, 0, tzinfo=UTC)


def provider(status: JsonObject | None = None, **values: object) -> JsonObject:
    return {"metadata": {"name": "base"}, "spec": {"vars": dict(values)}, "status": status or {}}  # type: ignore[dict-item]


def rendered(value: object, *, newer: bool) -> object:
    return Renderer(NOW, newer=newer).render("{{ v }}", {"base": "a"}, what="test", lazy={"v": value})


@pytest.mark.parametrize(
    "value",
    [
        "https://{{ base }}.example.com",
        "{% if base %}a{% endif %}",
        "plain",
        "{# remark #}",
        "{single}",
        7,
        ["{{ base }}"],
    ],
)
def test_the_condition_is_there_exactly_where_the_rules_differ(value: object) -> None:
    differs = rendered(value, newer=True) != rendered(value, newer=False)
    shown = condition_at(with_vars_condition(provider(v=value), NOW, newer=True), VARS_ARE_TEMPLATES)
    assert (shown is not None) == differs


@pytest.mark.parametrize(
    ("newer", "reason", "words"),
    [
        (True, "Rendered", "spec.vars.url are rendered where the variable is used"),
        (False, "PlainText", "spec.vars.url are used as plain text"),
    ],
)
def test_the_condition_says_which_rules_are_in_effect(newer: bool, reason: str, words: str) -> None:
    condition = condition_at(with_vars_condition(provider(url="{{ base }}"), NOW, newer=newer), VARS_ARE_TEMPLATES)
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("True", reason)
    assert words in str(condition["message"])
    assert "PERDURE_CLAIMS_OLDER_TEMPLATES" in str(condition["message"])


def test_many_variables_are_counted_and_their_values_are_not_shown() -> None:
    values = {f"v{index}": "{{ hidden }}" for index in range(8)}
    condition = condition_at(with_vars_condition(provider(**values), NOW, newer=True), VARS_ARE_TEMPLATES)
    assert condition is not None
    assert "spec.vars.v4 and 3 more" in str(condition["message"])
    assert "hidden" not in str(condition["message"])


def test_the_transition_time_stays_while_the_reason_does() -> None:
    status = with_vars_condition(provider(url="{{ base }}"), NOW, newer=True)
    later = NOW + timedelta(hours=1)
    assert with_vars_condition(provider(status, url="{{ base }}"), later, newer=True) == status
    other = with_vars_condition(provider(status, url="{{ base }}"), later, newer=False)
    assert condition_at(other, VARS_ARE_TEMPLATES) != condition_at(status, VARS_ARE_TEMPLATES)


def test_the_condition_goes_with_its_cause_and_others_stay() -> None:
    others: JsonObject = {"conditions": [{"type": "Reviewed", "status": "True"}]}
    status = with_vars_condition(provider(others, url="{{ base }}"), NOW, newer=True)
    assert with_vars_condition(provider(status, url="plain"), NOW, newer=True) == others
    alone = with_vars_condition(provider(url="{{ base }}"), NOW, newer=True)
    assert with_vars_condition(provider(alone, url="plain"), NOW, newer=True) == {}
