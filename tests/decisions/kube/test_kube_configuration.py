"""Kubeconfigs that cannot be used: each is named, as an error of the configuration, not as a bug."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from kubernetes.aio.config import ConfigException
from memory_kube import MemoryKube

from domain.built_in_kinds import SECRET
from engine.errors import Invalid
from engine.kube.connection import Connection
from engine.kube.workload_clusters import workload

TEXT = (
    "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: %s}]\n"
    "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: %s}]\n"
)


@pytest.mark.parametrize(
    "content",
    [
        "",
        ": : [ }",
        "- a",
        "hello",
        "\udcff\udcfe",
        TEXT % ("{server: 'https://127.0.0.1:1', certificate-authority-data: AAAA}", "{}"),
        TEXT % ("{server: 'https://127.0.0.1:1', certificate-authority: /nowhere}", "{}"),
        TEXT % ("{server: 'https://127.0.0.1:1'}", "{tokenFile: /nowhere}"),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_is_named_in_one_line(tmp_path: Path, content: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(content, errors="surrogateescape")
    with pytest.raises(ConfigException) as refused:
        await Connection(str(file)).load()
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    "content", ["{}", TEXT % ("{server: 'https://127.0.0.1:1', certificate-authority-data: AA}", "{}")]
)
async def test_a_workload_clusters_unusable_kubeconfig_is_invalid(content: str) -> None:
    kube = MemoryKube()
    data = {"value": base64.b64encode(content.encode()).decode()}
    await kube.create(SECRET, {"metadata": {"name": "blue-kubeconfig"}, "data": data}, "ns")
    with pytest.raises(Invalid, match="Secret ns/blue-kubeconfig"):
        async with workload(kube, "ns", "blue"):
            """Not reached."""
