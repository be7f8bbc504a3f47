"""What the local deployment's API server wrote down of the requests that it served."""

from __future__ import annotations

import json
from typing import Any

from localcloud.deployment import Deployment


def audit_events(deployment: Deployment) -> list[dict[str, Any]]:
    """Every audit event so far, oldest first. The last line is left out while the API server still writes it."""
    *lines, _ = deployment.log("audit").read_text().split("\n")
    return [json.loads(line) for line in lines]
