"""The provider of each resource that a claim lists (list mode): the provider named in the entry, else in the claim's
status, else the provider whose `match` fits the entry's template.

Nothing is rendered, so no evaluator is needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from domain.claims.deep_merge import TooDeep, contains
from domain.claims.faults import Faulty
from domain.claims.json_objects import JsonObject, object_at, objects_at, text_at, value_at
from domain.claims.references import provider_name, providers_known

NO_PROVIDER = "NoProvider"
SEVERAL_PROVIDERS = "SeveralProviders"
PROVIDER_MISSING = "ProviderMissing"
INVALID_RESOURCES = "InvalidResources"


def assign(claim: JsonObject, providers: Mapping[str, JsonObject]) -> tuple[str, ...]:
    """The provider's name for each resource. Raises Faulty if a named provider does not exist, if a template matches
    none or several, or if a resource has neither provider nor template.
    """
    matches = {name: value_at(provider, "spec", "match") for name, provider in providers.items()}
    assigned = []
    for index, (entry, named) in enumerate(
        zip(objects_at(claim, "spec", "resources"), providers_known(claim), strict=True)
    ):
        where = _words(index, entry)
        if not provider_name(entry) and not object_at(entry, "template"):
            raise Faulty(INVALID_RESOURCES, f"{where} has neither provider.name nor template")
        if named and named not in providers:
            raise Faulty(PROVIDER_MISSING, f"{where}: ResourceProvider {named} not found")
        assigned.append(named or _only_one(where, entry, matches))
    return tuple(assigned)


def matching_providers(template: JsonObject, providers: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """The names of the providers whose `match` the template contains. `providers` maps names to `match`."""
    stated = ((name, match) for name, match in providers.items() if isinstance(match, dict) and match)
    return tuple(sorted(name for name, match in stated if contains(template, match)))


def _only_one(where: str, entry: JsonObject, matches: Mapping[str, JsonValue]) -> str:
    try:
        found = matching_providers(object_at(entry, "template"), matches)
    except TooDeep as error:
        raise Faulty(NO_PROVIDER, f"{where}: the template is {error}") from error
    if not found:
        raise Faulty(NO_PROVIDER, f"{where}: no ResourceProvider matches the template")
    if len(found) > 1:
        raise Faulty(
            SEVERAL_PROVIDERS, f"{where}: the template matches {len(found)} ResourceProviders: {', '.join(found)}"
        )
    return found[0]


def _words(index: int, entry: JsonObject) -> str:
    name = text_at(entry, "name")
    return f"spec.resources[{index}] ({name})" if name else f"spec.resources[{index}]"
