"""Which provider makes each resource that a claim lists."""

from __future__ import annotations

from typing import Any

import pytest
from claim_scenes import claim, config_map, entry, provider
from pydantic import JsonValue

from domain.claims.faults import Faulty
from domain.claims.json_objects import JsonObject
from domain.claims.provider_assignment import assign, matching_providers

WEB = provider("web", match={"metadata": {"labels": {"app": "web"}}})
ANY_CONFIG_MAP = provider("any", match={"kind": "ConfigMap"})
SILENT = provider("silent")
ALL = {each["metadata"]["name"]: each for each in (WEB, ANY_CONFIG_MAP, SILENT)}

SERVICE = {"kind": "Service", "metadata": {"labels": {"app": "web"}}}
SMALL: JsonObject = {"kind": "Thing", "spec": {"size": 1}}
BOTH = {"kind": "ConfigMap", "metadata": {"labels": {"app": "web"}}}


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"provider": {"name": name}, **more}


def listing(*entries: Any, assigned: Any = None) -> dict[str, Any]:
    status = None if assigned is None else {"resources": [named(name) if name else {} for name in assigned]}
    return claim(status, resources=list(entries))


@pytest.mark.parametrize(
    ("user_claim", "expected"),
    [
        (listing(named("silent")), ("silent",)),
        (listing({"template": config_map()}), ("any",)),
        (listing({"template": SERVICE}), ("web",)),
        (listing({"template": SERVICE}, {"template": config_map()}, named("web")), ("web", "any", "web")),
        (listing(named("silent", template=SERVICE)), ("silent",)),
        (listing({"template": BOTH}, assigned=["any"]), ("any",)),
        (listing({"template": SERVICE}, assigned=["silent"]), ("silent",)),
        (listing(named("web", template=SERVICE), assigned=["silent"]), ("web",)),
        (listing({"template": SERVICE}, {"template": config_map()}, assigned=[""]), ("web", "any")),
        (claim(provider={"name": "web"}), ()),
    ],
    ids=[
        "named",
        "matched",
        "matched by a part",
        "each entry by itself",
        "a name counts more than the template",
        "assigned before, ambiguous today",
        "assigned before, another one matches today",
        "a name counts more than what was assigned",
        "new entries",
        "provider mode",
    ],
)
def test_each_entry_gets_its_provider(user_claim: Any, expected: tuple[str, ...]) -> None:
    assert assign(user_claim, ALL) == expected


@pytest.mark.parametrize(
    ("names", "shown", "expected"),
    [
        (("y", "x"), {"x": "silent", "y": "web"}, ("web", "silent")),
        (("c", "x"), {"x": "silent"}, ("any", "silent")),
        (("z",), {"x": "silent"}, ("any",)),
        (("x",), {"": "silent"}, ("silent",)),
        (("",), {"x": "silent"}, ("silent",)),
    ],
    ids=["another order", "one more in front", "renamed", "no name in the status", "no name in the spec"],
)
def test_a_provider_assigned_before_is_found_by_the_name_of_the_resource(
    names: tuple[str, ...], shown: dict[str, str], expected: tuple[str, ...]
) -> None:
    status = {"resources": [entry(by, name) for name, by in shown.items()]}
    listed = [{**({"name": name} if name else {}), "template": config_map()} for name in names]
    assert assign(claim(status, resources=listed), ALL) == expected


def test_only_the_name_of_a_reference_counts() -> None:
    listed = {"provider": {"name": "web", "namespace": "elsewhere", "apiVersion": "poolboy.dev.local/v1"}}
    assert assign(listing(listed), ALL) == ("web",)


@pytest.mark.parametrize(
    ("user_claim", "reason", "words"),
    [
        (listing({"template": {"kind": "Secret"}}), "NoProvider", ["spec.resources[0]", "matches"]),
        (listing(named("web"), {"name": "db", "template": BOTH}), "SeveralProviders", ["[1] (db)", "any, web"]),
        (listing(named("gone")), "ProviderMissing", ["ResourceProvider gone", "not found"]),
        (listing({"template": SERVICE}, assigned=["gone"]), "ProviderMissing", ["ResourceProvider gone"]),
        (listing({"name": "db"}), "InvalidResources", ["(db)", "neither provider.name nor template"]),
        (listing({"template": {}}), "InvalidResources", ["spec.resources[0]", "neither"]),
    ],
)
def test_an_entry_without_its_provider_is_reported(user_claim: Any, reason: str, words: list[str]) -> None:
    with pytest.raises(Faulty) as error:
        assign(user_claim, ALL)
    assert error.value.reason == reason
    assert all(word in str(error.value) for word in words)


def test_a_template_nested_beyond_reason_has_no_provider() -> None:
    deep: Any = {}
    for _ in range(200):
        deep = {"a": deep}
    with pytest.raises(Faulty, match="nested deeper"):
        assign(listing({"template": deep}), {"deep": provider("deep", match=deep)})


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ({"kind": "Thing"}, True),
        ({"kind": "Thing", "spec": {"size": 1}}, True),
        ({"kind": "Other"}, False),
        ({"kind": "Thing", "apiVersion": "v1"}, False),
        ({"spec": {}}, True),
        ({}, False),
        (None, False),
        ("Thing", False),
    ],
)
def test_a_provider_serves_what_contains_its_match(match: JsonValue, expected: bool) -> None:
    assert bool(matching_providers(SMALL, {"it": match})) is expected


def test_every_provider_that_serves_is_named() -> None:
    providers: dict[str, JsonValue] = {
        "b": {"kind": "Thing"},
        "a": {"spec": {"size": 1}},
        "c": {"kind": "X"},
        "d": None,
    }
    assert matching_providers(SMALL, providers) == ("a", "b")
    assert matching_providers({}, providers) == ()
