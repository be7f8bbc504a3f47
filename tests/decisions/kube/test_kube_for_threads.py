"""The Kubernetes client for threads, called where it must not be."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from engine.kube import CONFIG_MAP, KubeApi
from engine.kube.blocking import BlockingKube


async def test_a_call_on_the_event_loop_raises_an_error_instead_of_a_deadlock() -> None:
    blocking = BlockingKube(cast(KubeApi, None), asyncio.get_running_loop())
    with pytest.raises(RuntimeError, match=r"BlockingKube\.get was called on the event loop"):
        blocking.get(CONFIG_MAP, "default", "a")
