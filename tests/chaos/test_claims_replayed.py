"""Today's code replays what it has just done on the real deployment, kills included; recordings are taken here, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from chaos_claims_lab import ClaimsLab
from chaos_claims_turns import BY_NAME, nth
from chaos_installation import Armed
from chaos_proxy import Break
from temporalio.client import Client, WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from tests.replay.recording import keep, recording
from workers.roster import workflows_of

WORKFLOWS = workflows_of("claims")

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TYPES = ("ClaimBinder", "ResourceClaim", "ResourceHandle", "ResourcePool")
MOST_RECORDED = 3  # of a type: the longest, which have seen most


def _live(lab: ClaimsLab) -> None:
    """A bit of everything, with a worker that dies in between."""
    for turn in ("create", "bind", "fill a pool"):
        BY_NAME[turn].act(lab, "")
    lab.settle()
    for turn in ("edit", "detach", "auto-delete", "delete handle", "expire", "delete a pool"):
        BY_NAME[turn].act(lab, BY_NAME[turn].prepare(lab))
        lab.settle()
    made = lab.intercept(nth("POST resourcehandles 1"), Break.AFTER)
    BY_NAME["create"].act(lab, "")
    lab.await_struck([Armed("create", made.struck.is_set)])
    lab.worker.kill()
    lab.lift()
    lab.worker.start()
    lab.settle()


async def _histories(lab: ClaimsLab, type_: str) -> AsyncIterator[WorkflowHistory]:
    client = await Client.connect(lab.deployment.env()["TEMPORAL_ADDRESS"], data_converter=pydantic_data_converter)
    async for found in client.list_workflows(f"WorkflowType='{type_}'"):
        yield await client.get_workflow_handle(found.id, run_id=found.run_id).fetch_history()


async def _replay(lab: ClaimsLab) -> dict[str, int]:
    replayer = Replayer(workflows=list(WORKFLOWS), data_converter=pydantic_data_converter)
    replayed = {}
    for type_ in TYPES:
        histories = [history async for history in _histories(lab, type_)]
        for history in histories:
            await replayer.replay_workflow(history)
        replayed[type_] = len(histories)
        if recording():
            longest = sorted(histories, key=lambda each: len(each.events), reverse=True)[:MOST_RECORDED]
            for number, history in enumerate(longest, 1):
                keep(type_, f"on_the_real_deployment_{number}", history)
    return replayed


def test_what_claims_did_on_the_real_deployment_is_replayed(claims_lab: ClaimsLab) -> None:
    claims_lab.clear()
    _live(claims_lab)
    replayed = asyncio.run(_replay(claims_lab))
    assert all(replayed.values()), replayed
