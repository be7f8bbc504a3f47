"""Evaluates templates within hard limits of time and memory.

The functions are pure, and run in processes that can only compute (evaluator_sandbox.py). A sandbox and soft limits
(domain/claims/templates) turn most hostile or mistaken templates into a clear error. A call that nevertheless exceeds
its time or memory is killed with its process. A process that dies by itself is replaced, and its call is repeated once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Self, TypeVar

from activities.claims.evaluator_fork_server import Gone, Nursery, Process
from activities.claims.evaluator_queueing import LaneFull, Lanes
from activities.claims.evaluator_sandbox import FAILED, LAST_RESULT, OUT_OF_MEMORY, TEMPLATE_ERROR
from domain.claims.templates.errors import TemplateError
from domain.model import Model

log = logging.getLogger(__name__)

PROCESSES = 3
TIME = timedelta(seconds=1.5)
MEMORY_MIB = 256
PENALTY = timedelta(minutes=10)
MOST_REMEMBERED = 10_000

_CROWDED = "not evaluated, because too many evaluations of slow templates are waiting; tried again later"

Q = TypeVar("Q", bound=Model)
M = TypeVar("M", bound=Model)


class EvaluationLimit(TemplateError):  # noqa: N818 - its text says the limit
    """A call exceeded a limit and was killed, or too many slow calls wait. `what` names the template or function."""

    def __init__(self, what: str, limit: str) -> None:
        super().__init__(what, limit)
        self.limit = limit


class EvaluationBug(Exception):  # noqa: N818 - it is a bug
    """An error in an evaluation that is not a TemplateError, and thus a bug. Its text is the traceback."""


class Evaluator:
    """The evaluating processes, and the queues of calls. An evaluator belongs to one event loop."""

    def __init__(
        self,
        functions: Sequence[Callable[..., Model]],
        *,
        processes: int = PROCESSES,
        time: timedelta = TIME,
        memory_mib: int = MEMORY_MIB,
        penalty: timedelta = PENALTY,
    ) -> None:
        """Prepare an evaluator; `__aenter__` starts its processes.

        Args:
            functions: Module-level and pure. A function can import nothing when it is called.
            processes: At least two, so that a slow call does not block all others.
            time: Limit of a call's wall-clock time.
            memory_mib: Limit of a call's memory, above what the process needs itself.
            penalty: How long a call's object and author count as slow after a call exceeded a limit.
        """
        if processes < 2:
            raise ValueError("at least two processes are needed: with one, a slow template would hold up all others")
        self._numbers = {_name(each): number for number, each in enumerate(functions)}
        self._seconds = time.total_seconds()
        self._too_long = f"took longer than {self._seconds:g} s"
        self._memory_mib = memory_mib
        self._width = processes
        self._lanes = Lanes(processes, penalty.total_seconds())
        self._nursery = Nursery(list(self._numbers), self._seconds, memory_mib * 1024 * 1024)
        self._met: dict[str, tuple[str, str]] = {}  # by function and object, the last exceeded limit
        self._idle: list[Process] = []
        self._endings: set[asyncio.Future[int | None]] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        self._idle = [await self._nursery.spawn() for _ in range(self._width)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        await self._nursery.close()
        for each in self._idle:
            each.close()
        self._idle.clear()
        await asyncio.gather(*self._endings, return_exceptions=True)

    async def call(
        self,
        function: Callable[[Q], M],
        request: Q,
        result: type[M],
        *,
        key: str = "",
        author: str = "",
        patient: bool = False,
    ) -> M:
        """Call one of the evaluator's functions.

        Calls with the same `key` (the object, `namespace/name`) run one after another. `author` is a claim's namespace.
        If too many slow calls wait, a `patient` call waits too.

        Raises:
            TemplateError: The function raised one.
            EvaluationLimit: A limit is exceeded, the process crashed twice, or too many slow calls wait.
            EvaluationBug: The function raised anything else.
        """
        name = _name(function)
        if name not in self._numbers:
            raise ValueError(f"{name} is not one of this evaluator's functions")
        text = request.model_dump_json().encode()
        met = f"{name} {key}"
        try:
            async with self._lanes.turn(key, author, patient=patient):
                try:
                    reply = await self._evaluate(self._numbers[name], text, name)
                except EvaluationLimit as error:
                    self._lanes.slow_down(key, author)
                    self._meet(met, error)
                    log.warning("Ended an evaluation for %s: %s", key or name, error)
                    raise
        except LaneFull:
            # Report the limit that the object last exceeded, so that a status that shows it stays unchanged.
            raise EvaluationLimit(*self._met.get(met, (f"templates of {author or key}", _CROWDED))) from None
        self._met.pop(met, None)
        return result.model_validate_json(reply)

    def _meet(self, met: str, error: EvaluationLimit) -> None:
        if len(self._met) >= MOST_REMEMBERED:
            self._met.clear()
        self._met[met] = (error.what, error.limit)

    async def _evaluate(self, number: int, request: bytes, name: str) -> bytes:
        try:
            return await self._attempt(number, request, name)
        except Gone as gone:
            log.warning("An evaluator process has died; its call is repeated once: %s", gone)
        try:
            return await self._attempt(number, request, name, fresh=True)  # idle processes may have died as well
        except Gone as gone:
            raise EvaluationLimit(*gone.args) from None

    async def _attempt(self, number: int, request: bytes, name: str, *, fresh: bool = False) -> bytes:
        if self._closed:
            raise RuntimeError("the evaluator is closed")
        process = self._idle.pop() if self._idle and not fresh else await self._nursery.spawn()
        try:
            outcome, reply = await process.exchange(number, request, self._seconds)
        except Gone:
            what = process.place() or name
            status = await self._nursery.reap(process)
            if status == -signal.SIGALRM:
                raise EvaluationLimit(what, self._too_long) from None
            raise Gone(what, f"crashed its process ({_ending(status)})") from None
        except TimeoutError:
            what = process.place() or name
            self._end(process)
            raise EvaluationLimit(what, self._too_long) from None
        except BaseException:  # cancelled: the process's answer must not reach another call
            self._end(process)
            raise
        what = process.place() or name
        if outcome in (OUT_OF_MEMORY, LAST_RESULT) or self._closed or len(self._idle) >= self._width:
            self._end(process)
        else:
            self._idle.append(process)
        if outcome == OUT_OF_MEMORY:
            raise EvaluationLimit(what, f"needed more than {self._memory_mib} MiB of memory")
        if outcome == FAILED:
            raise EvaluationBug(f"{name}: {reply.decode(errors='replace')}")
        if outcome == TEMPLATE_ERROR:
            raise TemplateError(*json.loads(reply))
        return reply

    def _end(self, process: Process) -> None:
        ending = asyncio.ensure_future(self._nursery.reap(process))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)


def _name(function: Callable[..., Model]) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _ending(status: int | None) -> str:
    if status is None:
        return "cause unknown"
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
