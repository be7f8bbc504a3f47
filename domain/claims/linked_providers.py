"""Links between providers, and the values that a handle's resources exchange through them.

If links lead back to a provider with the same values, that is an error (Poolboy hangs). With other values a `when` may
end the chain, so only its depth and the number of providers are limited.

A link can make a resource wait for the linked resource (`waitFor`, evaluated on its live state), and provide values of
that state to the `override` (`templateVars`). A link whose resource is not in the handle (`when` was false) does
neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from domain.claims.evaluator_interface import HandleQuestion
from domain.claims.json_objects import JsonObject, object_at, objects_at, text_at
from domain.claims.references import is_likely, provider_name, recorded_reference
from domain.claims.template_variables import ProviderError, Scene

# Real links are one to three deep with tens of resources; each level and provider costs renderings.
DEEPEST_LINK = 16
MOST_PROVIDERS = 256


def links(provider: JsonObject) -> list[JsonObject]:
    return objects_at(provider, "spec", "linkedResourceProviders")


def linked_names(provider: JsonObject) -> list[str]:
    return [text_at(link, "name") for link in links(provider)]


def link_resource_name(link: JsonObject) -> str:
    return text_at(link, "resourceName") or text_at(link, "name")


@dataclass
class LinkChain:
    """The providers down to the current one, with their parameter values."""

    providers: list[tuple[str, JsonObject]] = field(default_factory=list)
    evaluated: int = 0

    def enter(self, name: str, values: JsonObject) -> None:
        ring = (name, values) in self.providers
        self.providers.append((name, values))
        self.evaluated += 1
        way = " → ".join(each for each, _ in self.providers)
        if ring:
            raise ProviderError(name, f"links to itself: {way}")
        if len(self.providers) > DEEPEST_LINK:
            raise ProviderError(self.providers[0][0], f"links deeper than {DEEPEST_LINK} providers: {way}")
        if self.evaluated > MOST_PROVIDERS:
            raise ProviderError(self.providers[0][0], f"links to more than {MOST_PROVIDERS} providers")


@dataclass(frozen=True)
class Resources:
    """A handle's resources. `scene` has the desired handle and claim, `question` has the live objects."""

    scene: Scene
    question: HandleQuestion

    @property
    def handle(self) -> JsonObject:
        return self.scene.handle or {}

    @property
    def entries(self) -> list[JsonObject]:
        return objects_at(self.handle, "spec", "resources")

    def with_reference(self, index: int, recorded: JsonObject) -> Resources:
        entries: list[JsonValue] = [*self.entries]
        entries[index] = {**self.entries[index], "reference": recorded}
        handle: JsonObject = {**self.handle, "spec": {**object_at(self.handle, "spec"), "resources": entries}}
        return replace(self, scene=replace(self.scene, handle=handle))

    def state(self, index: int) -> JsonObject | None:
        states = self.question.states
        return states[index] if index < len(states) else None

    def recorded(self, index: int) -> JsonObject:
        """The recorded reference; `{}` if there is none, or only one whose name the API server has refused."""
        found = recorded_reference(self.handle, index)
        may_exist = self.state(index) is not None or index in self.question.unreadable
        return found if may_exist or is_likely(found) else {}


_MISSING = object()


@dataclass(frozen=True)
class Lent:
    """Variables from linked resources. A `_MISSING` variable stays undefined, even if the provider or an earlier link
    defines it.
    """

    found: Mapping[str, object]

    @property
    def values(self) -> dict[str, object]:
        return {name: value for name, value in self.found.items() if value is not _MISSING}

    def beside(self, variables: JsonObject) -> JsonObject:
        return {name: value for name, value in variables.items() if self.found.get(name) is not _MISSING}

    def then(self, later: Lent) -> Lent:
        return Lent({**self.found, **later.found})


def lent_by_links(resources: Resources, index: int, provider: JsonObject) -> Lent | None:
    lent = Lent({})
    for link in links(provider):
        linked = _linked_resource(resources, provider, link)
        if linked is None:
            continue
        state = resources.state(linked)
        own = _lent(provider, link, state)
        if _waits(resources, index, provider, link, state, own):
            return None
        lent = lent.then(own)
    return lent


def _linked_resource(resources: Resources, provider: JsonObject, link: JsonObject) -> int | None:
    """The index of the resource that the link refers to: the linked provider's resource with the link's resource name.

    If there is no such resource, the link refers to the linked provider's first resource that no link names.
    """
    linked = text_at(link, "name")
    names = {link_resource_name(other) for other in links(provider) if text_at(other, "name") == linked}
    found = [
        (index, text_at(entry, "name"))
        for index, entry in enumerate(resources.entries)
        if provider_name(entry) == linked
    ]
    # May be empty in older handles, or if the claim lists its resources.
    named = [index for index, name in found if name == link_resource_name(link)]
    return next(iter(named or [index for index, name in found if name not in names]), None)


def _waits(
    resources: Resources, index: int, provider: JsonObject, link: JsonObject, state: JsonObject | None, lent: Lent
) -> bool:
    wait_for = text_at(link, "waitFor")
    if not wait_for:
        return False
    if state is None:
        return True
    scene, name = resources.scene, text_at(link, "name")
    variables = {
        "linked_resource_provider": scene.provider_view(scene.provider(name)),
        "linked_resource_state": state,
        **scene.views(provider),
        "resource_state": resources.state(index),
        **lent.values,
    }
    what = f"ResourceProvider {text_at(provider, 'metadata', 'name')}, link to {name}, waitFor"
    return not scene.renderer.condition(wait_for, variables, what=what, lazy=lent.beside(scene.vars(provider)))


def _lent(provider: JsonObject, link: JsonObject, state: JsonObject | None) -> Lent:
    if state is None:
        return Lent({})
    found: dict[str, object] = {}
    for variable in objects_at(link, "templateVars"):
        name, pointer = text_at(variable, "name"), text_at(variable, "from")
        if pointer and not pointer.startswith("/"):
            where = f"link to {text_at(link, 'name')}, templateVars {name}"
            raise ProviderError(text_at(provider, "metadata", "name"), f"{where}: {pointer!r} is not a JSON pointer")
        exists, value = pointed(state, pointer)
        found[name] = value if exists else _MISSING
    return Lent(found)


def pointed(document: JsonValue, pointer: str) -> tuple[bool, JsonValue]:
    """Whether the pointer (RFC 6901) has a target, and its value; `""` is the whole document."""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and key in document:
            document = document[key]
        elif isinstance(document, list) and _is_index(key) and int(key) < len(document):
            document = document[int(key)]
        else:
            return False, None
    return True, document


def _is_index(key: str) -> bool:
    return key.isascii() and key.isdigit() and (key == "0" or not key.startswith("0"))
