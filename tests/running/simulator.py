"""A simulated cloud as a process of its own, which a test can stop, kill and start again on the same state."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from tests.running.programs import command_line


@dataclass
class Simulator:
    """`name` is that of its files in `folder`."""

    module: ClassVar[str]
    name: ClassVar[str]

    folder: Path
    url: str = ""
    process: subprocess.Popen[str] | None = None

    def arguments(self) -> tuple[str, ...]:
        return ("--state", str(self.folder / f"{self.name}.db"))

    def environment(self) -> Mapping[str, str]:
        return os.environ

    def start(self) -> Self:
        """Returns when it has said its address."""
        command, file = command_line(self.module, *self.arguments()), self.folder / f"{self.name}.log"
        with file.open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment()
            )
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found is not None, file.read_text()
        self.url = found.group(0)
        return self

    def end(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(timeout=60)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None
