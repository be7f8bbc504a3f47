"""The OpenStack part of a plan: environment, schemas and database server."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from domain.model import Model


class MariaDB(Model):
    """A database server that runs from its directory."""

    program: Path
    share: Path
    """Its messages and the definitions of its own tables."""
    libraries: Path | None
    """What it needs beside the system's; none when it is installed."""


class OpenStackPrograms(Model):
    environment: Path
    """A virtual environment with the services of `openstack.lock`."""
    schemas: Path
    """A data directory of MariaDB with their empty tables."""
    mariadb: MariaDB

    @property
    def python(self) -> Path:
        """The interpreter of OpenStack's environment."""
        return self.environment / "bin" / "python"


def cache_directory() -> Path:
    """The cache for builds (XDG_CACHE_HOME on Linux)."""
    return platformdirs.user_cache_path("perdure") / "openstack"
