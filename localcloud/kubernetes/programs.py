"""Where the control plane's programs come from: named by the user, on PATH, built before, or built now.

A place counts only if it has all three programs: envtest's assets for one come without a controller manager, and
a controller manager newer than its API server is not supported (Kubernetes' version skew policy).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import platformdirs

from localcloud.kubernetes import build
from localcloud.progress import Narrator
from localcloud.state import Binaries


def cache_directory() -> Path:
    """Where builds are kept (XDG_CACHE_HOME on Linux)."""
    return platformdirs.user_cache_path("perdure") / "kubernetes"


def find_programs(narrator: Narrator, cache: Path | None = None) -> Binaries:
    """The programs, compiled if need be; raises BuildError or ToolchainError."""
    cache = cache or cache_directory()
    return _named_by_user(narrator) or build.cached(cache) or build.build(cache, narrator)


def _named_by_user(narrator: Narrator) -> Binaries | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    path = os.pathsep.join(filter(None, (assets, os.environ.get("PATH"))))
    found = {name: shutil.which(name, path=path) for name in build.PACKAGES}
    missing = [name for name, place in found.items() if place is None]
    if missing:
        if assets:
            narrator.say(f"KUBEBUILDER_ASSETS is not used: neither it nor PATH has {', '.join(missing)}.")
        return None
    return Binaries.model_validate({name.replace("-", "_"): place for name, place in found.items()})
