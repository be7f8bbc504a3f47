"""Finds the control plane's programs: configured, on PATH, cached, downloaded, or compiled.

KUBEBUILDER_ASSETS and PATH are used only if together they have all three programs (envtest's assets lack a controller
manager). A manager from elsewhere could be newer than the API server, which Kubernetes' version skew policy forbids.
"""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import platformdirs

from localcloud.kubernetes import build, download
from localcloud.progress import Narrator
from localcloud.state import Binaries


def cache_directory() -> Path:
    return platformdirs.user_cache_path("perdure") / "kubernetes"


def find_programs(narrator: Narrator, cache: Path | None = None) -> Binaries:
    """Raises BuildError or ToolchainError."""
    cache = cache or cache_directory()
    return (
        _named_by_user(narrator)
        or _cached(cache)
        or _downloaded(cache, narrator)
        or _binaries(build.build(cache, narrator))
    )


def _cached(cache: Path) -> Binaries | None:
    compiled = build.cached(cache)
    if compiled is not None:
        return _binaries(compiled)
    target = download.Target.of_this_computer()
    official = download.cached(cache, target) if target is not None else None
    if official is None:
        return None
    manager = official if _has_manager(official) else build.cached(cache, (download.CONTROLLER_MANAGER,))
    return _binaries(official, manager) if manager is not None else None


def _downloaded(cache: Path, narrator: Narrator) -> Binaries | None:
    target = download.Target.of_this_computer()
    if target is None:
        narrator.say(f"There are no official Kubernetes programs for {platform.system()} on {platform.machine()}.")
        return None
    if download.is_switched_off():
        return None
    try:
        official = download.download(cache, target, narrator)
    except download.DownloadError as error:
        narrator.say(f"Kubernetes cannot be downloaded and is compiled instead: {error}")
        return None
    if _has_manager(official):
        return _binaries(official)
    narrator.say("The official controller manager cannot be downloaded. Only this program is compiled.")
    return _binaries(official, build.build(cache, narrator, (download.CONTROLLER_MANAGER,)))


def _has_manager(official: Path) -> bool:
    return (official / download.CONTROLLER_MANAGER).is_file()


def _binaries(home: Path, manager: Path | None = None) -> Binaries:
    return Binaries(
        etcd=home / "etcd",
        kube_apiserver=home / "kube-apiserver",
        kube_controller_manager=(manager or home) / "kube-controller-manager",
    )


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
