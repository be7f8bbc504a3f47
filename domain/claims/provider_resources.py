"""The resources that a provider yields: those of linked providers first, then its own.

A provider itself yields one resource if it has an `override` or a `template.definition`. Linked providers get parameter
values that the linking provider renders; these values are not validated, as in Poolboy.
"""

from __future__ import annotations

from pydantic import JsonValue

from domain.claims.json_objects import JsonObject, object_at, text_at, value_at
from domain.claims.linked_providers import LinkChain, link_resource_name, links
from domain.claims.template_variables import Scene
from domain.claims.templates.views import parameter_defaults


def resource_list(scene: Scene, name: str, values: JsonObject | None = None) -> list[JsonObject]:
    """The resources that the provider yields, each as `{name, provider, template?}`. `values` are its parameter values,
    by default the accepted values. Raises ProviderError, TemplateError.
    """
    return _resources(scene, LinkChain(), name, accepted_values(scene, name) if values is None else values)


def _resources(
    scene: Scene, chain: LinkChain, name: str, given: JsonObject, resource_name: str = ""
) -> list[JsonObject]:
    provider = scene.provider(name)
    values: JsonObject = {**parameter_defaults(provider), **given}
    chain.enter(name, values)
    one = _Evaluation(scene, provider, values)
    found: list[JsonObject] = []
    for link in links(provider):
        if one.wants(link):
            found += _resources(scene, chain, text_at(link, "name"), one.values_for(link), link_resource_name(link))
    chain.providers.pop()
    return found + one.own_resource(resource_name)


def accepted_values(scene: Scene, provider: str) -> JsonObject:
    accepted = object_at(scene.claim, "status", "provider")
    values = accepted.get("parameterValues")
    if text_at(accepted, "name") == provider and isinstance(values, dict):
        return values
    return object_at(scene.handle, "spec", "provider", "parameterValues")


class _Evaluation:
    def __init__(self, scene: Scene, provider: JsonObject, values: JsonObject) -> None:
        self.scene = scene
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
            "provider": self.scene.reference(self.provider),
        }
        if definition:
            what = f"ResourceProvider {self.name}, template.definition"
            resource["template"] = self._rendered(definition, what)
        return [resource]

    def _rendered(self, template: JsonValue, what: str) -> JsonValue:
        return self.renderer.render(template, self.variables, what=what, lazy=self.vars)

    def _link(self, link: JsonObject) -> str:
        return f"ResourceProvider {self.name}, link to {text_at(link, 'name')}"
