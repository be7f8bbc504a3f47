"""The worker is killed at every effect of federated access: granted, renewed and taken back all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from chaos_effects import Effect
from chaos_federated_effects import ENDING, GRANTING, RENEWING
from chaos_federated_turns import Federation
from chaos_kills import MODES, cases, kill_at
from chaos_lab import Lab, Record
from chaos_proxy import Break

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400), pytest.mark.chaos]

Row = tuple[Effect, ...]


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
def test_an_access_is_granted_although_the_worker_dies(
    lab: Lab,
    federation: Federation,
    record: Record,
    record_property: Callable[[str, object], None],
    row: Row,
    mode: Break,
) -> None:
    record(row, MODES[mode])
    federation.ready_to("grant")
    record_property("seconds", round(kill_at(lab, row, mode, federation.grant), 1))


@pytest.mark.parametrize(("row", "mode"), cases("renew", RENEWING))
def test_an_access_follows_its_role_although_the_worker_dies(
    lab: Lab,
    federation: Federation,
    record: Record,
    record_property: Callable[[str, object], None],
    row: Row,
    mode: Break,
) -> None:
    record(row, MODES[mode])
    federation.ready_to("renew")
    record_property("seconds", round(kill_at(lab, row, mode, federation.renew), 1))


@pytest.mark.parametrize(("row", "mode"), cases("end", ENDING))
def test_an_access_is_taken_back_with_its_role_although_the_worker_dies(
    lab: Lab,
    federation: Federation,
    record: Record,
    record_property: Callable[[str, object], None],
    row: Row,
    mode: Break,
) -> None:
    record(row, MODES[mode])
    federation.ready_to("end")
    record_property("seconds", round(kill_at(lab, row, mode, federation.end), 1))
