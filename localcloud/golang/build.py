"""Compile servers from their Go modules, once per computer.

A `Recipe` names a directory with go.mod and go.sum, and the packages of the programs. A build is renamed into place
when complete; a lock lets one process build while others wait.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from localcloud.building import BuildError, lines_of, only_builder
from localcloud.golang.toolchain import Toolchain, find_toolchain
from localcloud.progress import Narrator


@dataclass(frozen=True)
class LeftOut:
    """A file to omit: only its module's own tests need it, and it is expensive to compile."""

    module: str
    file: str


@dataclass(frozen=True)
class Recipe:
    what: str
    """What is built: the programs and their versions, for messages to people."""
    name: str
    """The build's name in the cache, versions included; the machine type and a digest of the recipe are appended."""
    module: Path
    """The directory with go.mod and go.sum."""
    programs: Mapping[str, str]
    """The package of each program, by the program's name."""
    flags: tuple[str, ...]
    """The flags of `go build`."""
    linker_flags: str
    core_minutes: float
    """How many minutes a build takes on one core, as measured, downloads included."""
    disk_gb: int
    sources: tuple[str, ...] = ()
    """Directories of `module` with a `main.go` of our own."""
    left_out: LeftOut | None = None

    def home(self, cache: Path) -> Path:
        digest = hashlib.sha256()
        for file in ("go.mod", "go.sum", *(f"{directory}/main.go" for directory in self.sources)):
            digest.update((self.module / file).read_bytes())
        left_out = (self.left_out.file,) if self.left_out else ()
        digest.update(" ".join((*self.flags, self.linker_flags, *left_out)).encode())
        return cache / f"{self.name}-{platform.machine()}-{digest.hexdigest()[:8]}"


def cached(recipe: Recipe, cache: Path) -> Path | None:
    home = recipe.home(cache)
    return home if home.is_dir() else None


def build(recipe: Recipe, cache: Path, narrator: Narrator) -> Path:
    """Compile the programs, or wait for the process that does; raises BuildError or ToolchainError."""
    cache.mkdir(parents=True, exist_ok=True)
    home = recipe.home(cache)
    with only_builder(cache, recipe.what, narrator):
        ready = cached(recipe, cache)
        if ready is not None:
            return ready
        for abandoned in cache.glob(".building-*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        toolchain = find_toolchain(cache, narrator, recipe.module / "go.mod")
        _announce(recipe, narrator)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".building-") as temporary:
            work = Path(temporary)
            _compile(recipe, toolchain, work, narrator)
            (work / "bin").rename(home)
        if toolchain.own_caches is not None:
            _drop(toolchain, toolchain.own_caches)
    narrator.say("Built; later runs start in seconds.")
    return home


def _announce(recipe: Recipe, narrator: Narrator) -> None:
    cores = _cores()
    minutes = max(2, round(recipe.core_minutes / cores))
    narrator.say(
        f"Building {recipe.what} from source, once for this computer: about {minutes} "
        f"minutes on {cores} core{'s' if cores > 1 else ''} and {recipe.disk_gb} GB of disk. "
        "An interrupted build resumes where it was."
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _compile(recipe: Recipe, toolchain: Toolchain, work: Path, narrator: Narrator) -> None:
    for name in ("go.mod", "go.sum"):
        shutil.copy(recipe.module / name, work / name)
    for name in recipe.sources:
        shutil.copytree(recipe.module / name, work / name)
    started = time.monotonic()
    if recipe.left_out is not None:
        _leave_out(recipe.left_out, toolchain, work)
    total = _count_packages(recipe, toolchain, work, narrator)
    made, finished = work / "made", work / "bin"
    finished.mkdir()
    compiled = 0
    for batch in batches(recipe.programs):
        command = [str(toolchain.go), "build", "-v", *recipe.flags, "-ldflags", recipe.linker_flags, "-o", f"{made}/"]
        for line in _run(toolchain, [*command, *batch.values()], work):
            if line.startswith("go: "):
                continue
            compiled += 1
            narrator.advance("packages compiled", min(compiled, total), total)
        for name, package in batch.items():
            program = made / _own_name(package)
            if not program.is_file():
                raise BuildError(f"go build succeeded but produced no {name}")
            program.rename(finished / name)
    narrator.advance("packages compiled", total, total)
    narrator.say(f"  compiled in {(time.monotonic() - started) / 60:.1f} minutes")


def batches(programs: Mapping[str, str]) -> list[dict[str, str]]:
    """Divide the programs into batches without equal directory names: `go build` names programs after directories."""
    found: list[dict[str, str]] = []
    for name, package in programs.items():
        for batch in found:
            if _own_name(package) not in map(_own_name, batch.values()):
                batch[name] = package
                break
        else:
            found.append({name: package})
    return found


def _own_name(package: str) -> str:
    *_, parent, last = ("", *PurePosixPath(package).parts)
    return parent if last.startswith("v") and last[1:].isdecimal() else last


def _leave_out(left_out: LeftOut, toolchain: Toolchain, work: Path) -> None:
    """Replace the module by a copy without the file. Go has checked the original against go.sum before."""
    download = [str(toolchain.go), "mod", "download", "-json", left_out.module]
    answer = "".join(line for line in _run(toolchain, download, work) if not line.startswith("go: "))
    original, copy = Path(json.loads(answer)["Dir"]), work / PurePosixPath(left_out.module).name
    for path in original.rglob("*"):
        if path.is_file():
            target = copy / path.relative_to(original)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)  # without the mode: Go unpacks modules read-only
    (copy / left_out.file).unlink()
    list(_run(toolchain, [str(toolchain.go), "mod", "edit", f"-replace={left_out.module}=./{copy.name}"], work))


def _count_packages(recipe: Recipe, toolchain: Toolchain, work: Path, narrator: Narrator) -> int:
    tags = (flag for flag in recipe.flags if flag.startswith("-tags="))
    command = [str(toolchain.go), "list", "-mod=readonly", *tags, "-deps", *recipe.programs.values()]
    listed = 0
    downloads = 0
    for line in _run(toolchain, command, work):
        if line.startswith("go: downloading"):
            downloads += 1
            if downloads % 50 == 1:
                narrator.say(f"  downloading sources ({line.removeprefix('go: downloading ')}, ...)")
        else:
            listed += 1
    return max(1, listed)


def _run(toolchain: Toolchain, command: list[str], work: Path) -> Iterator[str]:
    return lines_of(command, cwd=work, variables={**toolchain.environment(), "GOTMPDIR": str(work)})


def _drop(toolchain: Toolchain, caches: Path) -> None:
    # Modules are unpacked read-only; go knows how to remove them.
    command = [str(toolchain.go), "clean", "-modcache"]
    subprocess.run(command, env=toolchain.environment(), cwd=caches, check=False, capture_output=True)
    shutil.rmtree(caches, ignore_errors=True)
    shutil.rmtree(toolchain.home, ignore_errors=True)
