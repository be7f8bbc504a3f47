"""Wraps every activity: starts `engine.clock` and the heartbeats, maps errors, and counts the attempt.

Only here do exceptions become failures in Temporal (`engine/errors.py`). A cancelled activity stays cancelled.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any, cast

from temporalio import activity
from temporalio.bridge.proto import ActivityHeartbeat
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import ActivityInboundInterceptor, ActivityOutboundInterceptor, ExecuteActivityInput, Interceptor

from activities import attempt
from engine import clock, metrics
from engine.bugs import is_bug, report_bug
from engine.errors import to_application_error
from engine.heartbeat import heartbeating


class Boundary(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Edge(next)


class _Edge(ActivityInboundInterceptor):
    _outbound: ActivityOutboundInterceptor

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        self._outbound = outbound
        super().init(outbound)

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        clock.begin()
        attempt.begin(input.args[0] if input.args else None)
        began = time.perf_counter()
        try:
            with heartbeating(partial(self._beat, activity.info().task_token)):
                result = await super().execute_activity(input)
        except (asyncio.CancelledError, CancelledError):
            raise
        except Exception as error:
            _count(began, error)
            failure = to_application_error(error)
            if is_bug(failure):
                report_bug(activity.info().activity_type)
            raise failure from _cause(error, failure)
        _count(began, None)
        return result

    def _beat(self, task_token: bytes) -> None:
        """Record a heartbeat from any thread: the SDK's function needs the event loop, which may be busy."""
        core = cast("Any", self._outbound)._worker._bridge_worker()
        core.record_activity_heartbeat(ActivityHeartbeat(task_token=task_token))


def _cause(error: Exception, failure: ApplicationError) -> BaseException | None:
    """The cause to report with the failure.

    - If `error` itself is the failure: the cause that it already has. A failure that causes itself cannot be encoded.
    - Otherwise, if the failure is a bug: `error` with its traceback.
    - Otherwise None, because the server keeps only 4 KiB of a failure.
    """
    if failure is error:
        return error.__cause__
    return error if is_bug(failure) else None


def _count(began: float, error: Exception | None) -> None:
    seconds = time.perf_counter() - began
    metrics.stepped(metrics.Step(metrics.subject(), activity.info().activity_type, seconds, error))
