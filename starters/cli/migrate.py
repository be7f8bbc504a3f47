from __future__ import annotations

import sys
from pathlib import Path
from textwrap import TextWrapper
from typing import Annotated

import typer
import yaml

from domain.instances.node_termination_handler_migration import policy_of_nth
from starters.cli.object_reference import checked_name
from starters.cli.output import CommandError
from starters.cli.state_directory import UnusedStateOption

migrate = typer.Typer(help="Print other systems' settings as Perdure's objects.")

_CHART = "aws-node-termination-handler"
_WIDTH = 120
_comment = TextWrapper(
    _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False
)


@migrate.command()
def nth(
    values: Annotated[
        Path, typer.Argument(metavar="VALUES", help=f"The values of the chart {_CHART}, as YAML; - is standard input.")
    ],
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="The policy's name.")
    ] = "node-termination-handler",
    state: UnusedStateOption = None,
) -> None:
    """Print the InterruptionPolicy that does what the AWS Node Termination Handler does with the values of its chart.

    Values without an exact counterpart are named in comments before the policy. Nothing is written anywhere.
    Secret values are not printed.

    Example: helm get values -n kube-system aws-node-termination-handler -o yaml | perdure install migrate nth -
    """
    checked_name(name, "--name")
    try:
        read = yaml.safe_load(sys.stdin.read() if str(values) == "-" else values.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"{values} cannot be read: {error}") from error
    if read is not None and not isinstance(read, dict):
        raise CommandError(f"{values} holds no values of a chart", "`helm get values RELEASE -o yaml` prints them")
    given = read or {}
    below = given.get(_CHART)  # where the chart is a dependency of another chart
    try:
        found = policy_of_nth(below if isinstance(below, dict) else given, name)
    except ValueError as error:
        raise CommandError(f"{values}: {error}", f"the chart {_CHART} documents its values") from error
    for note in found.notes:
        typer.echo(_comment.fill(note))
    typer.echo(yaml.safe_dump(found.policy, sort_keys=False, width=_WIDTH), nl=False)
