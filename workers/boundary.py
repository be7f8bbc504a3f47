"""The edge of every activity: the engine's clock begins, and errors become the engine's.

This is the one place where exceptions leave Python: `engine.errors` says which are retried by the server, which reach
the decision. A cancelled activity stays cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from temporalio import activity
from temporalio.exceptions import CancelledError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.refusal import ErrorType
from engine import clock
from engine.errors import to_application_error

log = logging.getLogger(__name__)


class Boundary(Interceptor):
    """The worker's interceptor."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap every activity."""
        return _Edge(next)


class _Edge(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        clock.begin()
        try:
            return await super().execute_activity(input)
        except (asyncio.CancelledError, CancelledError):
            raise
        except Exception as error:
            failure = to_application_error(error)
            if failure.type == ErrorType.BUG.value:
                log.exception("%s failed with a bug of ours", activity.info().activity_type)
            raise failure from error
