"""Installs Python packages, which add areas to Perdure, into a deployment's state directory.

The deployment's processes, and shells that sourced its `env`, find the packages on PYTHONPATH.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


class NotInstalledError(Exception):
    pass


def install(source: Path, target: Path) -> None:
    """Install a package offline, replacing an earlier version. Raises NotInstalledError with pip's output."""
    if not (source / "pyproject.toml").is_file():
        raise NotInstalledError(f"{source} is not a package: run this demo from a checkout of Perdure")
    with tempfile.TemporaryDirectory() as scratch:
        # A build writes into the source directory, so a copy is built.
        copy = shutil.copytree(source.resolve(), Path(scratch) / source.name)
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "install", *options, "--upgrade", "--target", str(target), str(copy)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise NotInstalledError(f"{source.name} cannot be installed into {target}: {ended.stderr.strip()[-2000:]}")
