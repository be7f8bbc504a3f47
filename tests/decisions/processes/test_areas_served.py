"""Which areas a process serves: all, or those that the settings name."""

from __future__ import annotations

import pytest

from engine.settings import Settings
from starters.watch import areas
from starters.watch.background_tasks import duties_of_areas
from starters.watch.objectless_lifecycles import opened_by_areas
from starters.watch.watched_kinds import watched_under
from workers.main import served_areas
from workers.registry import areas as executable
from workers.task_queues import observing_queues

QUEUES = ("111111111111/us-east-1",)
JOINED_BY = ("WATCHED", "watched_for", "opened_for", "duties_for")


def test_every_module_through_which_an_area_joins_names_it() -> None:
    joining = [module for module in areas.modules() if any(hasattr(module, name) for name in JOINED_BY)]
    assert {module.AREA for module in joining} - {""} == set(executable())


def test_without_a_choice_every_area_is_watched_and_executed() -> None:
    everything = Settings(instances_queues=QUEUES)
    assert {entry.kind.area for entry in watched_under(everything)} == {*executable(), ""}
    assert served_areas(everything) == executable()


def test_an_installation_for_accounts_watches_nothing_of_others() -> None:
    settings = Settings(areas=("accounts",), instances_queues=QUEUES)
    assert {entry.kind.area for entry in watched_under(settings)} == {"accounts", ""}
    assert {entry.name for entry in watched_under(settings) if not entry.kind.area} == {
        "accounts ConfigMap",
        "accounts Secret",
        "audit reports",
    }
    assert duties_of_areas(settings) == ()
    assert opened_by_areas(settings) == ()
    assert served_areas(settings) == ("accounts",)


@pytest.mark.parametrize("area", ["claims", "loadbalancers", "threescale", "instances"])
def test_an_area_alone_is_watched_with_its_own_kinds(area: str) -> None:
    watched = watched_under(Settings(areas=(area,), instances_queues=QUEUES))
    assert area in {entry.kind.area for entry in watched}
    assert {entry.kind.area for entry in watched} <= {area, ""}


def test_an_area_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(ValueError, match="PERDURE_AREAS names acounts; the areas are: accounts, claims"):
        served_areas(Settings(areas=("acounts",)))


def test_levers_are_written_where_the_area_looks_at_its_objects() -> None:
    from domain.claims.passes import PassClaim
    from domain.loadbalancers.machine.world import ObserveMachine
    from domain.threescale.passes import PassObject

    looks = {"claims": PassClaim, "loadbalancers": ObserveMachine, "threescale": PassObject}
    assert all(observing_queues(area) == {look.queue} for area, look in looks.items())
    assert "kube" in observing_queues("accounts")
