"""Every known weakness of the 3scale operator is held by a test whose docstring names it: 3scale weakness 1 to 22."""

from __future__ import annotations

from weaknesses import named

KNOWN = range(1, 23)


def test_every_weakness_of_the_3scale_operator_has_a_test() -> None:
    assert set(named(r"3scale weakness (\d+)", __file__)) == set(KNOWN)
