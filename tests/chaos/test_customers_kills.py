"""The worker is killed at every effect of claims that bring their account, and of fake ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from chaos_customers_effects import BRINGING, PRETENDING, TAKING_AWAY
from chaos_customers_turns import Customers
from chaos_effects import Effect
from chaos_kills import MODES, cases, kill_at
from chaos_lab import Lab, Record
from chaos_proxy import Break

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400), pytest.mark.chaos]

Row = tuple[Effect, ...]


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
def test_a_customers_account_is_claimed_although_the_worker_dies(
    lab: Lab,
    customers: Customers,
    record: Record,
    record_property: Callable[[str, object], None],
    row: Row,
    mode: Break,
) -> None:
    record(row, MODES[mode])
    customers.ready_to("bring")
    record_property("seconds", round(kill_at(lab, row, mode, customers.bring), 1))


@pytest.mark.parametrize(("row", "mode"), cases("take-away", TAKING_AWAY))
def test_a_customers_account_is_given_back_although_the_worker_dies(
    lab: Lab,
    customers: Customers,
    record: Record,
    record_property: Callable[[str, object], None],
    row: Row,
    mode: Break,
) -> None:
    record(row, MODES[mode])
    customers.ready_to("take away")
    record_property("seconds", round(kill_at(lab, row, mode, customers.end), 1))


@pytest.mark.parametrize(("row", "mode"), cases("pretend", PRETENDING))
def test_a_fake_claim_gets_its_secret_although_the_worker_dies(
    lab: Lab,
    customers: Customers,
    record: Record,
    record_property: Callable[[str, object], None],
    row: Row,
    mode: Break,
) -> None:
    record(row, MODES[mode])
    customers.ready_to("bring")
    record_property("seconds", round(kill_at(lab, row, mode, customers.pretend), 1))
