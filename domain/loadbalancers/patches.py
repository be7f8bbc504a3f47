"""Merge patches combined into one: fewer writes, and no intermediate states."""

from __future__ import annotations

from domain.writes import JsonPatch


def combined(*patches: JsonPatch) -> JsonPatch:
    """Merge patches, to be applied in sequence, as one merge patch. Nulls are kept, because they remove fields."""
    result: JsonPatch = {}
    for patch in patches:
        result = _over(result, patch)
    return result


def annotated(annotations: JsonPatch) -> JsonPatch:
    return {"metadata": {"annotations": annotations}}


def _over(lower: JsonPatch, upper: JsonPatch) -> JsonPatch:
    result = dict(lower)
    for name, value in upper.items():
        before = result.get(name)
        result[name] = _over(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result
