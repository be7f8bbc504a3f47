"""How the watcher recognises Perdure's own writes."""

from __future__ import annotations

import pytest

from engine.kube.json import JsonObject
from starters.watch.own_writes import written_by_us


def written(*entries: tuple[str, str]) -> JsonObject:
    """An object with these (manager, time) entries in its managedFields."""
    return {"metadata": {"managedFields": [{"manager": manager, "time": time} for manager, time in entries]}}


@pytest.mark.parametrize(
    ("entries", "ours"),
    [
        ([("perdure", "2026-01-01T00:00:02Z")], True),
        ([("kubectl", "2026-01-01T00:00:01Z"), ("perdure", "2026-01-01T00:00:02Z")], True),
        ([("perdure", "2026-01-01T00:00:02Z"), ("kubectl", "2026-01-01T00:00:03Z")], False),
        ([("perdure", "2026-01-01T00:00:02Z"), ("kubectl", "2026-01-01T00:00:02Z")], False),
        ([("perdure-cli", "2026-01-01T00:00:02Z")], False),
        ([("perdure", "")], False),
        ([], False),
    ],
)
def test_a_write_is_ours_only_beyond_doubt(entries: list[tuple[str, str]], ours: bool) -> None:
    assert written_by_us(written(*entries)) is ours


def test_managed_fields_of_any_shape_are_not_ours() -> None:
    for odd in (None, "text", [1, None], {"manager": "perdure"}):
        assert not written_by_us({"metadata": {"managedFields": odd}})
