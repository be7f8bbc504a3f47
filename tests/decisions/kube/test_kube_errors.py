"""Errors of the API server: how long it asks to wait."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from engine.errors import LONGEST_ASKED
from engine.kube.errors import api_error


@pytest.mark.parametrize(
    ("seconds", "header", "delay"),
    [
        (3, "7", timedelta(seconds=3)),
        (0, "7", timedelta(seconds=7)),
        (-1, "7", timedelta(seconds=7)),
        (None, "", None),
        (86400, "", LONGEST_ASKED),
        (10**30, "", None),
        (True, "", None),
    ],
)
def test_the_delay_that_the_api_server_asks_for_is_limited(
    seconds: object, header: str, delay: timedelta | None
) -> None:
    body = json.dumps({"reason": "TooManyRequests", "details": {"retryAfterSeconds": seconds}})
    assert api_error("get ConfigMap", 429, body, header).delay == delay
