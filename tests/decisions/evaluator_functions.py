"""Functions that the evaluator's tests evaluate: a rendering, and ways to misbehave that no template has."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from domain.claims.templates.renderer import Json, Renderer
from domain.model import Model

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Rendering(Model):
    template: Json
    variables: dict[str, Json] = {}
    what: str = "provider x, override"


class Rendered(Model):
    value: Json = None


def render(request: Rendering) -> Rendered:
    """One rendering."""
    return Rendered(value=Renderer(NOW).render(request.template, request.variables, what=request.what))


class Deed(Model):
    name: str


def _unbuilt(model: type[Model]) -> Iterator[type[Model]]:
    for each in model.__subclasses__():
        if not each.__pydantic_complete__:
            yield each
        yield from _unbuilt(each)


def misbehave(request: Deed) -> Rendered:
    """What code does that has escaped from a template."""
    deeds: dict[str, Callable[[], object]] = {
        "open a file": lambda: Path("/etc/passwd").read_text(),
        "connect": lambda: str(socket.socket()),
        "start a program": lambda: subprocess.run(["/bin/true"], check=True),
        "fork": lambda: os.fork(),
        "start a thread": lambda: threading.Thread(target=print).start(),
        "signal its parent": lambda: os.kill(os.getppid(), signal.SIGKILL),
        "read the environment": lambda: dict(os.environ),
        "import": lambda: __import__("sqlite3").__name__,
        "raise a bug": lambda: {"a": 1}["absent"],
        "die": lambda: os.abort(),
        "name its process": lambda: os.getpid(),
        "name a model that is not built": lambda: next((each.__name__ for each in _unbuilt(Model)), ""),
    }
    try:
        return Rendered(value=str(deeds[request.name]()))
    except (OSError, RuntimeError, ImportError) as error:
        return Rendered(value=f"refused: {type(error).__name__}")
