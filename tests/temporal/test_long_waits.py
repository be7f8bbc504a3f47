"""A lifecycle may wait for more names, and longer ones, than Temporal accepts in a search attribute."""

from __future__ import annotations

from typing import Any

import pytest
from passing import Passes, new_key, until_phase, working
from temporal_server import TemporalServer, pointing_at
from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.converter import encode_search_attribute_values
from waiting import eventually

from domain.accounts.passes import PassPool, PoolWorld
from domain.decision import Decision, Outcome
from domain.identity import Key
from engine.temporal import LONGEST_VALUE, OP_WAITS_FOR, connect, described, listed, open_with, wake

NAMES = tuple(f"Backend/apis/a-backend-with-a-name-of-some-length-{number}" for number in range(100))
LONG = ("ein größeres Hindernis; " * 200,)


def decided(waits_for: tuple[str, ...]) -> Decision:
    return Decision(phase="Waiting", outcome=Outcome.WAITING, why="a test", waits_for=waits_for)


class Waiting(Passes):
    def __init__(self, waits_for: tuple[str, ...]) -> None:
        super().__init__()
        self.waits_for = waits_for

    @activity.defn(name=PassPool.activity)
    async def one(self, look: PassPool) -> PoolWorld:
        return PoolWorld(key=look.key, decision=decided(self.waits_for))


@pytest.mark.parametrize("waits_for", [NAMES, LONG], ids=["many", "long"])
async def test_a_lifecycle_stays_open_whatever_it_waits_for(
    waits_for: tuple[str, ...], temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, key = await connect(pointing_at(temporal, monkeypatch), "tests"), new_key()
    async with working(client, Waiting(waits_for)):
        await wake(client, key)
        await until_phase(client, key, "Waiting")
        handle: Any = client.get_workflow_handle(key.workflow_id)
        assert len((await handle.query("why"))["waits_for"]) == len(waits_for)
        await eventually(lambda: shown(client, key), "the search attribute")
        assert (await shown(client, key))[0] == waits_for[0][:330]
        await handle.terminate("the test is over")


async def test_a_lifecycle_is_opened_whatever_it_waits_for(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, key = await connect(pointing_at(temporal, monkeypatch), "tests"), new_key()
    await open_with(client, key, PoolWorld(key=key, decision=decided(NAMES)))
    assert (await shown(client, key))[-1].endswith(" more")
    await client.get_workflow_handle(key.workflow_id).terminate("the test is over")


def test_names_that_fit_are_listed_unchanged() -> None:
    """Lifecycles of earlier versions have them in their histories."""
    for fits in ((), NAMES[:20], ("n" * 2044,), ("n" * 1000, "n" * 1041)):
        assert listed(fits) == list(fits)
        assert size(list(fits)) <= LONGEST_VALUE


@pytest.mark.parametrize("name", ["n" * 2045, "ö" * 341, "😀" * 300, "n" * 50, "n" * 329], ids=len)
@pytest.mark.parametrize("times", [1, 6, 41, 5000])
def test_no_list_exceeds_the_limit(name: str, times: int) -> None:
    found = listed([name] * times)
    assert size(found) <= LONGEST_VALUE
    if found[-1].endswith(" more"):
        listed_names = len(found) - 1
        assert found == [*[name[:330]] * listed_names, f"{times - listed_names} more"]
    else:
        assert found in ([name] * times, [name[:330]] * times)


def size(names: list[str]) -> int:
    return len(encode_search_attribute_values(names).data)


async def shown(client: Any, key: Key) -> list[str]:
    found = await described(client, key)
    assert found is not None
    assert found.status is WorkflowExecutionStatus.RUNNING
    return list(found.typed_search_attributes.get(OP_WAITS_FOR) or ())
