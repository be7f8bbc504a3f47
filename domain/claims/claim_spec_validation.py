"""Validates a claim's spec except its parameter values, and the template of each resource that the claim lists.

Clients depend on the exact error texts in `status.resources[].validationError`.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.claims.delayed_start import start_of
from domain.claims.evaluator_interface import Fault
from domain.claims.faults import Faulty
from domain.claims.json_objects import JsonObject, object_at, objects_at, text_at, value_at
from domain.claims.provider_assignment import INVALID_RESOURCES
from domain.claims.schema_validation import SchemaError, violation
from domain.claims.template_variables import Scene
from domain.claims.templates.errors import TemplateError

INVALID_SPEC = "InvalidSpec"
PROVIDER_IMMUTABLE = "ProviderImmutable"


def check_spec(claim: JsonObject, unassigned: Fault | None) -> None:
    """Raises Faulty, UnreadableMoment."""
    start_of(claim)
    entries = value_at(claim, "spec", "resources")
    if value_at(claim, "spec", "provider") is not None:
        if entries is not None:
            raise Faulty(INVALID_SPEC, "spec.provider and spec.resources exclude each other: remove one of them")
        provider, recorded = text_at(claim, "spec", "provider", "name"), text_at(claim, "status", "provider", "name")
        if not provider:
            raise Faulty(INVALID_SPEC, "spec.provider has no name")
        if recorded and recorded != provider:
            message = f"spec.provider.name is immutable: it is {recorded}, and may not change to {provider}"
            raise Faulty(PROVIDER_IMMUTABLE, message)
        return
    if entries is None:
        raise Faulty(INVALID_SPEC, "the spec has neither provider nor resources: add one of them")
    if not entries:
        raise Faulty(INVALID_RESOURCES, "spec.resources is empty")
    if unassigned:
        raise Faulty(unassigned.reason, unassigned.message)


def validation_errors(scene: Scene, provider_names: Sequence[str]) -> list[str | None]:
    """The first error of each listed resource; None if it is valid. Raises ProviderMissing."""
    entries = objects_at(scene.claim, "spec", "resources")
    return [
        _fault(scene, object_at(entry, "template"), scene.provider(name))
        for entry, name in zip(entries, provider_names, strict=True)
    ]


def _fault(scene: Scene, template: JsonObject, provider: JsonObject) -> str | None:
    schema = value_at(provider, "spec", "validation", "openAPIV3Schema")
    where = f"ResourceProvider {text_at(provider, 'metadata', 'name')}"
    try:
        text = None if schema is None else violation(schema, template, f"{where}, validation schema")
    except SchemaError as error:
        return f"{where}: {error}"
    return text if text is not None else _failed_check(scene, template, provider)


def _failed_check(scene: Scene, template: JsonObject, provider: JsonObject) -> str | None:
    # The template's top-level keys override all variables.
    variables = {**scene.views(provider), **template}
    weaker = scene.vars(provider)
    for check in objects_at(provider, "spec", "validation", "checks"):
        name = text_at(check, "name")
        what = f"ResourceProvider {text_at(provider, 'metadata', 'name')}, validation check {name}"
        try:
            if not scene.renderer.condition(text_at(check, "check"), variables, what=what, lazy=weaker):
                return f"Validation check failed: {name}"
        except TemplateError as error:
            return f'Validation check "{name}" failed with exception: {error.text}'
    return None
