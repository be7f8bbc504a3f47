"""The `perdure` command line.

Commands join by their module's `register(app)`, other packages by an entry point of the group `perdure.commands`.
Temporal and Kubernetes are imported only when a command runs, to keep help and completion fast.

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
    codec,
    completing,
    crds,
    events,
    iam,
    levers,
    listing,
    migrating,
    processes,
    release,
    replay,
    settings,
    temporal,
    top,
)
from starters.cli.output import CommandError, warn

ENTRY_POINTS = "perdure.commands"

Register = Callable[[typer.Typer], None]

OWN: tuple[Register, ...] = (
    listing.register,
    top.register,
    levers.register,
    abandon.register,
    release.register,
    audit.register,
    settings.register,
    processes.register,
    events.register,
    codec.register,
    crds.register,
    iam.register,
    migrating.register,
    temporal.register,
    replay.register,
    completing.register,
)


def build() -> typer.Typer:
    """Includes commands of installed packages (`ENTRY_POINTS`)."""
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
    for register in OWN:
        register(app)
    positions = {group: index for index, group in enumerate(command_groups.ORDER)}
    app.registered_commands.sort(key=lambda command: positions.get(str(command.rich_help_panel), len(positions)))
    return app


def main() -> None:
    collect_seldom()
    code: str | int | None = 0
    try:
        build()(prog_name=program_name())
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


def program_name() -> str:
    """For `kubectl perdure`, kubectl runs `kubectl-perdure`."""
    return "kubectl perdure" if Path(sys.argv[0]).name.startswith("kubectl-") else "perdure"


def _end(code: str | int | None) -> None:
    """Skips the interpreter's finalisation if Temporal's Rust core has been loaded."""
    if "temporalio.bridge.runtime" not in sys.modules or not isinstance(code, int | None):
        sys.exit(code)
    exit_now(code or 0)


if __name__ == "__main__":
    main()
