"""Kubeconfigs of a cluster at an address, without credentials."""

from __future__ import annotations

from pathlib import Path


def kubeconfig_to(directory: Path, server: str) -> Path:
    file = directory / "kubeconfig"
    file.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        f"clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
    )
    return file


def kubeconfig_to_nowhere(directory: Path) -> Path:
    """Of a cluster that does not answer."""
    return kubeconfig_to(directory, "http://127.0.0.1:1")
