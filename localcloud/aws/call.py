"""The AWS call that this thread handles, and the state that it has touched. Outside a request there is none."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

Chunk = tuple[str, str]
"""What is saved together: an account and a region, `aws` being the region of the global services."""


@dataclass
class CallInHand:
    """One AWS request, by the service's name in the credential scope."""

    service: str
    action: str
    region: str
    access_key_id: str = ""  # the signing key, "" if unsigned; `account` is the key's
    account: str = ""
    mutating: bool = False
    failure_reason: str | None = None  # what an `async-failure` fault wants this CreateAccount to end with
    touched: set[Chunk] = field(default_factory=set)  # chunks whose backends were looked up; saved if `changed` is set
    changed: bool = False  # whether state changed, whatever the operation


_in_hand: ContextVar[CallInHand | None] = ContextVar("call in hand", default=None)


def current() -> CallInHand | None:
    return _in_hand.get()


def set_current(call: CallInHand | None) -> None:
    _in_hand.set(call)


def touch(account: str, region: str) -> None:
    call = _in_hand.get()
    if call is not None:
        call.touched.add((account, region))


def mark_changed() -> None:
    """Record a change by a reading operation (time passed, a session was opened)."""
    call = _in_hand.get()
    if call is not None:
        call.changed = True
