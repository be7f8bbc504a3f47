"""`python -m localcloud`: the deployment's commands without the rest of the CLI."""

from __future__ import annotations

import typer

from localcloud.cli import register

app = typer.Typer(name="localcloud", no_args_is_help=True, pretty_exceptions_enable=False)
register(app)

if __name__ == "__main__":
    app()
