"""The AWS call that this thread handles, and the state that it has touched; None outside a request."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

Chunk = tuple[str, str]
"""The unit that is saved: an account and a region; `aws` is the region of the global services."""


@dataclass
class CallInHand:
    """One AWS request; `service` is the name in the credential scope."""

    service: str
    action: str
    region: str
    access_key_id: str = ""  # the signing key, "" if unsigned; `account` is the account of this key
    account: str = ""
    mutating: bool = False
    failure_reason: str | None = None  # the FailureReason that an `async-failure` fault sets for this CreateAccount
    touched: set[Chunk] = field(default_factory=set)  # chunks whose backends were looked up; saved if state may change
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
    """Record that a read operation changed state (time passed, a session was opened)."""
    call = _in_hand.get()
    if call is not None:
        call.changed = True
