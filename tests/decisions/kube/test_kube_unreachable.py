"""What is said of an API server that cannot be reached: where it was looked for and why not, in plain words."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from kubeconfigs import kubeconfig_to

from domain.accounts import ACCOUNT
from engine.errors import Unavailable
from engine.kube import KubeApi
from engine.settings import Settings


@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid"])
async def test_an_unreachable_server_is_named_without_internals_of_the_client(host: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        file = kubeconfig_to(tmp_path, f"https://{host}:{port}")
        async with await KubeApi.open(Settings(), "tests", str(file)) as kube:
            with pytest.raises(Unavailable) as refused:
                await kube.get(ACCOUNT, "ns", "a")
    assert f"get Account ns/a: cannot connect to {host}:{port}: " in refused.value.message
    assert " object at 0x" not in refused.value.message
