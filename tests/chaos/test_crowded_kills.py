"""The worker is killed in the midst of several lifecycles: each death meets an effect of each of them.

Federated access, customers' claims, fleet managers' and fake ones. Two cases have files of their own: an access's
question whose key it has (`test_federated_kills.py`), and a claim that is cut short (`test_customers_kills.py`).
"""

from __future__ import annotations

import pytest
from chaos_crowd import Crowd
from chaos_customers_effects import BRINGING, EQUIPPING, PRETENDING, STRIPPING, TAKING_AWAY
from chaos_federated_effects import ASKING, ENDING, GRANTING, RENEWING
from chaos_kills import Death, Reused, beside, cases
from chaos_lab import Lab
from chaos_proxy import Break

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400), pytest.mark.chaos]

# Customers' claims ask the same question at the same time.
GRANTED = [row for row in GRANTING if row is not ASKING]
HELD = (Break.AFTER, Break.BEFORE, Break.PARKED)  # until the worker dies, whichever comes first


@pytest.fixture
def crowd(lab: Lab, reused: Reused) -> Crowd:
    """All of them."""
    return reused.get(lab, Crowd)


@pytest.mark.turn("come", of="crowd")
@pytest.mark.parametrize(("row", "mode"), cases("come", beside(BRINGING, GRANTED, EQUIPPING), HELD))
def test_claims_and_an_access_come_although_the_worker_dies(crowd: Crowd, death: Death) -> None:
    crowd.ready_to("come")
    death.amidst(crowd.come)


@pytest.mark.turn("renew", of="crowd")
@pytest.mark.parametrize(("row", "mode"), cases("renew", beside(RENEWING, PRETENDING), HELD))
def test_an_access_is_renewed_beside_a_fake_claim_although_the_worker_dies(crowd: Crowd, death: Death) -> None:
    crowd.ready_to("renew")
    death.amidst(crowd.renew)


@pytest.mark.turn("go", of="crowd")
@pytest.mark.parametrize(("row", "mode"), cases("go", beside(TAKING_AWAY, ENDING, STRIPPING), HELD))
def test_claims_and_an_access_go_although_the_worker_dies(crowd: Crowd, death: Death) -> None:
    crowd.ready_to("go")
    death.amidst(crowd.go)
