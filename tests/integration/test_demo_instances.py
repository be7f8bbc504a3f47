"""`perdure demo instances` as a person runs it: machines labelled, interrupted and drained as AWS's events say."""

from __future__ import annotations

import pytest
from product import perdure

from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_demo_settles_and_can_be_repeated(fresh: Deployment) -> None:
    for text in ("", "Machines are left from an earlier run: deleted first"):
        done = perdure(fresh, "demo", "instances", "--exit", seconds=280)
        assert done.returncode == 0, done.stdout + done.stderr
        for line in (
            text,
            "three rules",
            "all machines are labelled",
            "web-0's instance is stopped: labelled",
            "labelled scheduled-retirement",
            "AWS has cancelled the retirement: the label is gone",
            "Machine spot-0 is deleted",
            "Perdure has completed the hook",
        ):
            assert line in done.stdout, done.stdout
