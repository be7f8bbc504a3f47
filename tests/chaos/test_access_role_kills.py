"""The worker is killed when it compares the ConfigMap's key with the payer's role, and when it writes the key."""

from __future__ import annotations

import pytest
from chaos_access_role import RECORDING, AccessRole
from chaos_kills import Death, Reused, cases
from chaos_lab import Lab

from domain.accounts.constants import CCS_ACCESS_KEY

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400), pytest.mark.chaos]


@pytest.fixture
def access_role(lab: Lab, reused: Reused) -> AccessRole:
    """The turn."""
    return reused.get(lab, AccessRole)


@pytest.mark.parametrize(("row", "mode"), cases("record", RECORDING))
def test_the_payers_role_is_recorded_once_and_nothing_else_although_the_worker_dies(
    access_role: AccessRole, death: Death
) -> None:
    death.amidst(access_role.change, meanwhile=access_role.change_another)
    assert access_role.written() == [{CCS_ACCESS_KEY: access_role.arn}]
