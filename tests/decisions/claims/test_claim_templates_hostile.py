"""Hostile templates end in a clear error within two seconds, in the sandbox or by the wall behind it.

Those of `STOPPED` meet a soft limit of the sandbox; those of `ENDED` are slow or large in ways no soft limit lists.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from evaluator_functions import Rendered, Rendering, render

from activities.claims.evaluator import EvaluationLimit, Evaluator
from domain.claims.templates.errors import TemplateError
from domain.claims.templates.renderer import Renderer
from domain.claims.templates.views import ClaimView

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
# Of this process's time; without limits they would take hours.
CPU_SECONDS = 30.0
# A list of two lists that are one, and so on: small in memory, endless on paper.
SHARED = "{% set n = namespace(x=[1]) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% endfor %}"

WALKS = [
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ joiner.__init__.__globals__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ lipsum.__globals__['os'] }}",
    "{{ range.__class__ }}",
    "{{ dict.__mro__ }}",
    "{{ dict.mro() }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__'] }}",
    "{{ '' | attr('__class__') }}",
    "{{ '' | attr('__cla' ~ 'ss__') }}",
    "{{ [''] | map(attribute='__class__') | list }}",
    "{{ [''] | map(attribute='upper.__self__.__class__') | list }}",
    "{{ [''] | map('attr', '__class__') | list }}",
    "{{ [''] | selectattr('__class__') | list }}",
    "{{ [''] | groupby('__class__') }}",
    "{{ [''] | sort(attribute='__class__') }}",
    "{{ [''] | sum(attribute='__class__') }}",
    "{{ '{0.__class__}'.format('') }}",
    "{{ '{a.__class__.__mro__}'.format_map({'a': ''}) }}",
    "{{ ['{0.__class__}'] | map(attribute='format') | first }}{{ ('{0.__class__}' | attr('format'))('') }}",
    "{{ '{a.__init__.__globals__}'.format(a=cycler) }}",
    "{{ self.__init__.__globals__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ (range(3) | batch(2)).gi_frame }}",
    "{{ (range(3) | map('string')).gi_code }}",
    "{{ now.__func__.__globals__ }}",
    "{{ now.__self__ }}",
    "{{ timestamp._clock }}",
    "{{ timestamp.__class__.__init__.__globals__ }}",
    "{{ timedelta.__new__.__globals__ }}",
    "{{ datetime.__subclasses__() }}",
    "{{ claim._raw }}",
    "{{ claim.__class__ }}",
    "{{ claim.as_reference.__globals__ }}",
    "{% macro m() %}{{ caller.__globals__ }}{% endmacro %}{{ m._func }}",
    "{% for x in [1] %}{{ loop._iterator }}{% endfor %}",
    "{{ (cycler.__init__) is defined }}",
    "{{ datetime.now.__globals__ }}",
]

STOPPED = [
    # loops
    "{% for a in range(10**9) %}{% endfor %}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{% for a in 'x' * 1000 %}{% for b in 'x' * 1000 %}{% for c in 'x' * 1000 %}{% endfor %}{% endfor %}{% endfor %}",
    "{% for a in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "{% macro m() %}{% for i in range(9999) %}{{ caller() }}{% endfor %}{% endmacro %}"
    "{% call m() %}{% for i in range(99) %}{% endfor %}{% endcall %}",
    "{% set l = [1] %}{% for x in l %}{{ l.append(1) }}{% endfor %}",
    "{{ range(10**12) | list }}",
    # texts
    "{{ 'a' * 10**9 }}",
    "{{ 10**9 * 'a' }}",
    "{{ ('a' * 10**6) * 10**6 }}",
    "{{ 'a' | center(10**9) }}",
    "{{ 'a'.center(10**9) }}{{ 'a' | string }}",
    "{{ 'a'.ljust(10**9) }}",
    "{{ 'a'.zfill(10**9) }}",
    "{{ 'a\tb'.expandtabs(10**9) }}",
    "{{ ('\t' * 10000).expandtabs(10000) }}",
    "{{ 'a\tb'.expandtabs(tabsize=10**9) }}",
    "{{ ['a'] | map('center', 10**9) | list }}",
    "{{ 'a' | center(width=10**9) }}",
    "{{ '%10000000000d' | format(1) }}",
    "{{ '%10000000000d' % 1 }}",
    "{{ '%*d' % (10**9, 1) }}",
    "{{ '%.1000000000f' % 1.5 }}",
    "{{ '{:10000000000d}'.format(1) }}",
    "{{ '{:{}}'.format(1, 10**9) }}",
    "{{ ('{0}' * 10000).format('a' * 100000) }}",
    "{{ ('%(a)s' * 10000) % {'a': 'a' * 100000} }}",
    "{{ ('a' * 10000) | replace('a', 'b' * 10000) }}",
    "{{ ('a' * 10000).replace('a', 'b' * 10000) }}",
    "{{ ('a' * 10000).translate({97: 'b' * 10000}) }}",
    "{{ range(90000) | map('string') | join('x' * 90000) }}",
    "{{ ('x' * 90000).join('a' * 90000) }}",
    "{{ ('a\n' * 10000) | indent(100000) }}",
    "{{ ('a ' * 10000) | wordwrap(1, wrapstring='x' * 10000) }}",
    "{{ [[[[1]]]] | tojson(indent=10**6) }}",
    "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% for i in range(99999) %}" + "x" * 100 + "{% endfor %}",
    "{% set x %}{% for i in range(99999) %}" + "x" * 100 + "{% endfor %}{% endset %}{{ x }}",
    "{{ lipsum(10**9) }}",
    "{{ lipsum(n=1, max=10**9) }}",
    "{{ '[a]{1000000000}' | strgen }}",
    "{{ '[a]{1:1000000000}' | strgen }}",
    # lists and mappings
    "{{ [1] * 10**9 }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set l = [1] %}{% for i in range(99) %}{{ l.extend(l) }}{% endfor %}",
    SHARED + "{{ n.x }}",
    SHARED + "{{ n.x | object }}",
    SHARED + "{{ n.x ~ '' }}",
    SHARED + "{{ '%s' % n.x }}",
    SHARED + "{{ '{}'.format(n.x) }}",
    SHARED + "{{ n.x | pprint }}",
    "{{ [1] | json_query('" + "[@, @] | " * 40 + "@') }}",
    "{% set l = [] %}{{ l.append(l) }}{{ l | object }}",
    "{% set n = namespace(x=[]) %}{% for i in range(5000) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}",
    "{{ [1] | batch(10**9, 0) | list }}",
    "{{ [1] | batch(linecount=10**9, fill_with=0) | list }}",
    "{{ [1] | slice(10**9) | list }}",
    # numbers
    "{{ 9 ** (9 ** 9) }}",
    "{{ 9 ** 9 ** 9 ** 9 ** 9 }}",
    "{{ '9' * 100000 | int }}{{ (10 ** 4000) ** 1000 }}",
    "{{ 2 ** 100000000 }}",
    "{% set n = namespace(x=9) %}{% for i in range(99) %}{% set n.x = n.x * n.x %}{% endfor %}",
    "{{ 1 | round(10**9, 'ceil') }}",
    "{{ 1 | round(-10**9) }}",
    "{{ (1).to_bytes(10**9, 'big') }}",
    "{{ (1).to_bytes(length=10**9, byteorder='big') }}",
    # templates
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "{{ " + "[" * 5000 + "]" * 5000 + " }}",
    "{{ " + "1 + " * 5000 + "1 }}",
    "{{ x" + ".x" * 5000 + " }}",
    "{{ x" + "|string" * 5000 + " }}",
    "{% if 1 %}" * 5000 + "{% endif %}" * 5000,
    "{{ 1 }}" * 100_000,
    "{{ '" + "x" * 300_000 + "' }}",
    "{{ - - " + "- " * 5000 + "1 }}",
]

ENDED = [
    # many steps that are each within the limits
    "{{ range(90000) " + "| map('string') | list | sort | reverse | list " * 25 + "| length }}",
    "{% for a in range(400) %}{{ range(90000) | list | sort | reverse | sum }}{% endfor %}",
    "{% for a in range(400) %}{{ range(90000) | map('string') | unique | list | length }}{% endfor %}",
    "{% for a in range(90000) if range(90000) | sum == 1 %}{% endfor %}",
    "{% for a in range(9000) %}{{ ('a' * 999999) is in('b' * 999999) }}{{ ('a' * 999999).count('aab') }}{% endfor %}",
    # equality of two lists that hold lists many times over
    "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}"
    "{% endfor %}{{ n.x == n.y }}",
    # many large texts at once
    "{% set l = [] %}{% for a in range(2000) %}{{ l.append('x' * 1000000 ~ a) }}{% endfor %}",
    "{% set l = [] %}{% for a in range(3000) %}{{ l.append([a] * 90000) }}{% endfor %}",
    # regular expressions, of the filters that use one
    "{% for i in range(9000) %}{{ (('<' * 300000) | striptags | length) ~ (('www.a' * 60000) | urlize | length) }}"
    "{% endfor %}",
    "{{ [1] | json_query('pad_left(`\"a\"`, `4000000000`)') }}{{ ('a' | json_query('pad_left(@, `4000000000`)')) }}",
]


@pytest.fixture(scope="module")
async def evaluator() -> AsyncIterator[Evaluator]:
    async with Evaluator([render]) as started:
        yield started


def refused(template: str) -> TemplateError:
    began = time.process_time()
    with pytest.raises(TemplateError) as error:
        Renderer(NOW).render(template, {"claim": ClaimView({"spec": {}}), "x": "x"}, what="the place")
    assert time.process_time() - began < CPU_SECONDS
    assert error.value.what == "the place"
    assert 0 < len(error.value.text) < 1100
    return error.value


@pytest.mark.parametrize("template", WALKS)
def test_no_attribute_leads_out(template: str) -> None:
    assert "unsafe" in refused(template).text or "unsafe" in str(refused(template).__cause__)


@pytest.mark.parametrize("walk", [each for each in WALKS if each.startswith("{{") and each.count("{{") == 1])
def test_a_condition_that_walks_is_an_error_and_not_false(walk: str) -> None:
    with pytest.raises(TemplateError):
        Renderer(NOW).condition(walk[2:-2].strip(), {"claim": ClaimView({"spec": {}})}, what="here")


@pytest.mark.parametrize("template", STOPPED, ids=lambda each: each[:60])
def test_a_template_that_grows_without_bound_meets_a_limit(template: str) -> None:
    error = refused(template)
    assert any(word in error.text for word in ("more than", "too big", "too deep", "Circular", "in a format")), error


@pytest.mark.parametrize("template", ENDED, ids=lambda each: each[:60])
async def test_a_slow_or_large_template_is_ended_while_others_go_on(evaluator: Evaluator, template: str) -> None:
    request = Rendering(template={"a": "x", "b": template}, what="claim ns/hostile, autoDelete.when")
    hostile = asyncio.ensure_future(evaluator.call(render, request, Rendered, key="ns/hostile", author="hostile"))
    meanwhile = 0
    while not hostile.done():
        good = await evaluator.call(render, Rendering(template="{{ 1 + 1 }}"), Rendered, key="ns/good", author="good")
        assert good.value == "2"
        meanwhile += not hostile.done()
        await asyncio.wait([hostile], timeout=0.05)
    with pytest.raises(EvaluationLimit) as error:
        await hostile
    assert error.value.what == "claim ns/hostile, autoDelete.when"
    assert "took longer than 1.5 s" in error.value.limit or "needed more than 256 MiB" in error.value.limit
    assert meanwhile or "memory" in error.value.limit  # which may be met before anybody else has asked


def test_a_value_of_many_templates_meets_the_limits_together() -> None:
    with pytest.raises(TemplateError, match="more than 2097152 characters"):
        Renderer(NOW).render(["{{ 'x' * 1000000 }}"] * 5, {}, what="here")
    with pytest.raises(TemplateError, match="more than 200000 steps"):
        Renderer(NOW).render(["{% for i in range(50000) %}{% endfor %}"] * 5, {}, what="here")
    with pytest.raises(TemplateError, match="more than 200000 values"):
        Renderer(NOW).render([[1] * 100] * 3000, {}, what="here")


def test_data_too_deep_is_refused() -> None:
    deep: object = "x"
    for _ in range(500):
        deep = [deep]
    with pytest.raises(TemplateError, match="levels"):
        Renderer(NOW).render(deep, {}, what="here")  # type: ignore[arg-type]
