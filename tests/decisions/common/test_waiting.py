"""What a wait of the tests says that ends in vain."""

from __future__ import annotations

import pytest
from waiting import eventually, until


async def test_a_wait_in_vain_names_its_condition_and_how_far_it_came() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"not within 0 s: test_waiting\.py:\d+: until\(lambda: 1 > 2, "):
        until(lambda: 1 > 2, seconds=0)
    with pytest.raises(pytest.fail.Exception, match=r"test_waiting\.py:\d+: await eventually\(lambda: \[\], "):
        await eventually(lambda: [], seconds=0.01)
    with pytest.raises(pytest.fail.Exception, match=r"not within 0\.01 s: two came, not \[1\]"):
        await eventually(lambda: False, lambda: f"two came, not {[1]}", seconds=0.01)
