"""The resources that a provider yields: those of linked providers first, then its own.

A provider has one own resource if it has an `override` or a `template.definition`. Linked providers get parameter
values that the linking provider renders; they are not validated, as in Poolboy. A provider that reaches itself with the
same values is an error (Poolboy hangs). With other values a `when` may end the chain, so only the depth and the number
of providers are limited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Self

from pydantic import JsonValue

from domain.claims import RESOURCE_PROVIDER
from domain.claims.domain_names import DomainNames
from domain.claims.evaluator_interface import Question
from domain.claims.json_objects import JsonObject, object_at, objects_at, only, text_at, value_at
from domain.claims.marks import reference_to
from domain.claims.templates.renderer import Renderer
from domain.claims.templates.views import ClaimView, HandleView, ProviderView, parameter_defaults

# Real links are one to three deep with tens of resources; each level and provider costs renderings.
DEEPEST_LINK = 16
MOST_PROVIDERS = 256


class ProviderError(Exception):
    def __init__(self, provider: str, text: str) -> None:
        super().__init__(f"ResourceProvider {provider}: {text}")
        self.provider = provider
        self.text = text


class ProviderMissing(ProviderError):  # noqa: N818 - names what is the case
    def __init__(self, provider: str) -> None:
        super().__init__(provider, "not found")


@dataclass(frozen=True)
class Scene:
    """The context of every rendering for one claim or handle. `providers` has the existing providers, by name."""

    now: datetime
    names: DomainNames
    renderer: Renderer
    providers: Mapping[str, JsonObject]
    claim: JsonObject | None = None
    handle: JsonObject | None = None

    @classmethod
    def of(cls, question: Question, *, claim: JsonObject | None = None, handle: JsonObject | None = None) -> Self:
        renderer = Renderer(question.now, newer=question.newer)
        return cls(question.now, question.names, renderer, question.providers, claim, handle)

    def provider(self, name: str) -> JsonObject:
        if name not in self.providers:
            raise ProviderMissing(name)
        return self.providers[name]

    def vars(self, provider: JsonObject) -> JsonObject:
        """The provider's vars, overridden by the handle's. All other variables override both. Vars may be templates."""
        return {**object_at(provider, "spec", "vars"), **object_at(self.handle, "spec", "vars")}

    @property
    def handle_vars(self) -> JsonObject:
        """The vars for the handle's own templates: the vars of its providers, overridden by the handle's.

        Only some handles, such as those of Poolboy 1.12 in list mode, have a copy of the providers' vars.
        """
        top = text_at(self.handle, "spec", "provider", "name")
        listed = [provider_name(entry) for entry in objects_at(self.handle, "spec", "resources")]
        every: JsonObject = {}
        for name in [top] if top else listed:
            every |= object_at(self.providers.get(name), "spec", "vars")
        return every | object_at(self.handle, "spec", "vars")

    def newer_vars(self, provider: JsonObject) -> JsonObject:
        """The vars for `default`, `healthCheck` and `readinessCheck`; before Poolboy 1.13, these could use no vars."""
        return self.vars(provider) if self.renderer.newer else {}

    def views(self, provider: JsonObject) -> dict[str, object]:
        return {
            "resource_claim": self.claim_view,
            "resource_handle": self.handle_view,
            "resource_provider": self.provider_view(provider),
        }

    def provider_view(self, provider: JsonObject) -> ProviderView:
        return ProviderView(provider, now=self.now, domain=self.names.domain)

    @cached_property
    def claim_view(self) -> ClaimView | None:
        return None if self.claim is None else ClaimView(self.claim, now=self.now, domain=self.names.domain)

    @cached_property
    def handle_view(self) -> HandleView | None:
        return None if self.handle is None else HandleView(self.handle, now=self.now, domain=self.names.domain)


def resource_list(scene: Scene, name: str, values: JsonObject | None = None) -> list[JsonObject]:
    """The resources that the provider yields, each as `{name, provider, template?}`. `values` are its parameter values,
    by default the accepted ones. Raises ProviderError, TemplateError.
    """
    return _Expansion(scene).resources(name, accepted_values(scene) if values is None else values)


def accepted_values(scene: Scene) -> JsonObject:
    if scene.claim is not None:
        return object_at(scene.claim, "status", "provider", "parameterValues")
    return object_at(scene.handle, "spec", "provider", "parameterValues")


def reference(names: DomainNames, provider: JsonObject) -> JsonObject:
    return reference_to(names, RESOURCE_PROVIDER, provider)


def referring(names: DomainNames, entry: JsonObject, providers: Mapping[str, JsonObject]) -> JsonObject:
    """The entry with its provider reference corrected to this domain and namespace."""
    named, provider = object_at(entry, "provider"), providers.get(provider_name(entry))
    here = only(reference(names, provider), *named) if provider else {}
    return {**entry, "provider": {**named, **here}} if here else entry


def provider_name(entry: JsonValue) -> str:
    return text_at(entry, "provider", "name")


def named_providers(resource: JsonValue) -> set[str]:
    names = {text_at(resource, part, "provider", "name") for part in ("spec", "status")}
    names |= {provider_name(entry) for part in ("spec", "status") for entry in objects_at(resource, part, "resources")}
    return names - {""}


def links(provider: JsonObject) -> list[JsonObject]:
    return objects_at(provider, "spec", "linkedResourceProviders")


def linked_names(provider: JsonObject) -> list[str]:
    return [text_at(link, "name") for link in links(provider)]


def link_resource_name(link: JsonObject) -> str:
    return text_at(link, "resourceName") or text_at(link, "name")


@dataclass
class _Expansion:
    scene: Scene
    evaluated: int = 0
    way: list[tuple[str, JsonObject]] = field(default_factory=list)

    def resources(self, name: str, given: JsonObject, resource_name: str = "") -> list[JsonObject]:
        provider = self.scene.provider(name)
        values: JsonObject = {**parameter_defaults(provider), **given}
        self._enter(name, values)
        one = _Evaluation(self.scene, provider, values)
        found: list[JsonObject] = []
        for link in links(provider):
            if one.wants(link):
                found += self.resources(text_at(link, "name"), one.values_for(link), link_resource_name(link))
        self.way.pop()
        return found + one.own_resource(resource_name)

    def _enter(self, name: str, values: JsonObject) -> None:
        ring = (name, values) in self.way
        self.way.append((name, values))
        self.evaluated += 1
        way = " → ".join(step for step, _ in self.way)
        if ring:
            raise ProviderError(name, f"links to itself: {way}")
        if len(self.way) > DEEPEST_LINK:
            raise ProviderError(self.way[0][0], f"links deeper than {DEEPEST_LINK} providers: {way}")
        if self.evaluated > MOST_PROVIDERS:
            raise ProviderError(self.way[0][0], f"links to more than {MOST_PROVIDERS} providers")


class _Evaluation:
    def __init__(self, scene: Scene, provider: JsonObject, values: JsonObject) -> None:
        self.names = scene.names
        self.renderer = scene.renderer
        self.provider = provider
        self.name = text_at(provider, "metadata", "name")
        self.vars = scene.vars(provider)
        self.variables: dict[str, object] = {**values, **scene.views(provider)}

    def wants(self, link: JsonObject) -> bool:
        when, what = text_at(link, "when"), f"{self._link(link)}, when"
        return not when or self.renderer.condition(when, self.variables, what=what, lazy=self.vars)

    def values_for(self, link: JsonObject) -> JsonObject:
        return {
            key: self._rendered(template, f"{self._link(link)}, parameterValues.{key}")
            for key, template in object_at(link, "parameterValues").items()
        }

    def own_resource(self, resource_name: str) -> list[JsonObject]:
        definition = value_at(self.provider, "spec", "template", "definition")
        if not definition and not value_at(self.provider, "spec", "override"):
            return []
        resource: JsonObject = {
            "name": resource_name or text_at(self.provider, "spec", "resourceName") or self.name,
            "provider": reference(self.names, self.provider),
        }
        if definition:
            what = f"ResourceProvider {self.name}, template.definition"
            resource["template"] = self._rendered(definition, what)
        return [resource]

    def _rendered(self, template: JsonValue, what: str) -> JsonValue:
        return self.renderer.render(template, self.variables, what=what, lazy=self.vars)

    def _link(self, link: JsonObject) -> str:
        return f"ResourceProvider {self.name}, link to {text_at(link, 'name')}"
