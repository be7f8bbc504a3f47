"""The worker is killed at every effect by which a claim is cut short while its customer's account is initialised.

The other lives of customers' claims are in `test_crowded_kills.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chaos_customers_effects import CUTTING
from chaos_customers_turns import Customers
from chaos_kills import Death, cases
from chaos_lab import Lab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400), pytest.mark.chaos]


@pytest.fixture
def customers(lab: Lab) -> Iterator[Customers]:
    """The turns; what they made belongs to what must agree."""
    found = Customers(lab)
    lab.oracle.others = [found.violations]
    yield found
    if found.name:
        found.end()
        lab.agree()
    lab.oracle.others = []


@pytest.mark.parametrize(("row", "mode"), cases("cut", CUTTING))
def test_nothing_keeps_running_in_a_customers_account_after_two_worker_crashes(
    customers: Customers, death: Death
) -> None:
    customers.begin_to_bring()
    death.amidst(customers.cut_short)
