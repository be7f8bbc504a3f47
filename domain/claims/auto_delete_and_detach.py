"""The conditions `autoDelete.when` and `autoDetach.when` of a claim, and their variables."""

from __future__ import annotations

from domain.claims.json_objects import object_at, text_at
from domain.claims.template_variables import Scene


def condition_holds(scene: Scene, field: str) -> bool:
    """`field` is `autoDelete` or `autoDetach`. Raises TemplateError."""
    claim = scene.claim
    expression = text_at(claim, "spec", field, "when")
    if claim is None or not expression:
        return False
    provider = scene.providers.get(text_at(claim, "spec", "provider", "name"))
    variables: dict[str, object] = {
        "resource_claim": scene.claim_view,
        "resource_handle": scene.handle_view,
        "resource_provider": None if provider is None else scene.provider_view(provider),
        "metadata": object_at(claim, "metadata"),
        "spec": object_at(claim, "spec"),
        "status": object_at(claim, "status"),
    }
    what = f"ResourceClaim {text_at(claim, 'metadata', 'name')}, spec.{field}.when"
    weaker = scene.handle_vars if provider is None else scene.vars(provider)
    return scene.renderer.condition(expression, variables, what=what, lazy=weaker)
