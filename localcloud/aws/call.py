"""The call in hand: who calls what, and which parts of the state it has touched so far.

moto's handlers know neither our gate's findings nor our book-keeping; they find them here, per thread. Outside a
request (start, control API) there is no call.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

Chunk = tuple[str, str]
"""What is saved together: an account and a region, `aws` being the region of the global services."""


@dataclass
class CallInHand:
    """One AWS request on its way through the emulator.

    Attributes:
        service: name in the credential scope, `ec2`.
        action: name of the operation, `RunInstances`.
        region: region in the credential scope.
        access_key_id: key that signed it, "" where none did.
        account: the account that key belongs to, "" where none did.
        mutating: whether the operation is made to change something.
        failure_reason: what an `async-failure` fault wants this CreateAccount to end with.
        touched: chunks whose backends were looked up; they are saved when `changed` is set.
        changed: whether state changed, whatever kind of operation it was.
    """

    service: str
    action: str
    region: str
    access_key_id: str = ""
    account: str = ""
    mutating: bool = False
    failure_reason: str | None = None
    touched: set[Chunk] = field(default_factory=set)
    changed: bool = False


_in_hand: ContextVar[CallInHand | None] = ContextVar("call in hand", default=None)


def current() -> CallInHand | None:
    """The call this thread works on, if any."""
    return _in_hand.get()


def set_current(call: CallInHand | None) -> None:
    """Say which call this thread works on."""
    _in_hand.set(call)


def touch(account: str, region: str) -> None:
    """Note that the call in hand looked at that part of the state."""
    call = _in_hand.get()
    if call is not None:
        call.touched.add((account, region))


def mark_changed() -> None:
    """Note that state changed although the operation does not look like it (time passed, a session was opened)."""
    call = _in_hand.get()
    if call is not None:
        call.changed = True
