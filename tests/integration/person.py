"""A person at a shell who types what a page says, with a home and a local deployment of the test's own.

`./run` is left out: the tests run in the environment that it makes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


class Person:
    """A person in a checkout; the deployment is where `perdure up` puts it by itself."""

    def __init__(self, project: Path, home: Path) -> None:
        self.project = project
        self._environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TEMPORAL_"))},
            "HOME": str(home),
            # Built once per computer, not per home.
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        }
        self._environ.pop("PERDURE_STATE", None)

    def type(self, text: str, *, fails: bool = False) -> str:
        """Type a command of the page; what it prints."""
        prelude = f"""
perdure() {{ {sys.executable} -m starters.cli.main "$@"; }}
[ ! -e ~/.local/state/perdure/local/env ] || . ~/.local/state/perdure/local/env
"""
        ran = subprocess.run(
            ["bash", "-c", prelude + text.removeprefix("./run ")],
            cwd=self.project,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert fails or ran.returncode == 0, f"{text}\n{ran.stdout}{ran.stderr}"
        return ran.stdout + ran.stderr
