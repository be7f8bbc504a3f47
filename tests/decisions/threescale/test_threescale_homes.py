"""How long it is believed where another object has its tenant."""

from __future__ import annotations

from activities.threescale.tenant_addresses import REMEMBERED_SECONDS, Homes

PLACE = ("shop", "tenant")


def test_an_address_is_believed_for_some_seconds() -> None:
    now = [0.0]
    homes = Homes(lambda: now[0])
    homes.note(PLACE, "https://a")
    now[0] = REMEMBERED_SECONDS - 0.1
    assert homes.get(PLACE) == "https://a"
    assert homes.get(("shop", "")) == ""
    now[0] = REMEMBERED_SECONDS
    assert homes.get(PLACE) == ""


def test_that_there_is_none_is_not_believed_at_all() -> None:
    homes = Homes(lambda: 0.0)
    homes.note(PLACE, "https://a")
    homes.note(PLACE, "")
    assert homes.get(PLACE) == ""
