"""CloseAccount: once, whatever answer is lost; AWS's limits are reported as such; a closed account is released."""

from __future__ import annotations

import pytest
from aws_lab import Lab

from domain.accounts.actions.account_closing import CloseAccount, Closing
from domain.accounts.actions.iam_identities import DeleteIdentities
from domain.accounts.constants import OPERATOR_NAMESPACE
from engine.errors import Absent, Denied, Unavailable

pytestmark = pytest.mark.integration

DAY = 86400


def close(lab: Lab, account_id: str) -> Closing:
    return lab.run(lab.activities.close_account, CloseAccount(account_id=account_id))


def status(lab: Lab, account_id: str) -> str:
    return lab.emulator.world().account(account_id).status


def test_a_closing_whose_answer_is_lost_is_done_when_asked_again(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(close_account_seconds=DAY)
    lab.emulator.fault("organizations", "CloseAccount", kind="after", count=1)
    with pytest.raises(Unavailable):
        close(lab, account_id)
    assert close(lab, account_id) == Closing()
    assert status(lab, account_id) == "PENDING_CLOSURE"
    lab.emulator.clock(advance_seconds=DAY + 1)
    assert close(lab, account_id) == Closing()
    assert status(lab, account_id) == "SUSPENDED"


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("close_account_quota", "CLOSE_ACCOUNT_QUOTA_EXCEEDED"),
        ("close_account_requests", "CLOSE_ACCOUNT_REQUESTS_LIMIT_EXCEEDED"),
    ],
)
def test_aws_limits_are_reported_and_close_nothing(lab: Lab, setting: str, reason: str) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(**{setting: 0})
    assert reason in close(lab, account_id).limited
    assert status(lab, account_id) == "ACTIVE"


def test_an_account_that_aws_will_not_close_is_refused(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.fault("organizations", "CloseAccount", kind="denied", count=1)
    with pytest.raises(Denied):
        close(lab, account_id)
    with pytest.raises(Absent):
        close(lab, "999999999999")


def test_the_payer_is_never_closed(lab: Lab) -> None:
    with pytest.raises(Denied):
        close(lab, lab.sessions.payer().identity().account_id)
    assert lab.calls("organizations", "CloseAccount") == 0


def test_identities_of_a_closed_account_are_gone_with_it(lab: Lab) -> None:
    account_id, name = lab.account()
    close(lab, account_id)
    lab.run(
        lab.activities.delete_identities,
        DeleteIdentities(account_id=account_id, name=name, namespace=OPERATOR_NAMESPACE),
    )


def test_an_account_that_refuses_its_role_and_is_not_closed_is_refused(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("sts", "AssumeRole", kind="denied", count=1)
    gone = DeleteIdentities(account_id=account_id, name=name, namespace=OPERATOR_NAMESPACE)
    with pytest.raises(Denied):
        lab.run(lab.activities.delete_identities, gone)
