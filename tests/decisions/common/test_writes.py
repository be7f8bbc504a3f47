"""What folding a write makes of the world: never older than what was read."""

from __future__ import annotations

import pytest
from account_objects import account

from domain.writes import patched


@pytest.mark.parametrize(("written", "state"), [("8", "Ready"), ("7", "Nonsense"), ("6", "Nonsense"), ("", "Ready")])
def test_a_write_is_not_folded_over_what_was_read_after_it(written: str, state: str) -> None:
    seen = account(meta={"resourceVersion": "7"}, status={"state": "Nonsense"})
    assert patched(seen, {"status": {"state": "Ready"}}, written).status.state == state
