"""What the documentation asks people to type, write and call: every fenced block, and every command in it.

A block without a language, or of `sh` and `console`, holds commands; where lines begin with `$ ` only those do, the
rest is what they print. `text` is a drawing or output. A command ends with its line, unless a backslash, an open quote
or an open `do` goes on.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", *(page for name in ("docs", "examples", "deploy") for page in (ROOT / name).rglob("*.md"))]
)
SHELL = ("", "sh", "console", "shell", "bash")

_FENCE = re.compile(r"^ *```(\S*)[^\n]*\n(.*?)^ *```\s*$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:\./run |perdure |kubectl |helm |temporal |\.ci/)[^`]+)`")


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


class Command(NamedTuple):
    """A command of a page, as one line of a shell or several, without its comment."""

    page: str
    line: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text.replace("\\\n", " "), comments=True)

    @property
    def program(self) -> str:
        """What is started: the first word, with `./run` and variables set before it left out."""
        words = self.words
        while words and (words[0] == "./run" or re.match(r"^[A-Z_]+=", words[0])):
            words = words[1:]
        return words[0] if words else ""


def blocks() -> list[Block]:
    """Every fenced block of every page."""
    return [block for page in PAGES for block in blocks_of(page)]


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page.relative_to(ROOT).as_posix(), line, found[1], found[2])


def commands() -> list[Command]:
    """Every command of every block."""
    return [command for block in blocks() if block.language in SHELL for command in commands_of(block)]


def commands_on(page: str) -> list[Command]:
    """The commands of one page."""
    return [each for each in commands() if each.page == page]


def commands_of(block: Block) -> Iterator[Command]:
    lines = block.text.splitlines()
    prompted = any(line.lstrip().startswith("$ ") for line in lines)
    at = 0
    while at < len(lines):
        first = at
        text = lines[at].strip()
        at += 1
        if not text or text.startswith("#") or (prompted and not text.startswith("$ ")):
            continue
        text = text.removeprefix("$ ")
        while _goes_on(text) and at < len(lines):
            text += "\n" + lines[at].strip()
            at += 1
        yield Command(block.page, block.line + 1 + first, text)


def inline_commands() -> list[Command]:
    """The commands within sentences."""
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in _INLINE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Command(page.relative_to(ROOT).as_posix(), line, " ".join(match[1].split())))
    return found


def _goes_on(text: str) -> bool:
    if text.endswith("\\"):
        return True
    try:
        words = shlex.split(text.replace("\\\n", " "), comments=True)
    except ValueError:  # an open quote
        return True
    return "do" in words and "done" not in words


# Pages that are typed with everything running, by a test of their own.
TYPED_LIVE = {
    "docs/adding-a-lifecycle.md": "tests/integration/test_documentation_tutorial.py",
    "docs/quick-start.md": "tests/integration/test_documentation_quick_start.py",
}
# Pages whose commands of kubectl and curl are typed by tests/integration/test_documentation.py, in their order; and
# what is there before, where the page takes it for granted.
_INSTALLED = "kubectl -n perdure create deployment perdure --image=none --dry-run=client -o yaml | kubectl apply -f -"
RUN: dict[str, tuple[str, ...]] = {
    "docs/threescale-simulator.md": (),
    "docs/deployment.md": ("kubectl delete namespace perdure",),
    "docs/temporal.md": ("kubectl get namespace perdure || kubectl create namespace perdure",),
    "docs/migration-3scale.md": (
        _INSTALLED,
        "kubectl create namespace threescale-operator",
        "kubectl -n threescale-operator create deployment threescale-operator --image=none",
        "kubectl -n threescale-operator apply -f - <<END\n"
        "apiVersion: capabilities.3scale.net/v1beta1\n"
        "kind: OpenAPI\n"
        "metadata: {name: left, finalizers: [a.b/c]}\n"
        "spec: {openapiRef: {url: 'http://127.0.0.1'}}\nEND",
    ),
    "docs/migration-aws-account-operator.md": (
        _INSTALLED,
        "kubectl -n aws-account-operator create deployment aws-account-operator --image=none",
    ),
    "docs/migration-capa.md": (
        _INSTALLED,
        "kubectl create namespace capa-system",
        "kubectl -n capa-system create deployment capa-controller-manager --image=none "
        "-- /manager --feature-gates=EKS=true,EventBridgeInstanceState=true",
    ),
    "docs/migration-poolboy.md": (
        _INSTALLED,
        "kubectl -n poolboy create deployment poolboy --image=none",
    ),
    "docs/migration-yawol.md": (
        _INSTALLED,
        "kubectl -n kube-system create deployment yawol-cloud-controller --image=none",
        "kubectl -n kube-system create deployment yawol-controller --image=none",
    ),
    "examples/accounts/README.md": (),
    "examples/api/README.md": (),
    "examples/byoc/README.md": (),
    "examples/claims/README.md": (),
    "examples/federated-access/README.md": (
        "kubectl apply -f examples/accounts/pool.yaml -f examples/accounts/claim.yaml",
    ),
    "examples/instances/README.md": (),
    "examples/loadbalancer/README.md": (),
    "examples/loadbalancers-objects/README.md": (),
    "examples/loadbalancers-services/README.md": (),
}
# What the placeholders of a page mean.
STANDS_FOR = {
    "docs/migration-3scale.md": {
        "NAMESPACE": "threescale-operator",
        "DEPLOYMENT": "threescale-operator",
        "KIND/NAME": "openapi/left",
    },
}
_RUN_PROGRAMS = re.compile(r"(kubectl|curl(?! http://\$\()|export|source|\.|\w+=\$\(kubectl)\s")


def is_run(command: Command) -> bool:
    """Whether a test types it unchanged."""
    return (command.page in RUN or command.page in TYPED_LIVE) and _RUN_PROGRAMS.match(command.text) is not None
