"""The worker is killed at every effect of a fleet manager's claim: its role comes and goes all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chaos_customers_effects import EQUIPPING, STRIPPING
from chaos_fleet_turns import FleetManagers
from chaos_kills import Death, cases
from chaos_lab import Lab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400), pytest.mark.chaos]


@pytest.fixture
def fleet(lab: Lab) -> Iterator[FleetManagers]:
    """The turns; what they made belongs to what must agree."""
    found = FleetManagers(lab)
    found.begin()
    yield found
    found.end()


@pytest.mark.parametrize(("row", "mode"), cases("equip", EQUIPPING))
def test_a_fleet_managers_claim_gets_its_role_although_the_worker_dies(fleet: FleetManagers, death: Death) -> None:
    death.amidst(fleet.equip)


@pytest.mark.parametrize(("row", "mode"), cases("strip", STRIPPING))
def test_a_fleet_managers_role_goes_with_its_claim_although_the_worker_dies(fleet: FleetManagers, death: Death) -> None:
    fleet.ready_to_strip()
    death.amidst(fleet.strip)
