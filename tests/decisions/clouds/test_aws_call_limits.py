"""An AWS account that hangs, with real clients whose calls are never sent."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

from botocore.credentials import ReadOnlyCredentials

from activities.aws.call_limits import Guard
from activities.aws.clients import Caller, Clients
from engine.errors import Throttled, Unavailable

ACCOUNT = "123456789012"


class Hanging(Caller):
    """A caller that waits for its credentials until it is let go, and gets none."""

    def __init__(self, most: int) -> None:
        super().__init__(Clients(), ACCOUNT, observing=False)
        self.guard = Guard(ACCOUNT, most)
        self.waiting = threading.Semaphore(0)
        self.free = threading.Event()

    def guarded(self) -> AbstractContextManager[None]:
        return self.guard.calling()

    def credential(self) -> ReadOnlyCredentials:
        self.waiting.release()
        assert self.free.wait(20)
        raise Unavailable("no answer")


def test_an_account_that_hangs_holds_no_more_threads_than_its_limit() -> None:
    caller = Hanging(most=2)
    iam = caller.client("iam", "us-east-1")
    with ThreadPoolExecutor(6) as threads:
        hanging = [threads.submit(iam.list_users) for _ in range(2)]  # type: ignore[attr-defined]
        assert all(caller.waiting.acquire(timeout=10) for _ in hanging)
        others = [threads.submit(iam.list_users) for _ in range(4)]  # type: ignore[attr-defined]
        assert {type(other.exception(10)) for other in others} == {Throttled}
        caller.free.set()
        assert {type(each.exception(10)) for each in hanging} == {Unavailable}
