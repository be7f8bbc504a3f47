"""Customers' accounts: outside the organization, with an administrator user and its key. No AWS API creates them."""

from __future__ import annotations

from typing import cast

from moto.iam.models import iam_backends
from moto.moto_api._internal import mock_random

from localcloud.aws import call
from localcloud.aws.contract import CustomerAccount
from localcloud.aws.identity import PARTITION, PerdureIAM

USER = "osdCcsAdmin"  # the name that the replaced operator asks customers to use
_POLICY = "arn:aws:iam::aws:policy/AdministratorAccess"


def open_account(account_id: str = "") -> CustomerAccount:
    """Create the account; an existing one keeps its key. Requires moto's lock."""
    account_id = account_id or "7" + "".join(mock_random.choice("0123456789") for _ in range(11))
    iam = cast(PerdureIAM, iam_backends[account_id][PARTITION])
    user = iam.users.get(USER)
    if user is None:
        user = iam.create_user(region_name="us-east-1", user_name=USER, path="/", tags=[])
        iam.attach_user_policy(_POLICY, USER)
    key = user.access_keys[0] if user.access_keys else iam.create_access_key(USER)
    call.touch(account_id, PARTITION)
    call.mark_changed()
    return CustomerAccount(
        account=account_id, user=USER, access_key_id=key.access_key_id, secret_access_key=key.secret_access_key
    )
