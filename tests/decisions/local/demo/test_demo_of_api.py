"""What `perdure demo api` reads off the objects, and the manifests that it applies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from definitions import MODELS, schema_of
from openapi_schema_validator import OAS30Validator

from domain.threescale.resources import Backend, Product
from domain.threescale.spec_validation import faults_of_backend, faults_of_product
from domain.threescale.usable_referents import blocker_of_product
from localcloud.demo.api import failure, look
from localcloud.demo.stage import Waiting

EXAMPLES = Path(__file__).parents[4] / "examples" / "api"
MANIFESTS: list[dict[str, Any]] = [
    each for file in sorted(EXAMPLES.glob("*.yaml")) for each in yaml.safe_load_all(file.read_text()) if each
]
OURS = [each for each in MANIFESTS if each["kind"] in MODELS]


def obj(*true_ones: str, message: str = "", **metadata: str) -> dict[str, Any]:
    conditions = [{"type": type_, "status": "True", "message": message} for type_ in true_ones]
    others = [{"type": "Invalid", "status": "False"}]
    return {"kind": "Product", "metadata": {"name": "pets", **metadata}, "status": {"conditions": conditions + others}}


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (obj(), Waiting()),
        (obj("Failed", "Orphan"), Waiting("Orphan")),
        (obj("Waiting"), Waiting("Orphan")),
        (obj("Synced"), Waiting("Ready")),
        (obj("Ready"), Waiting("Ready")),
        (obj("Synced", deletionTimestamp="2026-11-21T12:00:00Z"), Waiting()),
    ],
)
def test_a_row_shows_how_far_the_object_is(shown: dict[str, Any], expected: Waiting) -> None:
    assert look(shown) == expected


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (obj("Synced"), ""),
        (obj("Failed", "Orphan", message="no backend"), ""),
        (obj("Failed", message="no"), "Product pets is Failed: no"),
        (obj("Failed", message="last admin", deletionTimestamp="2026-11-21T12:00:00Z"), ""),
    ],
)
def test_a_waiting_object_has_not_failed(shown: dict[str, Any], reason: str) -> None:
    assert failure(shown) == reason


@pytest.mark.parametrize("manifest", OURS, ids=lambda each: f"{each['kind']} {each['metadata']['name']}")
def test_the_examples_are_what_the_definitions_ask_for(manifest: dict[str, Any]) -> None:
    assert list(OAS30Validator(schema_of(manifest["kind"])).iter_errors(manifest)) == []


def test_the_examples_are_at_fault_nowhere_and_name_what_is_there() -> None:
    (backend,) = (Backend.model_validate(each) for each in OURS if each["kind"] == "Backend")
    (product,) = (Product.model_validate(each) for each in OURS if each["kind"] == "Product")
    hits = {"hits": {"friendlyName": "Hits", "unit": "hit"}}
    whole = product.model_copy(
        update={"spec": product.spec.model_validate({**product.spec.model_dump(), "metrics": hits})}
    )
    ready = {"backendId": 7, "conditions": [{"type": "Synced", "status": "True"}]}
    synced = backend.model_copy(update={"status": type(backend.status).model_validate(ready)})

    assert faults_of_product(whole.spec) == ()
    assert faults_of_backend(backend.spec) == ()
    assert blocker_of_product(product, {"pets-backend": synced}) is None
