"""Unpacks Debian's packages into the cache, so that a server needs neither root nor an installation."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from localcloud.building import BuildError


def unpack(package: str, home: Path, *, proof: Sequence[str], without: str = "") -> None:
    """Unpack a package and the libraries that it needs into a new directory.

    Args:
        package: its name, or the name of its metapackage.
        home: the new directory, which gets `usr/...`.
        proof: a program's path below `home` (possibly a glob pattern) and arguments; it must run successfully.
        without: a regular expression for libraries to omit.

    Raises:
        BuildError: this is no Debian, there is no such package, or its program does not run.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise BuildError(
            f"{package} cannot be unpacked without apt-get and dpkg-deb: install {package} so that its programs are on "
            "PATH"
        )
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=f".{home.name}-") as temporary:
        work = Path(temporary)
        _download(package, work, without)
        root = work / "root"
        for archive in work.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(archive), str(root)], work)
        pattern, *arguments = proof
        program = next(root.glob(pattern), None)
        if program is None:
            raise BuildError(f"{package} contains no {pattern}")
        _run([str(program), *arguments], work, {**os.environ, "LD_LIBRARY_PATH": str(libraries(root))})
        root.rename(home)


def libraries(home: Path) -> Path:
    return next((home / "usr" / "lib").glob("*-linux-*"), home / "usr" / "lib")


def _download(package: str, work: Path, without: str) -> None:
    """Download the package and its libraries; if that fails, try again with new package lists."""
    options: list[str] = []
    try:
        wanted = _wanted(package, options, work, without)
        _run(["apt-get", *options, "download", *wanted], work)
    except BuildError:
        for name in ("lists/partial", "archives/partial"):
            (work / name).mkdir(parents=True)
        options = [f"-oDir::State::lists={work}/lists", f"-oDir::Cache={work}", "-oDir::Cache::archives=archives"]
        _run(["apt-get", *options, "update"], work)
        wanted = _wanted(package, options, work, without)
        _run(["apt-get", *options, "download", *wanted], work)


def _wanted(package: str, options: list[str], work: Path, without: str) -> list[str]:
    """The package, its versioned package if it is a metapackage, and the libraries that the system lacks."""
    depends = ["apt-cache", *options, "depends", "--recurse", "--important", "--no-conflicts", "--no-breaks"]
    listed = _run([*depends, "--no-replaces", "--no-enhances", package], work)
    named = dict.fromkeys(re.findall(r"^\s*\|?Depends: ([a-z0-9][\w.+-]*)", listed, re.MULTILINE))
    found = [name for name in named if name.startswith("lib") and not (without and re.match(without, name))]
    if not found:
        raise BuildError(f"no package lists, or no {package} in them")
    versioned = [name for name in named if re.fullmatch(rf"{re.escape(package)}-\d+", name)]
    return [package, *versioned, *(name for name in found if not _is_installed(name))]


def _is_installed(package: str) -> bool:
    command = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout == "installed"


def _run(command: list[str], work: Path, variables: dict[str, str] | None = None) -> str:
    result = subprocess.run(
        command, cwd=work, env=variables or {**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise BuildError(f"`{' '.join(command[:3])}` failed with {result.returncode}:\n{result.stderr[-2000:]}")
    return result.stdout
