"""Annotations and labels that a provider puts on its claims (`resourceClaimAnnotations`, `resourceClaimLabels`).

They are added, or corrected if they differ, and never removed.
"""

from __future__ import annotations

from domain.claims.json_objects import JsonObject, object_at


def missing_on_claim(claim: JsonObject, provider: JsonObject, field: str) -> dict[str, str]:
    """`field` is `annotations` or `labels`."""
    there, wanted = object_at(claim, "metadata", field), object_at(provider, "spec", f"resourceClaim{field.title()}")
    return {key: value for key, value in wanted.items() if isinstance(value, str) and there.get(key) != value}
