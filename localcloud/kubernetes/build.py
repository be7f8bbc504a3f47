"""Compiles the API server, the controller manager and etcd, once per computer, if they cannot be downloaded.

About 2,150 packages take four minutes on two cores. `go.mod` pins the versions, `go.sum` the hashes. The controller
manager has only the controllers that the local deployment runs. `docs/development.md` compares the costs of other ways.

A build is renamed into place when complete; a lock admits one process. After an interruption the next one resumes from
Go's cache. The compiler ends with this process.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from localcloud.building import BuildError, lines_of, only_builder
from localcloud.kubernetes.toolchain import Toolchain, find_toolchain
from localcloud.progress import Narrator

MODULE = Path(__file__).parent
CONTROLLERS = "kube-controller-manager"  # Go names a program after its directory
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": f"./{CONTROLLERS}",
}
ALL = tuple(PACKAGES)
# Tags and trimming are those of Kubernetes' releases. DWARF is only for debuggers and would cost a sixth more time.
FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-tags=notest,grpcnotrace", "-gcflags=all=-dwarf=false")
# A helper of the API server's unit tests is among its sources. It alone pulls in the fake clients of all kinds: 61
# packages, 7 % of the time, which are not in the program.
HELPERS_MODULE = "k8s.io/apiserver"
HELPER = "pkg/admission/plugin/policy/generic/policy_test_context.go"
CORE_MINUTES = 8  # measured: 4 minutes on 2 cores, downloads included
DISK_GB = 3


def versions() -> tuple[str, str]:
    """Reads go.mod."""
    text = (MODULE / "go.mod").read_text()
    found = [re.search(rf"^\s*{re.escape(name)} (v\S+)", text, re.MULTILINE) for name in _REQUIRED]
    assert all(found)
    kubernetes, etcd = (match[1] for match in found if match)
    return kubernetes, etcd


_REQUIRED = ("k8s.io/kubernetes", "go.etcd.io/etcd/server/v3")


def cached(cache: Path, names: tuple[str, ...] = ALL) -> Path | None:
    home = _home(cache, names)
    return home if home.is_dir() else None


def build(cache: Path, narrator: Narrator, names: tuple[str, ...] = ALL) -> Path:
    """Waits for another process's build. Raises BuildError."""
    cache.mkdir(parents=True, exist_ok=True)
    home = _home(cache, names)
    with only_builder(cache, "Kubernetes", narrator):
        ready = cached(cache, names)
        if ready is not None:
            return ready
        for abandoned in cache.glob(".building-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        toolchain = find_toolchain(cache, narrator)
        _announce(narrator, names)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".building-") as temporary:
            work = Path(temporary)
            _compile(toolchain, work, narrator, names)
            (work / "bin").rename(home)
        if toolchain.own_caches is not None:
            _drop(toolchain, toolchain.own_caches)
    narrator.say("Built; later runs start in seconds.")
    return home


def _home(cache: Path, names: tuple[str, ...]) -> Path:
    kubernetes, etcd = versions()
    recipe = hashlib.sha256()
    for part in (
        (MODULE / "go.mod").read_bytes(),
        (MODULE / "go.sum").read_bytes(),
        (MODULE / CONTROLLERS / "main.go").read_bytes(),
        " ".join((*FLAGS, _linker_flags(), HELPER)).encode(),
    ):
        recipe.update(part)
    made = f"{kubernetes}-etcd-{etcd}" if names == ALL else f"{kubernetes}-{'-'.join(names)}"
    return cache / f"{made}-{platform.machine()}-{recipe.hexdigest()[:8]}"


def _linker_flags() -> str:
    kubernetes, _ = versions()
    major, minor, _ = kubernetes.removeprefix("v").split(".", 2)
    stamped = {"gitVersion": kubernetes, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return "-s -w " + " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamped.items())


def _announce(narrator: Narrator, names: tuple[str, ...]) -> None:
    kubernetes, etcd = versions()
    made = f"Kubernetes {kubernetes} and etcd {etcd}" if names == ALL else f"{', '.join(names)} {kubernetes}"
    cores = _cores()
    minutes = max(2, round(CORE_MINUTES / cores))
    narrator.say(
        f"Building {made} from source, once for this computer: about {minutes} "
        f"minutes on {cores} core{'s' if cores > 1 else ''} and {DISK_GB} GB of disk. "
        "When interrupted, it goes on where it was."
    )


def _cores() -> int:
    """On macOS, counts all cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _compile(toolchain: Toolchain, work: Path, narrator: Narrator, names: tuple[str, ...]) -> None:
    for name in ("go.mod", "go.sum"):
        shutil.copy(MODULE / name, work / name)
    shutil.copytree(MODULE / CONTROLLERS, work / CONTROLLERS)
    started = time.monotonic()
    packages = [PACKAGES[name] for name in names]
    _leave_out_helper(toolchain, work)
    total = _count_packages(toolchain, work, narrator, packages)
    command = [str(toolchain.go), "build", "-v", *FLAGS, "-ldflags", _linker_flags(), "-o", f"{work}/bin/"]
    compiled = 0
    for line in _run(toolchain, [*command, *packages], work):
        if line.startswith("go: "):
            continue
        compiled += 1
        narrator.advance("packages compiled", min(compiled, total), total)
    narrator.advance("packages compiled", total, total)
    if "etcd" in names:
        (work / "bin" / "server").rename(work / "bin" / "etcd")  # Go names a program after its package's directory
    missing = [name for name in names if not (work / "bin" / name).is_file()]
    if missing:
        raise BuildError(f"go build ended well but made no {', '.join(missing)}")
    narrator.say(f"  compiled in {(time.monotonic() - started) / 60:.1f} minutes")


def _leave_out_helper(toolchain: Toolchain, work: Path) -> None:
    """Go has checked the original against go.sum."""
    download = [str(toolchain.go), "mod", "download", "-json", HELPERS_MODULE]
    answer = "".join(line for line in _run(toolchain, download, work) if not line.startswith("go: "))
    original, copy = Path(json.loads(answer)["Dir"]), work / "apiserver"
    for path in original.rglob("*"):
        if path.is_file():
            target = copy / path.relative_to(original)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)  # without the mode, since Go unpacks modules read-only
    (copy / HELPER).unlink()
    list(_run(toolchain, [str(toolchain.go), "mod", "edit", f"-replace={HELPERS_MODULE}=./{copy.name}"], work))


def _count_packages(toolchain: Toolchain, work: Path, narrator: Narrator, packages: list[str]) -> int:
    """Downloads missing sources."""
    listed = 0
    downloads = 0
    for line in _run(toolchain, [str(toolchain.go), "list", "-mod=readonly", "-deps", *packages], work):
        if line.startswith("go: downloading"):
            downloads += 1
            if downloads % 50 == 1:
                narrator.say(f"  downloading sources ({line.removeprefix('go: downloading ')}, ...)")
        else:
            listed += 1
    return max(1, listed)


def _run(toolchain: Toolchain, command: list[str], work: Path) -> Iterator[str]:
    """Temporary files are in the build's directory."""
    return lines_of(command, cwd=work, variables={**toolchain.environment(), "GOTMPDIR": str(work)})


def _drop(toolchain: Toolchain, caches: Path) -> None:
    """Frees gigabytes."""
    # Modules are unpacked read-only; go can remove them.
    command = [str(toolchain.go), "clean", "-modcache"]
    subprocess.run(command, env=toolchain.environment(), cwd=caches, check=False, capture_output=True)
    shutil.rmtree(caches, ignore_errors=True)
    shutil.rmtree(toolchain.home, ignore_errors=True)
