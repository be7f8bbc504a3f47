"""Every kind of effect of resource claims and load balancers is broken, in each way: everything agrees again by itself.

In each case all turns of an area are taken at the same time and meet one fault: processes and servers die while
effects are under way, answers are lost, calls are refused in the ways in which these APIs refuse. A kind of effect is
struck once for each turn that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import chaos_balancers_turns
import chaos_claims_turns
import pytest
from chaos_installation import Installation, Record
from chaos_striking import Area, Side

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(1800)]

AREAS: dict[str, tuple[Area[Any], tuple[pytest.MarkDecorator, ...]]] = {
    "claims": (chaos_claims_turns.AREA, ()),
    "load_balancers": (chaos_balancers_turns.AREA, (pytest.mark.openstack,)),
}


def _cases() -> Iterator[object]:
    for name, (area, marks) in AREAS.items():
        for side, fault in area.cases():
            id_ = f"{name}-{side.name}-{fault}".replace(" ", "_")
            yield pytest.param(area.lab, area, side, fault, id=id_, marks=marks)


@pytest.mark.parametrize(("swept_lab", "area", "side", "fault"), [*_cases()], indirect=["swept_lab"])
def test_everything_agrees_again_whatever_breaks(
    swept_lab: Installation,
    record: Record,
    record_property: Callable[[str, object], None],
    area: Area[Any],
    side: Side[Any],
    fault: str,
) -> None:
    record_property("seconds", round(area.disturb(swept_lab, side, fault, record), 1))
