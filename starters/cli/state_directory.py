"""How a command finds its servers: by `--state DIR`, else by the environment, else by the default state directory.

A state directory's variables replace the shell's Temporal variables. The default directory is used only if the
environment names neither a cluster nor a Temporal server, so a command never uses it in place of a real deployment.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import platformdirs
import typer

# If any of these is set, the environment names the servers.
POINTERS = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE")


def enter(state: Path | None) -> Path | None:
    """Load the variables of the state directory, if there is one, into the environment, before settings are read."""
    named = os.environ.get("PERDURE_STATE")
    directory = state or (Path(named) if named else _default())
    if directory is None:
        return None
    try:
        found = exports((directory / "env").read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise typer.BadParameter(f"there is no local deployment in {directory}. Start one with `perdure up`.") from None
    except (OSError, ValueError) as error:
        message = f"{directory / 'env'} cannot be read: {error}. Write it again: `perdure down`, then `perdure up`."
        raise typer.BadParameter(message) from None
    if "TEMPORAL_ADDRESS" in found:
        # The shell's namespace, API key and certificate belong to another server.
        for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
            del os.environ[name]
    os.environ.update(found)
    return directory


StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Use the local deployment with this state directory. Default: the servers that the environment names, "
        "else the deployment of `perdure up`.",
        callback=enter,
        show_default=False,
    ),
]

# Commands that contact no server accept the option for uniformity.
UnusedStateOption = Annotated[Path | None, typer.Option("--state", metavar="DIR", hidden=True)]


def exports(text: str) -> dict[str, str]:
    words = shlex.split(text, comments=True)
    return dict(word.split("=", 1) for word in words if "=" in word)


def _default() -> Path | None:
    directory = platformdirs.user_state_path("perdure") / "local"
    named = any(os.environ.get(name) for name in POINTERS)
    return directory if not named and (directory / "env").is_file() else None
