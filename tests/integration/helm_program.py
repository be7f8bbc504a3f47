"""The real Helm for tests: the one on PATH when it is of the same major version, else one built once per computer.

Helm is in no package index, and compiles from its Go module like the local control plane: about five minutes on two
cores from empty caches. Versions are those of `helm_module/go.mod`, every module is held by `go.sum` beside it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import platformdirs

from localcloud.building import lines_of, only_builder
from localcloud.golang.toolchain import find_toolchain
from localcloud.progress import Narrator

MODULE = Path(__file__).parent / "helm_module"
PACKAGE = "helm.sh/helm/v4/cmd/helm"
FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", "-s -w")


def find_helm(narrator: Narrator) -> Path:
    """The program; raises BuildError or ToolchainError."""
    system = shutil.which("helm")
    if system is not None and _version(Path(system)).startswith("v4."):
        return Path(system)
    cache = platformdirs.user_cache_path("perdure") / "helm"
    home = cache / _recipe() / "helm"
    if not home.exists():
        _build(cache, home, narrator)
    return home


def _version(helm: Path) -> str:
    return subprocess.run([helm, "version", "--short"], capture_output=True, text=True, check=False).stdout


def _recipe() -> str:
    """What the program is made from, as a directory's name."""
    text = (MODULE / "go.mod").read_text()
    found = re.search(r"helm\.sh/helm/v4 (v\S+)", text)
    assert found is not None
    digest = hashlib.sha256(f"{text}{(MODULE / 'go.sum').read_text()}{FLAGS}".encode())
    return f"{found[1]}-{digest.hexdigest()[:8]}"


def _build(cache: Path, home: Path, narrator: Narrator) -> None:
    """Compile it in a directory of its own, and rename it into place when it is whole."""
    cache.mkdir(parents=True, exist_ok=True)
    with only_builder(cache, "Helm", narrator), tempfile.TemporaryDirectory(dir=cache, prefix=".building-") as work:
        if home.exists():
            return
        narrator.say("Building Helm from source, once for this computer: about five minutes on two cores.")
        toolchain = find_toolchain(cache, narrator, MODULE / "go.mod")
        for name in ("go.mod", "go.sum"):
            shutil.copy(MODULE / name, work)
        made = Path(work, "made")
        made.mkdir()
        command = [str(toolchain.go), "build", *FLAGS, "-o", str(made / "helm"), PACKAGE]
        for _ in lines_of(command, cwd=Path(work), variables={**toolchain.environment(), "GOTMPDIR": work}):
            pass
        made.rename(home.parent)
