"""The worker is killed at every effect of claims that bring their account, and of fake ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chaos_customers_effects import BRINGING, CUTTING, PRETENDING, TAKING_AWAY
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


@pytest.mark.parametrize(("row", "mode"), cases("bring", BRINGING))
def test_a_customers_account_is_claimed_although_the_worker_dies(customers: Customers, death: Death) -> None:
    customers.ready_to("bring")
    death.amidst(customers.bring)


@pytest.mark.parametrize(("row", "mode"), cases("take-away", TAKING_AWAY))
def test_a_customers_account_is_given_back_although_the_worker_dies(customers: Customers, death: Death) -> None:
    customers.ready_to("take away")
    death.amidst(customers.end)


@pytest.mark.parametrize(("row", "mode"), cases("cut", CUTTING))
def test_nothing_keeps_running_in_a_customers_account_after_two_worker_crashes(
    customers: Customers, death: Death
) -> None:
    customers.ready_to("bring")
    customers.begin_to_bring()
    death.amidst(customers.cut_short)


@pytest.mark.parametrize(("row", "mode"), cases("pretend", PRETENDING))
def test_a_fake_claim_gets_its_secret_although_the_worker_dies(customers: Customers, death: Death) -> None:
    customers.ready_to("bring")
    death.amidst(customers.pretend)
