"""Every workflow is terminated: custom resources and clouds hold all that is needed to go on."""

from __future__ import annotations

import pytest
from chaos_effects import RETURNING, TAKING, AwsCall, Effect
from chaos_lab import Lab, Record
from chaos_proxy import Break

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

_WHAT = "every workflow terminated, all woken"
_MID_FLIGHT = [
    effect
    for row in (*TAKING, *RETURNING)
    for effect in row
    if isinstance(effect.call, AwsCall)
    and (effect.activity, effect.call.action)
    in {
        ("aws.create_account", "CreateAccount"),
        ("aws.await_account", "DescribeCreateAccountStatus"),
        ("aws.ensure_admin_user", "CreateAccessKey"),
        ("aws.initialize_region", "RunInstances"),
        ("aws.open_support_case", "CreateCase"),
        ("accounts.fulfil", "MoveAccount"),
        ("aws.rotate_keys", "CreateAccessKey"),
        ("aws.clean_global", "DeleteBucket"),
        ("aws.delete_identities", "DeleteUser"),
    }
]


def _rebuild(lab: Lab) -> None:
    assert lab.terminate_all() > 0
    lab.wake_all()


@pytest.mark.parametrize("turn", ["take", pytest.param("give back", marks=pytest.mark.chaos)])
def test_a_settled_installation_is_rebuilt_without_changing_anything(lab: Lab, record: Record, turn: str) -> None:
    """At rest before a take: free accounts; before a give-back: a claimed one too."""
    record([("all", f"at rest, before a {turn}")], _WHAT)
    lab.ready_to(turn)
    before = lab.emulator.ledger().mutating()
    _rebuild(lab)
    lab.settle()
    assert lab.emulator.ledger().mutating() == before


@pytest.mark.chaos
@pytest.mark.parametrize("effect", _MID_FLIGHT, ids=lambda effect: effect.name)
def test_nothing_is_done_twice_when_rebuilt_in_mid_flight(lab: Lab, record: Record, effect: Effect) -> None:
    record([effect], _WHAT)
    taking = any(effect in row for row in TAKING)
    if taking:
        lab.ready_to("take")
    else:
        lab.ready_to_give_back_twice()
    armed = lab.arm(effect, Break.DELAYED)
    (lab.take if taking else lab.give_back)()
    lab.await_struck([armed])
    _rebuild(lab)
    lab.settle()
