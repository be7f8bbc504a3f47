"""Bugs of Perdure: exceptions that are no error of another system (`engine/errors.py`).

Each is logged with its traceback, and counted; the workflow stays open. While a bug blocks an action, the phase is
`Bug` (`State.phase` in `domain/runner.py`), and the action is retried with pauses of up to ten minutes
(`domain/refusal.py`).
"""

from __future__ import annotations

import logging

from prometheus_client import Counter
from temporalio.exceptions import ApplicationError

from domain.refusal import ErrorType
from engine import metrics

BUG_FOUND = "%s failed because of a bug in Perdure"
BUGS = Counter("perdure_bugs", "Attempts of activities that failed because of a bug in Perdure.", ["kind", "activity"])

log = logging.getLogger(__name__)


def is_bug(failure: ApplicationError) -> bool:
    return failure.type == ErrorType.BUG.value


def report_bug(activity: str) -> None:
    log.exception(BUG_FOUND, activity)
    BUGS.labels(metrics.subject(), activity).inc()
