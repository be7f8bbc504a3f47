"""The worker is killed at every effect of opting in, raising quotas and closing: all comes about, once."""

from __future__ import annotations

import pytest
from chaos_kills import Death, Reused, cases
from chaos_lab import Lab
from chaos_regions import CLOSING, OPTING, Regions

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400), pytest.mark.chaos]


@pytest.fixture
def regions(lab: Lab, reused: Reused) -> Regions:
    """The turns."""
    return reused.get(lab, Regions)


@pytest.mark.turn("open", of="regions")
@pytest.mark.parametrize(("row", "mode"), cases("open", OPTING))
def test_an_account_opts_in_and_gets_its_quotas_although_the_worker_dies(
    lab: Lab, regions: Regions, death: Death
) -> None:
    lab.ready_to("take")
    death.amidst(lab.take)


@pytest.mark.turn("close", of="regions")
@pytest.mark.parametrize(("row", "mode"), cases("close", CLOSING))
def test_an_account_is_closed_although_the_worker_dies(lab: Lab, regions: Regions, death: Death) -> None:
    lab.ready_to("give back")
    death.amidst(regions.close)
    regions.keep()
