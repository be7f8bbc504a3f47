"""Shell completion of kinds, objects and areas, and its scripts (`perdure install completion SHELL`).

Completion reads the cluster with a short timeout. After an error, it offers no candidates. To complete the arguments of
a plugin, kubectl runs a program named `kubectl_complete-...`, which prints one candidate per line.
"""

from __future__ import annotations

import asyncio
import io
import os
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from domain.identity import Kind, all_areas, all_kinds, objectless
from starters.cli.state_directory import UnusedStateOption, enter

PATIENCE_SECONDS = 3.0
MOST = 500
# cobra's directive to offer no file names.
_NO_FILES = ":4"
_VARIABLE = "_PERDURE_COMPLETE"


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.")], state: UnusedStateOption = None
) -> None:
    """Print the script that completes commands, kinds and objects in your shell.

    Example: source <(perdure install completion bash)
    """
    typer.echo(requested_completion(f"source_{shell.value}"))


def complete_kinds(incomplete: str) -> list[str]:
    names = sorted(kind.name.lower() for kind in all_kinds().values() if kind.lifecycle)
    return [name for name in names if name.startswith(incomplete.lower())]


def complete_areas(incomplete: str) -> list[str]:
    return [area for area in all_areas() if area.startswith(incomplete)]


def complete_objects(ctx: typer.Context, incomplete: str) -> list[str]:
    from starters.cli.object_reference import kind_named

    try:
        with redirect_stderr(io.StringIO()):  # no warnings into a shell's prompt
            state = ctx.params.get("state")
            enter(Path(state) if state else None)
            kind = kind_named(str(ctx.params.get("kind", "")))
            return asyncio.run(asyncio.wait_for(_objects(kind, incomplete), PATIENCE_SECONDS))
    except Exception:  # and no errors either
        return []


async def _objects(kind: Kind, incomplete: str) -> list[str]:
    from engine.kube import KubeApi
    from engine.kube.clusters import served_cluster
    from engine.kube.json import text
    from engine.settings import settings

    found = settings()
    if not kind.plural:
        keys = objectless(kind.name, "", found.claims_domain)
        alone = ("/".join(filter(None, (key.namespace, key.name))) for key in keys)
        return [name for name in alone if name.startswith(incomplete)]
    namespace, slash, _ = incomplete.partition("/")
    async with await KubeApi.open(found, "cli") as kube, served_cluster(found, kube, "cli") as served:
        listing = await (served if kind.served else kube).list(kind, namespace if slash else "")
    names = [f"{text(each, 'metadata', 'namespace')}/{text(each, 'metadata', 'name')}" for each in listing.items]
    return sorted(name for name in names if name.startswith(incomplete))[:MOST]


def for_kubectl() -> None:
    """Complete a command line for kubectl, which passes the arguments after `kubectl perdure`."""
    typer.echo("\n".join([*candidates(sys.argv[1:]), _NO_FILES]))


def candidates(arguments: list[str]) -> list[str]:
    words = ["perdure", *(arguments or [""])]
    # In bash's protocol: one candidate per line.
    return requested_completion("complete_bash", COMP_WORDS=shlex.join(words), COMP_CWORD=str(len(words) - 1)).split()


def requested_completion(what: str, **variables: str) -> str:
    """Set the environment variables by which a shell requests a completion, and return what the command prints."""
    from starters.cli.main import build

    asking = {_VARIABLE: what, **variables}
    before = {name: os.environ.get(name) for name in asking}
    os.environ.update(asking)
    try:
        with redirect_stdout(io.StringIO()) as printed, suppress(SystemExit):
            build()(prog_name="perdure")
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    return printed.getvalue()
