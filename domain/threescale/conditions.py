"""The conditions that clients of the replaced operator read.

    state     types that are True
    fine      Synced or Ready
    waiting   Orphan and Failed; on a DeveloperUser only Orphan, on a DeveloperAccount only Waiting
    invalid   Invalid and Failed; on accounts, users, OpenAPIs and policies only Invalid
    failed    Failed
    syncing   InSync; only an OpenAPI has this state, while it waits for its Product or Backend

On any kind, a sync of more than ten seconds adds `InSync` to the conditions of the previous state, so that referrers
are not blocked.
`Failed` and `Invalid` are written even when False, because clients treat an absent condition as True. A DeveloperUser
that waits for its account is not Failed, because clients create the admin first; a DeveloperUser whose password is
missing is Failed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial

from domain.identity import Kind
from domain.model import Model
from domain.resource import timestamp
from domain.threescale import (
    ACTIVE_DOC,
    APPLICATION,
    APPLICATION_AUTH,
    BACKEND,
    CUSTOM_POLICY_DEFINITION,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    OPEN_API,
    PRODUCT,
    PROXY_CONFIG_PROMOTE,
    TENANT,
)
from domain.threescale.resources.shared import Conditions, StatusCondition

READY = "Ready"
SYNCED = "Synced"
ORPHAN = "Orphan"
WAITING = "Waiting"
INVALID = "Invalid"
FAILED = "Failed"
IN_SYNC = "InSync"

# The condition types that are always present, by kind.
TYPES = {
    PRODUCT.name: (SYNCED, ORPHAN, INVALID, FAILED),
    BACKEND.name: (SYNCED, INVALID, FAILED),
    ACTIVE_DOC.name: (READY, ORPHAN, INVALID, FAILED),
    OPEN_API.name: (READY, INVALID, FAILED),
    DEVELOPER_ACCOUNT.name: (READY, WAITING, INVALID, FAILED),
    DEVELOPER_USER.name: (READY, ORPHAN, INVALID, FAILED),
    APPLICATION.name: (READY,),
    APPLICATION_AUTH.name: (READY, FAILED),
    CUSTOM_POLICY_DEFINITION.name: (READY, INVALID, FAILED),
    PROXY_CONFIG_PROMOTE.name: (READY, FAILED),
    TENANT.name: (READY,),
}
_WAIT_WITHOUT_FAILING = {DEVELOPER_ACCOUNT.name, DEVELOPER_USER.name}
# On these kinds the replaced operator sets Failed only if no other type applies.
_INVALID_WITHOUT_FAILING = {*_WAIT_WITHOUT_FAILING, OPEN_API.name, CUSTOM_POLICY_DEFINITION.name}
# Shorter syncs are not reported: clients replace objects that they have just read, and would get a conflict.
LASTING = timedelta(seconds=10)


class SyncState(StrEnum):
    FINE = "fine"
    WAITING = "waiting"
    INVALID = "invalid"
    FAILED = "failed"
    SYNCING = "syncing"


class Situation(Model):
    state: SyncState
    message: str = ""


def conditions(kind: Kind, situation: Situation, before: Conditions, now: datetime) -> Conditions:
    """Conditions whose status is unchanged keep their transition time."""
    true_ones = _true_types(kind, situation.state)
    shown = sorted({*TYPES[kind.name], *true_ones}, key=partial(_place, kind))
    known = {condition.type: condition for condition in before}
    return tuple(
        _condition(type_, type_ in true_ones, _message(type_, kind, situation, true_ones), known.get(type_), now)
        for type_ in shown
    )


def lasts(time: timedelta) -> bool:
    return time > LASTING


def in_sync(kind: Kind, why: str, before: Conditions, now: datetime) -> Conditions:
    known = {condition.type: condition for condition in before}
    rest = {type_: _condition(type_, False, None, None, now) for type_ in TYPES[kind.name]} | known
    rest[IN_SYNC] = _condition(IN_SYNC, True, why or None, known.get(IN_SYNC), now)
    return tuple(rest[type_] for type_ in sorted(rest, key=partial(_place, kind)))


def _place(kind: Kind, type_: str) -> tuple[bool, str]:
    # In an Application Ready comes first, because clients read the first condition.
    return kind == APPLICATION and type_ != READY, type_


def _true_types(kind: Kind, state: SyncState) -> set[str]:
    ready = SYNCED if SYNCED in TYPES[kind.name] else READY
    waits = {WAITING if kind == DEVELOPER_ACCOUNT else ORPHAN}
    return {
        SyncState.FINE: {ready},
        SyncState.WAITING: waits if kind.name in _WAIT_WITHOUT_FAILING else waits | {FAILED},
        SyncState.INVALID: {INVALID} if kind.name in _INVALID_WITHOUT_FAILING else {INVALID, FAILED},
        SyncState.FAILED: {FAILED},
        SyncState.SYNCING: {IN_SYNC},
    }[state]


def _message(type_: str, kind: Kind, situation: Situation, true_ones: set[str]) -> str | None:
    is_shown = type_ in true_ones or (kind == APPLICATION and type_ == READY) or (kind == TENANT and type_ == READY)
    return situation.message if is_shown and situation.message else None


def _condition(
    type_: str, true: bool, message: str | None, before: StatusCondition | None, now: datetime
) -> StatusCondition:
    status = "True" if true else "False"
    same = before is not None and before.status == status
    moment = before.last_transition_time if same and before is not None else timestamp(now)
    return StatusCondition(type=type_, status=status, message=message, last_transition_time=moment)
