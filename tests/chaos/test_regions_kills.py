"""The worker is killed at every effect of opting in, raising quotas and closing: all comes about, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from chaos_effects import Effect
from chaos_kills import MODES, cases, kill_at
from chaos_lab import Lab, Record
from chaos_proxy import Break
from chaos_regions import CLOSING, OPTING, Regions

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400), pytest.mark.chaos]

Row = tuple[Effect, ...]


@pytest.fixture
def regions(lab: Lab) -> Iterator[Regions]:
    """The turns."""
    found = Regions(lab)
    found.begin()
    yield found
    found.end()


@pytest.mark.parametrize(("row", "mode"), cases("open", OPTING))
def test_an_account_opts_in_and_gets_its_quotas_although_the_worker_dies(
    lab: Lab,
    regions: Regions,
    record: Record,
    record_property: Callable[[str, object], None],
    row: Row,
    mode: Break,
) -> None:
    record(row, MODES[mode])
    lab.ready_to("take")
    record_property("seconds", round(kill_at(lab, row, mode, lab.take), 1))


@pytest.mark.parametrize(("row", "mode"), cases("close", CLOSING))
def test_an_account_is_closed_although_the_worker_dies(
    lab: Lab,
    regions: Regions,
    record: Record,
    record_property: Callable[[str, object], None],
    row: Row,
    mode: Break,
) -> None:
    record(row, MODES[mode])
    lab.ready_to("give back")
    record_property("seconds", round(kill_at(lab, row, mode, regions.close), 1))
    regions.keep()
