"""The real promtool for tests: the one on PATH, else that of Debian's package of Prometheus, unpacked into the cache.

It is in no package index. Where neither is to be had (no Debian, no network) there is none, and tests that need it are
skipped with that reason.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import platformdirs

PACKAGE = "prometheus"


class PromtoolError(Exception):
    """There is no promtool, and none can be had."""


def find_promtool() -> Path:
    """The program."""
    system = shutil.which("promtool")
    if system is not None:
        return Path(system)
    home = platformdirs.user_cache_path("perdure") / "promtool" / "promtool"
    if not home.exists():
        _unpack(home)
    return home


def _unpack(home: Path) -> None:
    """Download and unpack in a directory of its own, and rename into place when it is whole."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise PromtoolError("promtool is not on PATH, and this is no Debian")
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".unpacking-") as temporary:
        work = Path(temporary)
        _download(work)
        for package in work.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), str(work / "root")], work)
        (work / "root/usr/bin/promtool").rename(home)


def _download(work: Path) -> None:
    """With the system's package lists, or where it has none, with lists of our own."""
    try:
        _run(["apt-get", "download", PACKAGE], work)
    except PromtoolError:
        for name in ("lists/partial", "archives/partial"):
            (work / name).mkdir(parents=True)
        options = [f"-oDir::State::lists={work}/lists", f"-oDir::Cache={work}", "-oDir::Cache::archives=archives"]
        _run(["apt-get", *options, "update"], work)
        _run(["apt-get", *options, "download", PACKAGE], work)


def _run(command: list[str], work: Path) -> None:
    try:
        subprocess.run(command, cwd=work, check=True, capture_output=True, text=True, timeout=180)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise PromtoolError(f"{' '.join(command[:2])}: {error.stderr or error}") from error
