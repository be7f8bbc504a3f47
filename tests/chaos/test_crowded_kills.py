"""One death of the worker in the midst of several lifecycles: federated access, a customer's claim, a fake one.

Beside the sweeps over each of them alone, which also try the effect that comes later than the death.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chaos_customers_effects import BRINGING, TAKING_AWAY
from chaos_customers_turns import Customers
from chaos_federated_effects import ENDING, GRANTING
from chaos_federated_turns import Federation
from chaos_kills import Death, beside, cases
from chaos_lab import Lab
from chaos_proxy import Break

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400), pytest.mark.chaos]

# An access's question whose key it has is asked by others, too: left to the sweep over federated access.
GRANTED = [row for row in GRANTING if "aws.identify_customer" not in {effect.activity for effect in row}]
HELD = (Break.AFTER, Break.BEFORE)  # until the worker dies, whichever comes first


@pytest.fixture
def federation(lab: Lab) -> Iterator[Federation]:
    """Federated access."""
    found = Federation(lab)
    yield found
    if lab.cluster.list("awsfederatedroles"):
        found.end()


@pytest.fixture
def customers(lab: Lab, federation: Federation) -> Iterator[Customers]:
    """Customers' claims; what there is of both belongs to what must agree."""
    found = Customers(lab)
    lab.oracle.others = [federation.violations, found.violations]
    yield found
    if found.name:
        found.end()
    if lab.cluster.list("awsfederatedroles"):
        federation.end()
    lab.agree()
    lab.oracle.others = []


@pytest.mark.parametrize(("row", "mode"), cases("come", beside(BRINGING, GRANTED), HELD))
def test_a_claim_and_an_access_come_although_the_worker_dies(
    customers: Customers, federation: Federation, death: Death
) -> None:
    federation.ready_to("grant")
    customers.ready_to("bring")

    def come() -> None:
        federation.grant()
        customers.bring()

    death.amidst(come)


@pytest.mark.parametrize(("row", "mode"), cases("go", beside(TAKING_AWAY, ENDING), HELD))
def test_a_claim_and_an_access_go_although_the_worker_dies(
    customers: Customers, federation: Federation, death: Death
) -> None:
    federation.ready_to("end")
    customers.ready_to("take away")

    def go() -> None:
        federation.end()
        customers.end()

    death.amidst(go)
