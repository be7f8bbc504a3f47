"""Where a command's servers are: `--state DIR`, else the environment, else the local deployment.

A state directory of `perdure up` holds a file `env` of `export K=V` lines (DESIGN section 4). With `--state` they are
loaded and win over what the shell had, of Temporal all that it had. Without it the directory named by PERDURE_STATE is
taken; without that, and when the environment names neither a cluster nor a Temporal server, the local deployment's
default directory if it is there. So `perdure list` works right after `perdure up`, and never quietly turns to a local
deployment where the shell, or a pod, points at a real one.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import platformdirs
import typer

# Any of these says that the environment already knows its servers.
_POINTERS = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE")


def enter(state: Path | None) -> Path | None:
    """Load the state directory that counts into the environment; the option's callback, so it runs before settings."""
    directory = state or _named() or _default()
    if directory is None:
        return None
    try:
        found = exports((directory / "env").read_text())
    except FileNotFoundError:
        raise typer.BadParameter(f"there is no local deployment in {directory}. Start one with `perdure up`.") from None
    if "TEMPORAL_ADDRESS" in found:
        # A namespace, a key or a certificate is for the server that the shell had in mind.
        for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
            del os.environ[name]
    os.environ.update(found)
    return directory


StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="State directory of a local deployment. Default: what the environment names.",
        callback=enter,
        show_default=False,
    ),
]

# `crds`, `version` and `completion` ask no server: they take the option as every command does, and need no deployment.
UnusedStateOption = Annotated[Path | None, typer.Option("--state", metavar="DIR", hidden=True)]


def exports(text: str) -> dict[str, str]:
    """The variables of an `env` file."""
    words = shlex.split(text, comments=True)
    return dict(word.split("=", 1) for word in words if "=" in word)


def _named() -> Path | None:
    named = os.environ.get("PERDURE_STATE")
    return Path(named) if named else None


def _default() -> Path | None:
    """The local deployment's own default directory, when it is up and nothing else is named."""
    directory = platformdirs.user_state_path("perdure") / "local"
    named = any(os.environ.get(name) for name in _POINTERS)
    return directory if not named and (directory / "env").is_file() else None
