"""When a handle or claim is evaluated again without an event.

If time changes the results, the object is evaluated periodically. If the pass's own writes change the results, the
templates are rendered again in the pass. The templates of all linked providers count, even if a link's `when` is false
now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from pydantic import JsonValue

from domain.claims.json_objects import JsonObject, object_at, objects_at, text_at, value_at
from domain.claims.lifespan_templates import lifespan_texts
from domain.claims.linked_providers import linked_names, links
from domain.claims.references import named_providers
from domain.claims.templates.renderer import condition_template
from domain.claims.templates.time_dependence import depends_on_time, reads_claim_or_handle, reads_what_passes_write
from domain.model import Model


class Cadence(Model):
    by_clock: timedelta = timedelta(0)  # the interval for time-dependent templates
    refresh: timedelta = timedelta(0)  # the interval for changes that cause no event
    faulty: timedelta = timedelta(0)  # the longest interval after a fault

    def next(self, now: datetime, *, by_clock: bool, faulty: bool) -> datetime:
        interval = self.by_clock if by_clock else self.refresh
        return now + (min(interval, self.faulty) if faulty else interval)


def by_clock(handle: JsonObject, claim: JsonObject | None, providers: Mapping[str, JsonObject], *, newer: bool) -> bool:
    return depends_on_time(_texts(handle, claim, providers, newer))


def by_own_writes(handle: JsonObject, providers: Mapping[str, JsonObject], *, newer: bool) -> bool:
    return reads_what_passes_write(_handle_texts(handle, providers, newer))


def by_objects(handle: JsonObject, providers: Mapping[str, JsonObject], *, newer: bool) -> bool:
    return reads_claim_or_handle([*_handle_texts(handle, providers, newer), *lifespan_texts(handle)])


def lifespan_by_own_writes(handle: JsonObject) -> bool:
    return reads_what_passes_write(lifespan_texts(handle))


def claim_by_clock(claim: JsonObject, providers: Mapping[str, JsonObject], *, invalid: bool, newer: bool) -> bool:
    """Whether the claim's evaluation may depend on the time."""
    # Accepted values are not checked again, so the templates of parameters matter only while values are invalid.
    reached = _reached(named_providers(claim), providers) if invalid else ()
    checks = (text for provider in reached for text in _parameter_texts(provider))
    return by_clock({}, claim, providers, newer=newer) or depends_on_time(checks)


def _texts(
    handle: JsonObject, claim: JsonObject | None, providers: Mapping[str, JsonObject], newer: bool
) -> Iterator[str]:
    yield from _handle_texts(handle, providers, newer, claim)
    yield from lifespan_texts(handle)
    for field in ("autoDelete", "autoDetach"):
        yield from _conditions([text_at(claim, "spec", field, "when")])


def _handle_texts(
    handle: JsonObject, providers: Mapping[str, JsonObject], newer: bool, claim: JsonObject | None = None
) -> Iterator[str]:
    for provider in _reached(named_providers(handle) | named_providers(claim), providers):
        yield from _provider_texts(provider, newer)
    if newer:
        yield from _strings(object_at(handle, "spec", "vars"))


def _reached(names: Iterable[str], providers: Mapping[str, JsonObject]) -> list[JsonObject]:
    found: dict[str, JsonObject] = {}
    ahead = list(names)
    while ahead:
        name = ahead.pop()
        if name in providers and name not in found:
            found[name] = providers[name]
            ahead += linked_names(providers[name])
    return list(found.values())


def _provider_texts(provider: JsonObject, newer: bool) -> Iterator[str]:
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


def _parameter_texts(provider: JsonObject) -> Iterator[str]:
    for parameter in objects_at(provider, "spec", "parameters"):
        checks = objects_at(parameter, "validation", "checks")
        yield text_at(parameter, "default", "template")
        yield from _conditions(text_at(check, "check") for check in checks)


def _conditions(expressions: Iterable[str]) -> Iterator[str]:
    return (condition_template(expression) for expression in expressions if expression)


def _strings(value: JsonValue) -> Iterator[str]:
    ahead: list[JsonValue] = [value]
    while ahead:
        each = ahead.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            ahead += each.values()
        elif isinstance(each, list):
            ahead += each
