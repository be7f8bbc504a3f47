"""`examples/claims`: the manifests say only what the definitions keep, and mean what their comments promise."""

from __future__ import annotations

from typing import Any

import pytest
from claim_domain import NAMES
from claim_scenes import NOW
from definitions import Json
from manifests import dropped, manifests

from domain.claims import KINDS, RESOURCE_CLAIM, RESOURCE_POOL, RESOURCE_PROVIDER
from domain.claims.claim_spec_validation import validation_errors
from domain.claims.evaluator_interface import Question
from domain.claims.json_objects import value_at
from domain.claims.parameter_acceptance import settle_parameters
from domain.claims.provider_assignment import matching_providers
from domain.claims.provider_resources import resource_list
from domain.claims.resource_defaults import with_defaults
from domain.claims.template_variables import Scene

OURS = [each for each in manifests("claims") if each["kind"] in {kind.name for kind in KINDS}]


def named(kind: str) -> dict[str, Json]:
    return {each["metadata"]["name"]: each for each in OURS if each["kind"] == kind}


PROVIDERS, CLAIMS = named(RESOURCE_PROVIDER.name), named(RESOURCE_CLAIM.name)


def scene(claim: Json | None = None) -> Scene:
    return Scene.of(Question(now=NOW, names=NAMES, providers=PROVIDERS), claim=claim)


def template_of(claim: Json) -> list[Any]:
    """The templates that a claim of its provider asks for."""
    at = scene(claim=claim)
    name = claim["spec"]["provider"]["name"]
    settled = settle_parameters(at, PROVIDERS[name])
    assert not settled.errors
    return [each["template"] for each in resource_list(at, name, settled.values)]


@pytest.mark.parametrize("obj", OURS, ids=lambda obj: f"{obj['kind']}-{obj['metadata']['name']}")
def test_the_definitions_keep_every_field(obj: Json) -> None:
    assert dropped(obj) == []


def test_a_field_that_would_be_dropped_is_noticed() -> None:
    spoiled = {"kind": RESOURCE_POOL.name, "spec": {"minAvailabel": 3, "provider": {"nam": "x"}}}
    assert dropped(spoiled) == ["spec.minAvailabel", "spec.provider.nam"]


def test_the_default_lab_is_what_the_pool_keeps_and_the_large_one_is_not() -> None:
    pool = named(RESOURCE_POOL.name)["labs"]
    values = value_at(pool, "spec", "provider", "parameterValues")
    assert isinstance(values, dict)
    remaining = [each["template"] for each in resource_list(scene(), "lab", values)]
    assert template_of(CLAIMS["monday"]) == remaining
    assert template_of(CLAIMS["large"]) != remaining


def test_a_lab_comes_after_its_network_which_has_a_host_more() -> None:
    network, lab = template_of(CLAIMS["large"])
    assert network["data"] == {"hosts": "5"}
    assert lab["data"] == {"size": "4", "course": "kubernetes"}


@pytest.mark.parametrize(
    "claim",
    [each for each in CLAIMS.values() if "provider" in each["spec"]],
    ids=lambda claim: claim["metadata"]["name"],
)
def test_the_claims_values_are_accepted(claim: Json) -> None:
    assert template_of(claim)


def test_a_notebooks_template_finds_its_provider_and_is_filled_up() -> None:
    claim = CLAIMS["notebooks"]
    template = claim["spec"]["resources"][0]["template"]
    matches = {name: value_at(each, "spec", "match") for name, each in PROVIDERS.items()}
    assert matching_providers(template, {name: match for name, match in matches.items() if match}) == ("notebook",)
    first, second = with_defaults(scene(claim=claim), ["notebook", "notebook"])
    assert value_at(first, "template", "metadata", "generateName") == "notebook-python-"
    assert value_at(second, "template", "metadata", "generateName") == "notebook-r-"
    assert value_at(first, "template", "data", "memory") == "1Gi"
    assert value_at(second, "template", "data", "memory") == "4Gi"
    initialised = {**claim, "spec": {"resources": [first, second]}}
    assert validation_errors(scene(claim=initialised), ["notebook", "notebook"]) == [None, None]
