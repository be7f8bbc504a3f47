"""The `perdure` command line.

Another package adds commands through an entry point in the group `perdure.commands`, which names a function
`register(app)`. Temporal and Kubernetes are imported only when a command runs, to keep help and completion fast.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import typer

from engine import command_groups
from engine.garbage_collection import collect_seldom
from engine.hard_exit import exit_now
from engine.settings import InvalidSettings
from starters.cli import (
    abandon,
    audit,
    completion,
    crds,
    events,
    iam,
    lifecycle_commands,
    listing,
    migrate,
    processes,
    settings,
    temporal,
    top,
)
from starters.cli.output import CommandError, warn

ENTRY_POINTS = "perdure.commands"

Register = Callable[[typer.Typer], None]

LOOKING = (top.top, lifecycle_commands.why, lifecycle_commands.plan, audit.audit, settings.settings)
ACTING = (
    lifecycle_commands.retry,
    lifecycle_commands.pause,
    lifecycle_commands.resume,
    lifecycle_commands.wake,
    abandon.abandon,
)

# Former verbs and their present form. A verb is removed one release after the release that first named the new form.
MOVED = {
    "codec": ("run", "codec"),
    "completion": ("install", "completion"),
    "iam": ("install", "iam"),
    "migrate": ("install", "migrate"),
    "release": ("abandon", "--skip-cleanup"),
    "replay": ("temporal", "replay"),
}


def build() -> typer.Typer:
    app = typer.Typer(
        name="perdure",
        help="Provision cloud resources from Kubernetes custom resources, each reconciled by one Temporal workflow.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            joined: Register = entry.load()
            joined(app)
        except Exception as error:  # another package's broken commands must not disable ours
            warn(f"warning: the commands of {entry.value} are missing: {type(error).__name__}: {error}")
    app.command("list", rich_help_panel=command_groups.LOOK)(listing.show)
    for looking in LOOKING:
        app.command(rich_help_panel=command_groups.LOOK)(looking)
    for acting in ACTING:
        app.command(rich_help_panel=command_groups.ACT)(acting)
    for module in (processes, events, temporal):
        module.register(app)
    install = typer.Typer(help="Print what an installation needs: CRDs, IAM policies, settings converted for Perdure.")
    for installing in (crds.crds, iam.iam, completion.completion):
        install.command()(installing)
    install.add_typer(migrate.migrate, name="migrate", no_args_is_help=True)
    app.add_typer(install, name="install", rich_help_panel=command_groups.INSTALL, no_args_is_help=True)
    app.command("crds", hidden=True)(crds.crds)  # pipelines call `perdure crds`
    positions = {group: index for index, group in enumerate(command_groups.ORDER)}
    app.registered_commands.sort(key=lambda command: positions.get(str(command.rich_help_panel), len(positions)))
    return app


def main() -> None:
    collect_seldom()
    code: str | int | None = 0
    try:
        build()(in_new_form(sys.argv[1:]), prog_name=program_name())
    except CommandError as error:
        warn(f"error: {error.message}")
        if error.advice:
            warn(f"       {error.advice}")
        code = 1
    except InvalidSettings as invalid:
        warn(f"error: {invalid}")
        warn("       docs/settings.md has every setting")
        code = 1
    except KeyboardInterrupt:
        code = 130
    except SystemExit as ended:
        code = ended.code
    _end(code)


def in_new_form(words: list[str]) -> list[str]:
    if not words or words[0] not in MOVED:
        return words
    new = MOVED[words[0]]
    warn(f"`perdure {words[0]}` is `perdure {' '.join(new)}` now")
    return [*new, *words[1:]]


def program_name() -> str:
    return "kubectl perdure" if Path(sys.argv[0]).name.startswith("kubectl-") else "perdure"


def _end(code: str | int | None) -> None:
    if "temporalio.bridge.runtime" not in sys.modules or not isinstance(code, int | None):
        sys.exit(code)
    exit_now(code or 0)


if __name__ == "__main__":
    main()
