"""Installing a package with an area of its own beside Perdure, into the state directory of a local deployment.

Every process of the deployment, and every shell that has sourced its `env`, finds the package on PYTHONPATH.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


class NotInstalledError(Exception):
    """A package cannot be installed."""


def install(source: Path, target: Path) -> None:
    """Install the package, in place of an earlier version.

    Its dependencies have to be there: nothing is downloaded.

    Raises:
        NotInstalledError: with what pip said.
    """
    if not (source / "pyproject.toml").is_file():
        raise NotInstalledError(f"{source} is no package: run this demo from a checkout of Perdure")
    with tempfile.TemporaryDirectory() as scratch:
        # A build leaves its traces beside the sources.
        copy = shutil.copytree(source.resolve(), Path(scratch) / source.name)
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
        command = [sys.executable, "-m", "pip", "install", *options, "--upgrade", "--target", str(target), str(copy)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise NotInstalledError(f"{source.name} cannot be installed into {target}: {ended.stderr.strip()[-2000:]}")
