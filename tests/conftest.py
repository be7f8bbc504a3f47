"""What holds for every test: local deployments do not wait for the disk.

Tests kill processes, never the machine, and what a process has written outlives it either way. Without waiting, a run
takes as long on a slow or busy disk as on a quick one.
"""

from __future__ import annotations

import os

os.environ["PERDURE_LOCAL_FSYNC"] = "off"
