"""A cluster that does not answer."""

from __future__ import annotations

from pathlib import Path


def kubeconfig_to_nowhere(directory: Path) -> Path:
    """A kubeconfig of it."""
    file = directory / "kubeconfig"
    file.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
    )
    return file
