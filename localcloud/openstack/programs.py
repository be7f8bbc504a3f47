"""What the plan of an `up` has to know of OpenStack: where its environment, its schemas and its database server lie."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from domain.model import Model


class MariaDB(Model):
    """A database server that can be run where it lies."""

    program: Path
    share: Path
    """Its messages and the definitions of its own tables."""
    libraries: Path | None
    """What it needs beside the system's; none when it is installed."""


class OpenStackPrograms(Model):
    """All of it, built."""

    environment: Path
    """A virtual environment with the services of `openstack.lock`."""
    schemas: Path
    """A data directory of MariaDB with their empty tables."""
    mariadb: MariaDB

    @property
    def python(self) -> Path:
        """The interpreter that has the services."""
        return self.environment / "bin" / "python"


def cache_directory() -> Path:
    """Where builds are kept (XDG_CACHE_HOME on Linux)."""
    return platformdirs.user_cache_path("perdure") / "openstack"
