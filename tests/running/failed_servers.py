"""The servers of a test that failed: their logs and data stay, and the failure names where."""

from __future__ import annotations

from pathlib import Path

import pytest

from localcloud.deployment import Deployment

_failed: set[Path] = set()


def keep_servers(item: pytest.Item, report: pytest.TestReport) -> None:
    """After a failure: name the state directory of each deployment that the test used, and keep it."""
    used = {each.state.root for each in getattr(item, "funcargs", {}).values() if isinstance(each, Deployment)}
    for root in sorted(used):
        _failed.add(root)
        report.sections.append(("servers", f"logs and state are preserved in {root}"))


def end(deployment: Deployment) -> None:
    """Stop a deployment, and remove what it leaves unless a test on it failed."""
    deployment.down(wipe=deployment.state.root not in _failed)
