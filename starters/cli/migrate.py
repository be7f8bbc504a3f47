"""`perdure install migrate`: other systems' settings as Perdure's objects."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import yaml

from domain.instances.node_termination_handler_migration import policy_of_nth
from starters.cli.environment import UnusedStateOption
from starters.cli.output import CommandError

migrate = typer.Typer(help="Print other systems' settings as Perdure's objects.")


def register(app: typer.Typer) -> None:
    app.add_typer(migrate, name="migrate", no_args_is_help=True)


@migrate.command()
def nth(
    values: Annotated[Path, typer.Argument(metavar="VALUES", help="The values of the handler's chart, as YAML.")],
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="The policy's name.")
    ] = "node-termination-handler",
    state: UnusedStateOption = None,
) -> None:
    """Print the InterruptionPolicy that does what the AWS Node Termination Handler does with the values of its chart.

    Comments before it name what has no counterpart, or a different one. Nothing is written anywhere.

    Example: perdure install migrate nth values.yaml
    """
    try:
        read = yaml.safe_load(values.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"{values} cannot be read: {error}") from error
    if read is not None and not isinstance(read, dict):
        raise CommandError(f"{values} holds no values of a chart", "`helm get values RELEASE -o yaml` prints them")
    try:
        found = policy_of_nth(read or {}, name)
    except ValueError as error:
        raise CommandError(f"{values}: {error}", "the handler's chart says what each value may be") from error
    for note in found.notes:
        typer.echo(f"# {note}")
    typer.echo(yaml.safe_dump(found.policy, sort_keys=False, width=120), nl=False)
