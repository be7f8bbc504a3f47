"""The worker is killed while a federated access asks AWS whose key its customer gave.

The other effects of federated access are in `test_crowded_kills.py`, whose claims ask the same question.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chaos_federated_effects import ASKING
from chaos_federated_turns import Federation
from chaos_kills import Death, cases
from chaos_lab import Lab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400), pytest.mark.chaos]


@pytest.fixture
def federation(lab: Lab) -> Iterator[Federation]:
    """The turns; what IAM has of them belongs to what must agree."""
    found = Federation(lab)
    lab.oracle.others = [found.violations]
    yield found
    if lab.cluster.list("awsfederatedroles"):
        found.end()
        lab.agree()
    lab.oracle.others = []


@pytest.mark.parametrize(("row", "mode"), cases("grant", [ASKING]))
def test_an_access_is_granted_although_the_worker_dies(federation: Federation, death: Death) -> None:
    federation.ready_to_grant()
    death.amidst(federation.grant)
