"""Templates give what Poolboy's environment gives: typing, omit, names, filters, conditions, one clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from domain.claims.templates.errors import TemplateError
from domain.claims.templates.renderer import Json, Renderer, condition_template
from domain.claims.templates.time_dependence import depends_on_time

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
VARIABLES: dict[str, object] = {
    "one": 1,
    "word": "text",
    "none": None,
    "list": [3, 1, 2],
    "mapping": {"a": 1, "b": {"c": "d"}},
    "states": [None, {"spec": {"x": 1}}],
}


def render(template: Json, *, newer: bool = False, **variables: object) -> Json:
    return Renderer(NOW, newer=newer).render(template, {**VARIABLES, **variables}, what="here")


def refused(template: Json, **variables: object) -> str:
    with pytest.raises(TemplateError) as error:
        Renderer(NOW).render(template, {**VARIABLES, **variables}, what="here")
    assert error.value.what == "here"
    assert str(error.value) == f"here: {error.value.text}"
    return error.value.text


def holds(expression: str, *, newer: bool = False, **variables: object) -> bool:
    return Renderer(NOW, newer=newer).condition(expression, {**VARIABLES, **variables}, what="here")


# The environment.


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("plain", "plain"),
        ("", ""),
        (7, 7),
        (None, None),
        (True, True),
        (1.5, 1.5),
        ("{{ word }}", "text"),
        ("{# a comment #}x", "x"),
        ("{% if one == 1 %}yes{% else %}no{% endif %}", "yes"),
        ("{% for each in list %}{{ each }}{% endfor %}", "312"),
        ("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(1) }}{{ m(2) }}", "<1><2>"),
        ("{% set x = [] %}{% set _ = x.append(1) %}{{ x }}", "[1]"),
        ("{{ mapping.b['c'] }}", "d"),
        ("{{ word ~ one ~ none }}", "text1None"),
        ("{{ '<' }}", "<"),
        ("one line\n", "one line"),
        ("two ends\n\n", "two ends\n"),
        ("windows\r\nlines\rand\n", "windows\nlines\nand"),
        ("  {{ word }} {%- if one %} x{% endif %}\n", "  text x"),
        ({"{{ word }}": {"k": ["{{ one }}", 2]}}, {"{{ word }}": {"k": ["1", 2]}}),
        ("{{ '{{' }} one }}", "{{ one }}"),
        ("{{ raw }}", "{{ one }}"),
    ],
)
def test_a_value_is_rendered_throughout(template: Json, result: Json) -> None:
    assert render(template, raw="{{ one }}") == result


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("{{ missing.a.b['c'] | default('x') }}", "x"),
        ("{{ mapping.zzz.y | default('x') }}", "x"),
        ("{{ missing.a == 1 }}", "False"),
        ("{{ missing is defined }}", "False"),
        ("{% if missing.a %}yes{% else %}no{% endif %}", "no"),
        ("{{ 'a' ~ missing }}", "a"),
    ],
)
def test_undefined_can_be_walked_and_asked(template: str, result: str) -> None:
    assert render(template) == result


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ missing }}", "'missing' is undefined"),
        ("{{ mapping.zzz.y }}", "'dict object' has no attribute 'zzz'"),
        ("{{ missing + 1 }}", "'missing' is undefined"),
        ("{{ missing() }}", "'missing' is undefined"),
        ("{{ unclosed", "unexpected end of template"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ one | nosuch }}", "No filter named 'nosuch'"),
        ("{% include 'x' %}", "no loader"),
        ("{% import 'x' as y %}", "no loader"),
        ("{% extends 'x' %}", "no loader"),
    ],
)
def test_a_fault_is_reported_with_its_place(template: str, text: str) -> None:
    assert text in refused(template)


# Typing.

TYPED = [
    # template, by the rules of 1.12, by the newer ones
    ("{{ 1 + 1 }}", "2", "2"),
    ("{{ True }}", "True", "True"),
    ("{{ [1] }}", "[1]", "[1]"),
    ("{{ (1 + 1) | int }}", 2, 2),
    ("{{'7'|int}}", 7, 7),
    ("{{ '7' |  int  }}", 7, 7),
    ("{{ '7' | int }}\n", 7, 7),
    ("{{ '1.5' | float }}", 1.5, 1.5),
    ("{{ 'yes' | bool }}", True, True),
    ("{{ 'off' | bool }}", False, False),
    ("{{ missing | bool }}", False, False),
    ("{{ mapping | object }}", {"a": 1, "b": {"c": "d"}}, {"a": 1, "b": {"c": "d"}}),
    ("{{ list | sort | object }}", [1, 2, 3], [1, 2, 3]),
    ("{{ none | object }}", None, None),
    ("{{ 'a\"b' | object }}", 'a"b', 'a"b'),
    (" {{ 1 | int }}", " 1", " 1"),
    ("{{ 1 | int }} ", "1 ", "1 "),
    ("{{ 1 | int }}{{ 2 | int }}", "12", "12"),
    ("{{ 1 |\nint }}", "1", "1"),
    ("{{ list | list }}", "[3, 1, 2]", [3, 1, 2]),
    ("{{ ['a', none] | list }}", "['a', None]", ["a", None]),
    ("{{ [1, 2] + [3] | list }}", "[1, 2, 3]", [1, 2, 3]),
    ("{{ word }} and | list }}", "text and | list }}", "text and | list }}"),
    ("{{- [1] + 'b' | list }}", "[1, 'b']", [1, "b"]),
    ("{{ [2, 1] if one else [3] | list }}", "[2, 1]", [2, 1]),
    # what cannot be converted
    ("{{ word if one else 1 | int }}", None, "text"),
    ("{{ 'nan' | float }}", None, "nan"),
    ("{{ word or 1 | float }}", None, "text"),
    ("{{ word or 1 | object }}", None, "text"),
]


@pytest.mark.parametrize(("template", "same", "newer"), TYPED)
def test_one_expression_that_ends_in_a_typing_filter_is_typed(template: str, same: Json, newer: Json) -> None:
    for rules, result in ((False, same), (True, newer)):
        rendered = render(template, newer=rules)
        assert rendered == result
        assert type(rendered) is type(result)


@pytest.mark.parametrize("newer", [False, True])
def test_vars_hide_no_name_that_all_templates_have(newer: bool) -> None:
    renderer = Renderer(NOW, newer=newer)
    hiding = {"timestamp": "{{ 'hidden' }}", "omit": "{{ 1 }}", "mood": "fine"}
    template: Json = {"a": "{{ timestamp.utcnow }}", "b": "{{ omit }}", "c": "{{ mood }}"}
    plain = Renderer(NOW).render("{{ timestamp.utcnow }}", {}, what="here")
    assert renderer.render(template, {}, what="here", lazy=hiding) == {"a": plain, "c": "fine"}


def test_a_vars_text_is_literal_unless_the_newer_rules_hold() -> None:
    lazy = {"greeting": "hello {{ name }}", "count": "{{ two * 2 | int }}", "two": 2, "unused": "{{ missing }}"}
    template: Json = ["{{ greeting }}", "{{ count }}", "{% if false %}{{ unused }}{% endif %}"]
    for newer, result in (
        (False, ["hello {{ name }}", "{{ two * 2 | int }}", ""]),
        (True, ["hello you", "4", ""]),
    ):
        renderer = Renderer(NOW, newer=newer)
        assert renderer.render(template, {"name": "you"}, lazy=lazy, what="here") == result


def test_a_variable_that_is_a_template_behaves_as_its_typed_value() -> None:
    renderer = Renderer(NOW, newer=True)
    lazy = {
        "n": "{{ m }}",
        "m": "{{ 3 | int }}",
        "l": "{{ [1] + [2] | list }}",
        "no": "{{ false | bool }}",
        "t": "{{ n }}x",
    }
    for expression in (
        "m == 3",
        "m > 2",
        "2 in l",
        "l | length == 2",
        "not no",
        "t == '3x'",
        "t is string",
        "m + 1 == 4",
    ):
        assert renderer.condition(expression, {}, lazy=lazy, what="here"), expression
    assert renderer.render("{{ m }}", {"m": "stronger"}, lazy=lazy, what="here") == "stronger"


@pytest.mark.parametrize("lazy", [{"a": "{{ b }}", "b": "{{ a }}"}, {"a": "{{ missing }}"}, {"a": "{{ a }}"}])
@pytest.mark.parametrize(
    "template", ["{{ a }}", "{{ a.b }}", "{{ a == 1 }}", "{{ a | default('x') }}", "{{ a | length }}"]
)
def test_a_variable_that_cannot_be_rendered_fails_where_it_is_used(lazy: dict[str, object], template: str) -> None:
    with pytest.raises(TemplateError, match=r"refer to each other|is undefined|nested too deeply"):
        Renderer(NOW, newer=True).render(template, {}, lazy=lazy, what="here")


# omit.


@pytest.mark.parametrize(
    ("template", "result"),
    [
        ("{{ omit }}", None),
        ({"a": "{{ omit }}", "b": "{{ missing | default(omit) }}", "c": "x"}, {"c": "x"}),
        (["{{ omit }}", ["{{ omit }}", 1]], [[1]]),
        ({"a": {"b": {"c": "{{ omit }}"}}}, {"a": {"b": {}}}),
        ({"a": "{{ missing | default(omit) | object }}"}, {}),
        ({"a": "{{ [omit, 1] | object }}"}, {"a": [1]}),
        ({"a": "{{ missing | default(omit) | int }}"}, {"a": 0}),
    ],
)
def test_an_omitted_value_is_gone(template: Json, result: Json) -> None:
    assert render(template) == result


def test_a_text_around_the_omitted_stays_and_the_marker_is_another_each_time() -> None:
    first, second = render("x{{ omit }}"), render("x{{ omit }}")
    assert str(first).startswith("x")
    assert first != second


# Names and filters.


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("now(utc=True)", "2026-03-04 05:06:07"),
        ("now(True, '%Y-%m-%d')", "2026-03-04"),
        ("now(utc=True, fmt='%H:%M')", "05:06"),
        ("now().tzinfo", "None"),
        ("datetime.utcnow()", "2026-03-04 05:06:07"),
        ("datetime.now(timezone.utc)", "2026-03-04 05:06:07"),
        ("datetime['utcnow']()", "2026-03-04 05:06:07"),
        ("(datetime | attr('utcnow'))()", "2026-03-04 05:06:07"),
        ("datetime(2020, 1, 1).utcnow()", "2026-03-04 05:06:07"),
        ("datetime(2020, 1, 1).date()", "2020-01-01"),
        ("datetime.strptime('2020', '%Y').year", "2020"),
        ("now(utc=True).date().today().year", "2026"),
        ("datetime(2020, 1, 1) + timedelta(minutes=10)", "2020-01-01 00:10:00"),
        ("timedelta('10m')", "0:10:00"),
        ("timezone.utc", "UTC"),
        ("timestamp", "2026-03-04T05:06:07Z"),
        ("timestamp.utcnow", "2026-03-04T05:06:07Z"),
        ("timestamp.add('3h')", "2026-03-04T08:06:07Z"),
        ("timestamp + '1d'", "2026-03-05T05:06:07Z"),
        ("timestamp + timedelta(days=1)", "2026-03-05T05:06:07Z"),
        ("timestamp.add(60)", "2026-03-04T05:07:07Z"),
        ("timestamp('2021-05-01T12:30:00Z')", "2021-05-01T12:30:00Z"),
        ("timestamp('2021-05-01T12:30:00+02:00')", "2021-05-01T10:30:00Z"),
        ("timestamp(timestamp('2021-05-01T12:30:00Z').datetime).add('1h')", "2021-05-01T13:30:00Z"),
        ("timestamp(timestamp('2021-05-01T12:30:00Z'))", "2021-05-01T12:30:00Z"),
        ("timestamp(datetime(2021, 5, 1, 12, 30))", "2021-05-01T12:30:00Z"),
        ("timestamp('2021-05-01T12:30:00Z').datetime", "2021-05-01 12:30:00+00:00"),
        ("timestamp('2021-05-01T12:30:00Z').datetime + timedelta(hours=1)", "2021-05-01 13:30:00+00:00"),
        ("timestamp('2021-05-01T12:30:00Z').add('1h')", "2021-05-01T13:30:00Z"),
        ("timestamp > timestamp('2021-05-01T12:30:00Z')", "True"),
        ("timestamp('2030-05-01T12:30:00Z') > timestamp.utcnow", "True"),
        ("timestamp('2021-05-01T12:30:00Z') <= timestamp('2021-05-01T12:30:00Z')", "True"),
        ("timestamp('2021-05-01T12:30:00Z') == timestamp('2021-05-01T14:30:00+02:00')", "True"),
        ("'Yes' | bool", "True"),
        ("'t' | bool", "True"),
        ("'0' | bool", "False"),
        ("[] | bool", "False"),
        ("2 | bool", "True"),
        ("mapping | json_query('b.c')", "d"),
        ("states | map('default', {}, True) | list | json_query('[].spec.x')", "[1]"),
        ("mapping | json_query('items(@)[0]')", "['a', 1]"),
        ("[['k', 1]] | json_query('from_items(@)')", "{'k': 1}"),
        ("[[1, 2], [3, 4]] | json_query('zip([0], [1])')", "[[1, 3], [2, 4]]"),
        ("[{'a': 1}, none, {'a': 2, 'b': 3}] | merge_list_of_dicts", "{'a': 2, 'b': 3}"),
        ("[] | merge_list_of_dicts", "{}"),
        ("none | merge_list_of_dicts", "{}"),
        ("[{'a': 1}] | merge_list_of_dicts", "{'a': 1}"),
        ("mapping | to_json", '{"a": 1, "b": {"c": "d"}}'),
        ("'1h30m' | parse_time_interval", "1:30:00"),
        ("'2 days' | parse_time_interval", "2 days, 0:00:00"),
        ("'1:24:11' | parse_time_interval", "1:24:11"),
        ("'2020-01-02 03:04:05' | to_datetime", "2020-01-02 03:04:05"),
        ("'2020' | to_datetime('%Y')", "2020-01-01 00:00:00"),
        ("'%s-%d' | format('a', 7)", "a-7"),
        ("'%d%% *done*' % 5", "5% *done*"),
        ("'%s%% 20000 users' | format(7)", "7% 20000 users"),
        ("'%s-%d' % ('a', 7)", "a-7"),
        ("'{0}-{x:>3}'.format('a', x=7)", "a-  7"),
        ("'{a}'.format_map(mapping)", "1"),
        ("'a' | center(5)", "  a  "),
        ("['b', 'a'] | sort | join('-')", "a-b"),
        ("'x' * 3", "xxx"),
        ("2 ** 64", "18446744073709551616"),
    ],
)
def test_names_and_filters(expression: str, result: str) -> None:
    rendered = str(render("{{ " + expression + " }}"))
    assert rendered == result or rendered.startswith((f"{result}.", f"{result}+00:00"))


@pytest.mark.parametrize(
    "expression",
    [
        "'perhaps' | bool",
        "'no interval' | parse_time_interval",
        "timestamp > now()",
        "timestamp > '2021-05-01T12:30:00Z'",
        "timestamp('2021-05-01')",
        "'x' | to_datetime",
        "missing | object",
        "now() | object",
        "mapping | json_query('[')",
        "'[' | strgen",
    ],
)
def test_an_unreadable_template_is_an_error(expression: str) -> None:
    assert refused("{{ " + expression + " }}")


def test_the_unknown_word_is_false_by_the_newer_rules() -> None:
    assert render("{{ 'perhaps' | bool }}", newer=True) is False


def test_strgen_makes_a_text_by_its_pattern() -> None:
    assert re.fullmatch("[0-9a-f]{8}-x", str(render("{{ '[0-9a-f]{8}-x' | strgen }}")))


def test_names_of_the_rendering_hide_variables() -> None:
    assert str(render("{{ timestamp }}", timestamp="mine", now="mine")).startswith("2026")


def test_time_goes_on_from_the_instant_given() -> None:
    renderer = Renderer(NOW)

    def seen() -> datetime:
        return datetime.fromisoformat(str(renderer.render("{{ now(utc=True).isoformat() }}", {}, what="here")))

    first, second = seen(), seen()
    assert NOW <= first < second < NOW + timedelta(minutes=1)


# Conditions.


@pytest.mark.parametrize(
    ("expression", "truth"),
    [
        ("one == 1", True),
        ("one == 2", False),
        ("missing", False),
        ("missing.a.b", False),
        ("word", None),
        ("'true'", True),
        ("'no'", False),
        ("list", True),
        ("none", False),
        ("one == 1\nand word == 'nope'", False),
        ("one == 1\n", True),
        ("'{{' in word", False),
        ("timestamp('2021-05-01T12:30:00Z') < timestamp", True),
        ("missing + 1", None),
        ("one ==", None),
        ("one) }}{{ (one", None),
    ],
)
def test_a_condition_is_a_truth_or_an_error(expression: str, truth: bool | None) -> None:
    if truth is None:
        with pytest.raises(TemplateError):
            holds(expression)
    else:
        assert holds(expression) is truth


# Cadence.


@pytest.mark.parametrize(
    "text",
    [
        "{{ now() }}",
        "{% if timestamp.utcnow > timestamp('2021-05-01T12:30:00Z') %}x{% endif %}",
        "{{ datetime.utcnow() }}",
        "{{ '[a-z]{4}' | strgen }}",
        "{{ list | random }}",
        "{{ list | map('random') }}",
        "{{ list | map(word) }}",
        "{{ resource_handle.timedelta_to_lifespan_end }}",
        condition_template("timestamp('2021-05-01T12:30:00Z') < timestamp"),
    ],
)
def test_time_and_chance_are_seen_in_a_template(text: str) -> None:
    assert depends_on_time(["{{ guid }}", text])


@pytest.mark.parametrize(
    "text",
    [
        "now",
        "a random text about datetime",
        "{{ guid }}",
        "{{ resource_claim.metadata.creationTimestamp }}",
        "{{ resource_claim.lifespan_end_datetime }}",
        "{{ states | map('default', {}, True) | list }}",
        "{{ nowhere.known }}",
    ],
)
def test_a_template_that_only_events_change_is_not_rendered_by_the_clock(text: str) -> None:
    assert not depends_on_time([text])


def test_a_rendering_leaves_what_it_was_given_as_it_was() -> None:
    given = {"a": [1, {"b": 2}]}
    template = cast(Json, {"x": ["{{ given.a }}", {"y": "{{ given | object }}"}]})
    assert render(template, given=given) == {"x": ["[1, {'b': 2}]", {"y": {"a": [1, {"b": 2}]}}]}
    assert given == {"a": [1, {"b": 2}]}
    assert template == {"x": ["{{ given.a }}", {"y": "{{ given | object }}"}]}


# Halves of characters, which neither an object nor an answer to the worker can hold.

HALF = "'\\ud800'"


@pytest.mark.parametrize("template", [f"{{{{ {HALF} }}}}", f"{{{{ 'x' ~ {HALF} }}}} é", f"{{{{ {HALF} | string }}}}"])
def test_half_a_character_is_refused(template: str) -> None:
    assert "surrogates not allowed" in refused(template)


def test_an_error_that_quotes_half_a_character_can_be_reported() -> None:
    assert "?" in refused(f"{{{{ 1 | json_query({HALF}) }}}}").encode().decode()


@pytest.mark.parametrize(("newer", "result"), [(False, None), (True, '"\\ud800"')])
def test_half_a_character_is_no_json(newer: bool, result: str | None) -> None:
    assert render("{{ word | object }}", newer=newer, word="\ud800") == result
    assert render("{{ word | object }}", newer=newer, word="\U0001f600") == "\U0001f600"


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("missing | default(2000000)", "2000000"),
        ("'x' | int(2000000)", "2000000"),
        ("[1] | sum(start=2000000)", "2000001"),
        ("'%d' | format(2000000)", "2000000"),
        ("'%d' % 2000000", "2000000"),
        ("[2000000, 1] | select('gt', 1000000) | list", "[2000000]"),
        ("[1] | map('int', 2000000) | list", "[1]"),
        ("[1] | batch(2, 2000000) | list", "[[1, 2000000]]"),
        ("word | truncate(2000000)", "text"),
        ("word | wordwrap(2000000)", "text"),
        ("word | replace('t', 'T', 2000000)", "TexT"),
        ("mapping.get('z', 2000000)", "2000000"),
        ("word.split('e', 2000000)", "['t', 'xt']"),
        ("datetime.fromtimestamp(1700000000, timezone.utc).year", "2023"),
        ("(2000000).to_bytes(4, 'big') | length", "4"),
    ],
)
def test_a_large_number_that_is_no_size_is_one_like_any_other(expression: str, result: str) -> None:
    assert render("{{ " + expression + " }}") == result


def test_a_template_may_collect_large_numbers() -> None:
    assert render("{% set x = [] %}{% set _ = x.append(1700000000) %}{{ x }}") == "[1700000000]"
