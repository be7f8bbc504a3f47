"""Payer and protected accounts are left alone.

`Sessions.refuse_protected` checks each call again, and also knows the payer's own account.
"""

from __future__ import annotations

from domain.accounts.constants import PROTECTED
from domain.accounts.observed import AccountWorld, AreaWorld
from domain.decision import Decision


def is_protected(world: AreaWorld, account_id: str) -> bool:
    return bool(account_id) and account_id in {*world.config.payer_account_ids, *world.protected}


def left_alone(
    world: AreaWorld, account_id: str, waits_for: str = "its removal from the protected accounts"
) -> Decision | None:
    if not is_protected(world, account_id):
        return None
    why = (
        f"AWS account {account_id} is a payer or protected account: nothing is done in it. To use it, remove it "
        "from payer-account-ids in the ConfigMap and from PERDURE_ACCOUNTS_PROTECTED"
    )
    return world.waiting(why, waits_for)


def only_shown(world: AccountWorld) -> bool:
    """Whether the Account becomes Ready without a call to AWS: its AWS account is development mode's dummy, and is
    protected or, as a refused call has shown, the payer's own account.
    """
    refused = any(refusal.code == PROTECTED for refusal in world.refusals.values())
    return world.stands_in(world.account) and (is_protected(world, world.account.spec.aws_account_id) or refused)
