"""A run ends if its history is long, or if its workers' version is no longer current. The run ends only after its
activities and handlers have finished, so that no message is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from temporalio import workflow

from domain.carried_memory import Carry

# Histories stay short, so a run that has left the cache replays in well under a second.
LONGEST_HISTORY = 600


def is_due() -> bool:
    info = workflow.info()
    long = info.is_continue_as_new_suggested() or info.get_current_history_length() > LONGEST_HISTORY
    return long or _moves()


def may_leave_observation() -> bool:
    """Whether this run may end before a due observation, which the next run makes on a new worker version."""
    return _moves() and workflow.all_handlers_finished()


async def handlers_finished(unless: Callable[[], bool]) -> bool:
    """Wait until all handlers have finished. Returns False if `unless` returns True before that.

    `unless` says whether an observation is needed: handlers that wait for an observation finish only after it.
    """
    await workflow.wait_condition(lambda: workflow.all_handlers_finished() or unless())
    return workflow.all_handlers_finished()


def next_run(carry: Carry) -> NoReturn:
    upgrade = workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE
    workflow.continue_as_new(carry, initial_versioning_behavior=upgrade if _moves() else None)


def _moves() -> bool:
    """Whether another version of the workers is current."""
    return workflow.info().is_target_worker_deployment_version_changed()
