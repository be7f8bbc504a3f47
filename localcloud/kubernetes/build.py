"""Compiles the API server, the controller manager and etcd, once per computer, if they cannot be downloaded.

`docs/development.md` compares the costs of other ways.
"""

from __future__ import annotations

import re
from pathlib import Path

from localcloud.golang import build as golang
from localcloud.golang.build import LeftOut, Recipe
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
HELPER = "pkg/admission/plugin/policy/generic/policy_test_context.go"
CORE_MINUTES = 8  # measured: 4 minutes on 2 cores, downloads included
DISK_GB = 3


def versions() -> tuple[str, str]:
    text = (MODULE / "go.mod").read_text()
    found = [re.search(rf"^\s*{re.escape(name)} (v\S+)", text, re.MULTILINE) for name in _REQUIRED]
    assert all(found)
    kubernetes, etcd = (match[1] for match in found if match)
    return kubernetes, etcd


_REQUIRED = ("k8s.io/kubernetes", "go.etcd.io/etcd/server/v3")


def cached(cache: Path, names: tuple[str, ...] = ALL) -> Path | None:
    return golang.cached(_recipe(names), cache)


def build(cache: Path, narrator: Narrator, names: tuple[str, ...] = ALL) -> Path:
    """Raises BuildError or ToolchainError."""
    return golang.build(_recipe(names), cache, narrator)


def _recipe(names: tuple[str, ...]) -> Recipe:
    kubernetes, etcd = versions()
    whole = names == ALL
    return Recipe(
        what=f"Kubernetes {kubernetes} and etcd {etcd}" if whole else f"{', '.join(names)} {kubernetes}",
        name=f"{kubernetes}-etcd-{etcd}" if whole else f"{kubernetes}-{'-'.join(names)}",
        module=MODULE,
        programs={name: PACKAGES[name] for name in names},
        flags=FLAGS,
        linker_flags=_linker_flags(kubernetes),
        core_minutes=CORE_MINUTES,
        disk_gb=DISK_GB,
        sources=(CONTROLLERS,),
        left_out=LeftOut("k8s.io/apiserver", HELPER),
    )


def _linker_flags(kubernetes: str) -> str:
    major, minor, _ = kubernetes.removeprefix("v").split(".", 2)
    stamped = {"gitVersion": kubernetes, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return "-s -w " + " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamped.items())
