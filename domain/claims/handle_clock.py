"""Whether the templates that were rendered for a handle give something else merely because time passes.

Such a handle is looked at again by the clock, all others on events only. Counted are the templates of every provider
that can be reached from the handle, whether or not its link holds now: it may the next moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from domain.claims.objects import JsonObject, object_at, objects_at, text_at, value_at
from domain.claims.providers import links, named_providers
from domain.claims.templates import depends_on_time
from domain.claims.templates.renderer import condition_template
from domain.claims.terms import lifespan_texts


def by_clock(handle: JsonObject, claim: JsonObject | None, providers: Mapping[str, JsonObject], *, newer: bool) -> bool:
    """Whether the handle, or what its claim shows, has to be looked at again as time passes."""
    return depends_on_time(_texts(handle, claim, providers, newer))


def _texts(
    handle: JsonObject, claim: JsonObject | None, providers: Mapping[str, JsonObject], newer: bool
) -> Iterator[str]:
    named = named_providers(handle) | (named_providers(claim) if claim else set())
    for provider in _reached(named, providers):
        yield from _provider_texts(provider, newer)
    yield from lifespan_texts(handle)
    if newer:
        yield from _strings(object_at(handle, "spec", "vars"))
    for field in ("autoDelete", "autoDetach"):
        yield from _conditions([text_at(claim, "spec", field, "when")])


def _reached(names: Iterable[str], providers: Mapping[str, JsonObject]) -> list[JsonObject]:
    """The providers of these names and all that they link to, each once."""
    found: dict[str, JsonObject] = {}
    ahead = list(names)
    while ahead:
        name = ahead.pop()
        if name in providers and name not in found:
            found[name] = providers[name]
            ahead += [text_at(link, "name") for link in links(providers[name])]
    return list(found.values())


def _provider_texts(provider: JsonObject, newer: bool) -> Iterator[str]:
    """Everything of a provider that is rendered while one of its resources lives; its vars are templates since 1.13."""
    spec = object_at(provider, "spec")
    yield from _strings(value_at(spec, "template", "definition"))
    yield from _strings(spec.get("statusSummaryTemplate"))
    yield from lifespan_texts(provider)
    if value_at(spec, "template", "enable") is True:
        yield from _strings(spec.get("override"))
    if newer:
        yield from _strings(spec.get("vars"))
    checks = [text_at(check, "check") for check in objects_at(spec, "validation", "checks")]
    yield from _conditions([text_at(spec, "healthCheck"), text_at(spec, "readinessCheck"), *checks])
    for link in links(provider):
        yield from _strings(link.get("parameterValues"))
        yield from _conditions([text_at(link, "when"), text_at(link, "waitFor")])


def _conditions(expressions: Iterable[str]) -> Iterator[str]:
    return (condition_template(expression) for expression in expressions if expression)


def _strings(value: JsonValue) -> Iterator[str]:
    """Every string in a value; keys are no templates."""
    ahead: list[JsonValue] = [value]
    while ahead:
        each = ahead.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            ahead += each.values()
        elif isinstance(each, list):
            ahead += each
