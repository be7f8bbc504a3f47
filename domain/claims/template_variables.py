"""The objects, providers and variables of every rendering for one claim or handle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Self

from domain.claims.domain_names import DomainNames
from domain.claims.evaluator_interface import Question
from domain.claims.json_objects import JsonObject, object_at, objects_at, text_at
from domain.claims.references import provider_name, provider_reference
from domain.claims.templates.renderer import Renderer
from domain.claims.templates.views import ClaimView, HandleView, ProviderView


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
    """`providers` has the existing providers, by name."""

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

    def reference(self, provider: JsonObject) -> JsonObject:
        return provider_reference(self.names, provider)

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
