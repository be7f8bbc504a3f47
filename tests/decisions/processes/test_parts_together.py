"""`perdure run`: worker, watcher and event consumer in one process."""

from __future__ import annotations

import pytest

import starters.events.main
import starters.watch.main
import workers.main
from engine.settings import Settings
from starters.cli.processes import named_areas, run_together

QUEUES = ("111111111111/us-east-1",)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, ...]]:
    """The areas of the settings with which each part begins; each part ends at once."""
    found: dict[str, tuple[str, ...]] = {}
    parts = ((workers.main, "worker"), (starters.watch.main, "watcher"), (starters.events.main, "events"))
    for module, part in parts:

        async def run(settings: Settings, *, part: str = part, **_: object) -> None:
            found[part] = settings.areas

        monkeypatch.setattr(module, f"run_{part}", run)
    return found


@pytest.mark.parametrize(
    ("only", "queues", "parts"),
    [
        ((), QUEUES, {"worker": (), "watcher": (), "events": ()}),
        ((), (), {"worker": (), "watcher": ()}),
        (("claims",), QUEUES, {"worker": ("claims",), "watcher": ("claims",)}),
        (("instances",), QUEUES, dict.fromkeys(("worker", "watcher", "events"), ("instances",))),
    ],
)
async def test_every_part_serves_the_same_areas(
    only: tuple[str, ...],
    queues: tuple[str, ...],
    parts: dict[str, tuple[str, ...]],
    begun: dict[str, tuple[str, ...]],
) -> None:
    await run_together(Settings(instances_queues=queues), only)
    assert begun == parts


def test_an_area_that_is_named_twice_gets_one_worker() -> None:
    assert named_areas("claims, accounts,claims,") == ("claims", "accounts")
