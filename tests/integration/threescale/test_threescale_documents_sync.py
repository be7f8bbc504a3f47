"""Documents, policies and promotions on the simulator: made once, changed where they differ, done once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from threescale_carried_out import bring_one, read, write
from threescale_process import Client, fresh

from domain.threescale.active_doc import is_document, sync_document
from domain.threescale.calls import Resource
from domain.threescale.config_promotion import FoundConfigs, read_configs, sync_promotion, wrote_configs
from domain.threescale.custom_policy import is_policy, sync_policy
from domain.threescale.remote_state import FoundDocument, FoundPolicy
from domain.threescale.resources import ActiveDoc, CustomPolicyDefinition, ProxyConfigPromote
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

BODY = json.dumps({"openapi": "3.0.0", "info": {"title": "Pets", "version": "1"}, "paths": {}})


def bring_document(client: Client, body: str, service_id: int, **spec: Any) -> FoundDocument:
    document = ActiveDoc.model_validate({"metadata": {"name": "doc"}, "spec": spec})
    return bring_one(
        client,
        FoundDocument,
        Resource.DOCUMENT,
        lambda found: sync_document(document, body, service_id, found),
        lambda found: is_document(found, document),
        {},
    )


def test_a_document_is_made_changed_and_leaves_its_product(client: Client, control: ThreescaleControl) -> None:
    name, service = fresh("doc").replace(" ", ""), client.service()["id"]
    made = bring_document(client, BODY, service, name="Pets", systemName=name, published=True)
    control.reset_ledger()
    again = bring_document(client, json.dumps(json.loads(BODY), indent=2), service, name="Pets", systemName=name)
    assert again == made
    assert control.ledger().mutating() == 0
    changed = bring_document(client, BODY, 0, name="Cats", systemName=name, published=False)

    assert (changed.id, changed.name, changed.published, changed.service_id) == (made.id, "Cats", False, 0)


def bring_policy(client: Client, name: str, summary: str) -> FoundPolicy:
    schema = {
        "name": name,
        "version": "1.0",
        "summary": summary,
        "$schema": "http://apicast.io/policy-v1/schema#manifest#",
        "configuration": {"type": "object", "properties": {}},
        "description": ["What it does."],
    }
    policy = CustomPolicyDefinition.model_validate({"spec": {"name": name, "version": "1.0", "schema": schema}})
    return bring_one(
        client,
        FoundPolicy,
        Resource.POLICY,
        lambda found: sync_policy(policy, found),
        lambda found: is_policy(found, policy),
        {},
    )


def test_a_policy_is_made_once_and_changed(client: Client, control: ThreescaleControl) -> None:
    name = fresh("policy").replace(" ", "_")
    made = bring_policy(client, name, "first")
    control.reset_ledger()
    assert bring_policy(client, name, "first") == made
    assert control.ledger().mutating() == 0
    changed = bring_policy(client, name, "second")

    assert changed.id == made.id
    assert changed.schema_["summary"] == "second"


def promote(client: Client, service: int) -> tuple[FoundConfigs, int]:
    """What it came to, and how many calls were writes."""
    promotion = ProxyConfigPromote.model_validate({"spec": {"productCRName": "shop", "production": True}})
    found, writes = FoundConfigs(), 0
    for _ in range(5):
        sync = sync_promotion(promotion, service, found)
        if sync.done:
            return found, writes
        for each in sync.reads:
            found = read_configs(found, each, read(client, each))
        for step in sync.writes:
            write(client, step)
            found, writes = wrote_configs(found, step), writes + 1
    raise AssertionError("no end of it")


def test_a_promotion_reaches_production_and_the_next_finds_nothing_to_do(client: Client) -> None:
    service = client.used_service()["id"]
    assert promote(client, service) == (FoundConfigs(deployed=True, newest={"sandbox": 1, "production": 1}), 2)
    assert promote(client, service) == (FoundConfigs(deployed=True, newest={"sandbox": 1, "production": 1}), 1)
    client.post(f"services/{service}/backend_usages", backend_api_id=client.backend()["id"], path="/second")
    found, _ = promote(client, service)

    assert found.newest == {"sandbox": 2, "production": 2}
    assert client.get(f"services/{service}/proxy/configs/production/latest")["proxy_config"]["version"] == 2
