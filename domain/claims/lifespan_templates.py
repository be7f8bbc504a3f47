"""Renders the default and the maxima of lifespans in providers and handles.

Each use renders them, so an annotation of the claim can change the maximum while the claim's resources exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from domain.claims.json_objects import JsonObject, object_at, text_at
from domain.claims.lifespan_end import TERMS, Terms, terms_of
from domain.claims.template_variables import Scene


def provider_terms(scene: Scene, provider: JsonObject) -> Terms:
    variables = {"resource_claim": scene.claim_view}
    return _terms(scene, provider, variables, object_at(provider, "spec", "vars"), "ResourceProvider")


def handle_terms(scene: Scene) -> Terms:
    handle = scene.handle or {}
    variables = {"resource_claim": scene.claim_view, "resource_handle": scene.handle_view}
    return _terms(scene, handle, variables, scene.handle_vars, "ResourceHandle")


def lifespan_texts(resource: JsonObject) -> Iterator[str]:
    return (text_at(resource, "spec", "lifespan", field) for field in TERMS)


def _terms(scene: Scene, resource: JsonObject, variables: Mapping[str, object], vars: JsonObject, kind: str) -> Terms:
    lifespan = object_at(resource, "spec", "lifespan")
    where = f"{kind} {text_at(resource, 'metadata', 'name')}, lifespan"
    rendered = {
        field: scene.renderer.render(text, variables, what=f"{where}.{field}", lazy=vars)
        for field in TERMS
        if (text := text_at(lifespan, field))
    }
    return terms_of(lifespan, rendered)
