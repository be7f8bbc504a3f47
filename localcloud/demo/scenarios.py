"""The demos by name; each area adds one line."""

from __future__ import annotations

from localcloud.demo import accounts, api, byoc, claims, greeting, instances, loadbalancer, resilience
from localcloud.demo.stage import Scenario

SCENARIOS: dict[str, Scenario] = {
    "accounts": accounts.SCENARIO,
    "api": api.SCENARIO,
    "byoc": byoc.SCENARIO,
    "claims": claims.SCENARIO,
    "greeting": greeting.SCENARIO,
    "instances": instances.SCENARIO,
    "loadbalancer": loadbalancer.SCENARIO,
    "resilience": resilience.SCENARIO,
}
