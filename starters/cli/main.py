"""The `perdure` command line: every command of the product, and those that stand aside join through entry points.

A command is a function in one of this package's modules, added by that module's `register(app)`. Other distributions
and `localcloud` add theirs by an entry point of the group `perdure.commands` that names such a function. Modules are
light when imported; what is heavy (Temporal, Kubernetes) is imported when a command runs, so that help and completion
answer at once.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage. An error says on standard error what was tried on which object,
what came back, and what to do about it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import entry_points

import typer

from starters.cli import abandon, audit, crds, events, iam, levers, listing, processes, release
from starters.cli.output import CommandError, warn

ENTRY_POINTS = "perdure.commands"

Register = Callable[[typer.Typer], None]

OWN: tuple[Register, ...] = (
    listing.register,
    levers.register,
    abandon.register,
    release.register,
    audit.register,
    processes.register,
    events.register,
    crds.register,
    iam.register,
)


def build() -> typer.Typer:
    """The whole application."""
    app = typer.Typer(
        name="perdure",
        help="Durable provisioning: Kubernetes custom resources in, one Temporal workflow per object.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for register in OWN:
        register(app)
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            joined: Register = entry.load()
            joined(app)
        except Exception as error:  # another's broken commands must not take away a person's levers
            warn(f"warning: the commands of {entry.value} are missing: {type(error).__name__}: {error}")
    return app


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    try:
        build()(prog_name="perdure")
    except CommandError as error:
        _fail(error.message, error.advice)
    except KeyboardInterrupt:
        sys.exit(130)


def _fail(message: str, advice: str) -> None:
    warn(f"error: {message}")
    if advice:
        warn(f"       {advice}")
    sys.exit(1)


if __name__ == "__main__":
    main()
