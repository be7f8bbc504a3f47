"""`perdure demo greeting`: a package with an area of its own is installed beside Perdure, and served."""

from __future__ import annotations

import pytest
from product import perdure

from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def test_a_lifecycle_from_a_package_of_its_own_is_served(fresh: Deployment) -> None:
    settled = perdure(fresh, "demo", "greeting", "--exit", forked=False)
    assert settled.returncode == 0, settled.stdout + settled.stderr
    assert "Deleted the ConfigMap: it is written again" in settled.stdout
    assert " Over" in settled.stdout
