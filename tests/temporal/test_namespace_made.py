"""The namespace is made ready by `perdure temporal bootstrap` on a real Temporal, as often as it is run."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporal_server import TemporalServer, perdure
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.client import Client

from engine import temporal as attributes
from engine.search_attributes import SEARCH_ATTRIBUTE_TYPES
from engine.temporal_namespace import NamespaceUnfit, bootstrap

KEYWORD_LIST = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST


def test_the_registered_attributes_are_the_ones_that_lifecycles_write() -> None:
    written = {each.name for name, each in vars(attributes).items() if name.startswith("OP_")}
    assert written == set(SEARCH_ATTRIBUTE_TYPES)


def test_a_namespace_is_made_once_and_then_left_unchanged(temporal: TemporalServer) -> None:
    namespace = f"made-{uuid4().hex[:8]}"
    first = perdure(temporal, namespace, "temporal", "bootstrap", "--retention-days", "3", "-o", "json")
    assert first.returncode == 0, first.stderr
    done: dict[str, Any] = json.loads(first.stdout)
    assert (done["created"], done["retention_days"]) == (True, 3)
    assert set(done["attributes_added"]) == set(SEARCH_ATTRIBUTE_TYPES)
    again = perdure(temporal, namespace, "temporal", "bootstrap")
    assert again.returncode == 0, again.stderr
    assert f"namespace {namespace}: existed already, closed lifecycles are kept 3 days" in again.stdout
    assert "none was missing" in again.stdout


async def test_another_retention_is_set_and_the_former_one_is_reported(temporal: TemporalServer) -> None:
    client = await Client.connect(temporal.address, namespace=f"kept-{uuid4().hex[:8]}")
    assert (await bootstrap(client)).retention_days == 30
    done = await bootstrap(client, timedelta(days=7))
    assert (done.created, done.retention_days, done.retention_before_days) == (False, 7, 30)
    assert (await bootstrap(client)).retention_days == 7


async def test_an_attribute_of_another_type_is_reported_and_left(temporal: TemporalServer) -> None:
    other = await Client.connect(temporal.address, namespace=f"taken-{uuid4().hex[:8]}")
    with pytest.MonkeyPatch.context() as patched:
        # Another product's namespace, where a name of ours means something else.
        patched.setattr("engine.temporal_namespace.SEARCH_ATTRIBUTES", {"OpPhase": KEYWORD_LIST})
        await bootstrap(other)
    with pytest.raises(NamespaceUnfit, match="OpPhase must be Keyword"):
        await bootstrap(other)
