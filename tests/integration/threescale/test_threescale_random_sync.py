"""Any product becomes any other on the simulator, and what is known after the answers is what a look would find."""

from __future__ import annotations

import random
from typing import Any

import pytest
from threescale_carried_out import bring_backend, bring_product
from threescale_process import Client, fresh

from domain.threescale.digests import digest
from domain.threescale.product_sync import Wanted
from domain.threescale.remote_state import FoundBackend, FoundProduct
from domain.threescale.resources import BackendSpec, ProductSpec
from domain.threescale.spec_validation import faults_of_product
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

HITS = {"friendlyName": "Hits", "unit": "hit", "description": "Number of API hits"}
PEOPLE = ("Red", "Green", "Blue", "Black")
PERIODS = ("day", "hour", "week")


def metrics_of(dice: random.Random) -> dict[str, Any]:
    """Metrics and methods under the same few names, with the same few friendly names."""
    chosen = dice.sample(("aa", "bb", "cc", "dd"), dice.randint(0, 4))
    friendly = dice.sample(PEOPLE, len(chosen))
    metrics: dict[str, Any] = {"hits": HITS}
    methods: dict[str, Any] = {}
    for name, people in zip(chosen, friendly, strict=True):
        if dice.random() < 0.5:
            metrics[name] = {"friendlyName": people, "unit": dice.choice(["1", "byte"])}
        else:
            methods[name] = {"friendlyName": people}
    return {"metrics": metrics, "methods": methods}


def rules_of(dice: random.Random, counted: list[str]) -> list[Any]:
    return [
        {
            "httpMethod": dice.choice(["GET", "POST"]),
            "pattern": dice.choice(["/a", "/b", "/c"]),
            "metricMethodRef": dice.choice(counted),
            "increment": dice.randint(1, 2),
        }
        for _ in range(dice.randint(0, 5))
    ]


def plan_of(dice: random.Random, references: list[dict[str, str]]) -> dict[str, Any]:
    limits = [
        {"period": period, "value": dice.randint(1, 3), "metricMethodRef": dice.choice(references)}
        for period in dice.sample(PERIODS, dice.randint(0, 3))
    ]
    first = dice.randint(1, 5)
    prices = [
        {"from": first, "to": first + 9, "pricePerUnit": dice.choice(["20", "15.40"]), "metricMethodRef": reference}
        for reference in dice.sample(references, dice.randint(0, 1))
    ]
    return {
        "published": dice.random() < 0.5,
        "costMonth": dice.choice(["5", "5.50"]),
        "limits": limits,
        "pricingRules": prices,
    }


def product_of(dice: random.Random, system_name: str, backends: dict[str, int]) -> Wanted:
    counts = metrics_of(dice)
    counted = [*counts["metrics"], *counts["methods"]]
    used = dice.sample(sorted(backends), dice.randint(1, len(backends)))
    paths = dice.sample(["/one", "/two", "/three"], len(used))
    references = [{"systemName": name} for name in counted]
    references += [{"systemName": "hits", "backend": name} for name in used]
    authentication = dice.choice(
        [
            {"userkey": {"authUserKey": dice.choice(["key", "token"])}},
            {"appKeyAppID": {"appID": "id"}},
            {
                "oidc": {
                    "issuerType": "keycloak",
                    "issuerEndpoint": "https://issuer.example.com",
                    "authenticationFlow": {
                        "standardFlowEnabled": dice.random() < 0.5,
                        "implicitFlowEnabled": False,
                        "serviceAccountsEnabled": True,
                        "directAccessGrantsEnabled": False,
                    },
                }
            },
        ]
    )
    policies = dice.sample(["cors", "headers"], dice.randint(0, 2))
    spec = ProductSpec.model_validate(
        {
            "name": dice.choice(["One", "Two"]),
            "systemName": system_name,
            "deployment": {"apicastHosted": {"authentication": authentication}},
            **counts,
            "mappingRules": rules_of(dice, counted),
            "backendUsages": {name: {"path": path} for name, path in zip(used, paths, strict=True)},
            "applicationPlans": {
                name: plan_of(dice, references) for name in dice.sample(("xx", "yy", "zz"), dice.randint(0, 2))
            },
            "policies": [{"name": name, "version": "builtin", "enabled": True} for name in policies],
        }
    )
    assert not faults_of_product(spec)
    return Wanted(spec=spec, backends={name: backends[name] for name in used}, gateway=digest(spec))


def compared(found: FoundProduct) -> dict[str, Any]:
    """What was read or answered, without the order of lists that have none."""
    plans = [
        {
            **plan.model_dump(),
            "limits": sorted((each.model_dump() for each in plan.limits or ()), key=lambda each: each["id"]),
            "pricing_rules": sorted(
                (each.model_dump() for each in plan.pricing_rules or ()), key=lambda each: each["id"]
            ),
        }
        for plan in sorted(found.plans or (), key=lambda each: each.id)
    ]
    return {
        "metrics": sorted((each.id, each.system_name, each.friendly_name) for each in found.metrics or ()),
        "rules": [each.model_dump() for each in sorted(found.rules or (), key=lambda each: each.position)],
        "usages": sorted((each.id, each.path, each.backend_id) for each in found.usages or ()),
        "plans": plans,
        "chain": found.chain,
        "service": (found.entry.name, found.entry.backend_version) if found.entry else None,
    }


@pytest.mark.parametrize("seed", range(4))
def test_any_product_becomes_any_other(client: Client, control: ThreescaleControl, seed: int) -> None:
    dice = random.Random(seed)
    system_name = fresh("random").replace(" ", "")
    backends = {}
    for _ in range(2):
        name = fresh("backend").replace(" ", "")
        spec = BackendSpec.model_validate(
            {"name": name, "systemName": name, "privateBaseURL": "https://x.example.com", "metrics": {"hits": HITS}}
        )
        made = bring_backend(client, spec, FoundBackend()).entry
        assert made is not None
        backends[name] = made.id
    found = FoundProduct()
    for _ in range(6):
        wanted = product_of(dice, system_name, backends)
        found = bring_product(client, wanted, found)
        assert found.entry is not None
        control.reset_ledger()
        observed = bring_product(client, wanted, FoundProduct(deployed=found.deployed), found.entry.id)
        assert control.ledger().mutating() == 0
        assert compared(observed) == compared(found)
