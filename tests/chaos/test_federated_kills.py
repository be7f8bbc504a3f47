"""The worker is killed at every effect of federated access: granted, renewed and taken back all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chaos_federated_effects import ENDING, GRANTING, RENEWING
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


@pytest.mark.parametrize(("row", "mode"), cases("grant", GRANTING))
def test_an_access_is_granted_although_the_worker_dies(federation: Federation, death: Death) -> None:
    federation.ready_to("grant")
    death.amidst(federation.grant)


@pytest.mark.parametrize(("row", "mode"), cases("renew", RENEWING))
def test_an_access_follows_its_role_although_the_worker_dies(federation: Federation, death: Death) -> None:
    federation.ready_to("renew")
    death.amidst(federation.renew)


@pytest.mark.parametrize(("row", "mode"), cases("end", ENDING))
def test_an_access_is_taken_back_with_its_role_although_the_worker_dies(federation: Federation, death: Death) -> None:
    federation.ready_to("end")
    death.amidst(federation.end)
