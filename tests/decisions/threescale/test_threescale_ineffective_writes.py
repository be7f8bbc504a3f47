"""Writes that 3scale accepts and stores differently: reported after a few times, not repeated for ever."""

from __future__ import annotations

import pytest

from activities.threescale.ineffective_writes import MOST, IneffectiveWrites
from domain.threescale.calls import Resource, Write
from engine.errors import Denied

CHANGE = Write(resource=Resource.SERVICE, method="PUT", path="services/5", fields={"name": " shop "}, about="shop")


def test_a_write_that_changes_nothing_is_reported_and_others_go_on() -> None:
    repeats = IneffectiveWrites()
    for _ in range(MOST):
        repeats.refuse(CHANGE)
        repeats.made(CHANGE)
    with pytest.raises(Denied, match=r"3scale accepts PUT services/5, but stores other values than were sent: name"):
        repeats.refuse(CHANGE)

    repeats.refuse(CHANGE.model_copy(update={"fields": {"name": "shop"}}))
    repeats.refuse(CHANGE.model_copy(update={"path": "services/6"}))


def test_an_ineffective_write_is_retried_on_each_request() -> None:
    repeats = IneffectiveWrites()
    for _ in range(2 * MOST):
        repeats.refuse(CHANGE)
