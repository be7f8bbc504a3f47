"""Every known weakness of the replaced system is held by a test that names it in its docstring: W1 to W31."""

from __future__ import annotations

from weaknesses import named

KNOWN = range(1, 32)
OURS = r"^test_(lb_|os_|yawollet_|services)"


def test_every_weakness_has_a_test() -> None:
    assert set(named(r"\bW(\d+)\b", __file__, OURS)) == set(KNOWN)
