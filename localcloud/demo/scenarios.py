"""The demos by name; each area adds one line."""

from __future__ import annotations

from localcloud.demo import accounts, claims, loadbalancer
from localcloud.demo.stage import Scenario

SCENARIOS: dict[str, Scenario] = {
    "accounts": accounts.SCENARIO,
    "claims": claims.SCENARIO,
    "loadbalancer": loadbalancer.SCENARIO,
}
