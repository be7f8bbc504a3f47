"""`perdure codec`: lets people read encrypted lifecycles in Temporal's web UI and command line."""

from __future__ import annotations

from typing import Annotated

import typer

from engine import command_groups
from starters.cli.environment import UnusedStateOption
from starters.cli.output import CommandError
from starters.cli.processes import execute

PortOption = Annotated[int, typer.Option("--port", min=1, max=65535, help="Where it listens, on PERDURE_LISTEN_HOST.")]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel=command_groups.PROCESSES)(codec)


def codec(port: PortOption = 8090, state: UnusedStateOption = None) -> None:
    """Decode encrypted payloads for Temporal's web UI and command line (`--codec-endpoint`)."""
    from engine.encryption import KeysUnreadable
    from engine.settings import read_settings
    from starters.codec_server.main import Unguarded, codec_application, run_codec_server

    try:
        codec_application(read_settings())
    except (Unguarded, KeysUnreadable) as error:
        raise CommandError(str(error), "docs/temporal.md says how keys and tokens are given") from error
    execute("codec", lambda settings: run_codec_server(settings, port))
