from __future__ import annotations

from pathlib import Path

import platformdirs

from domain.model import Model


class MariaDB(Model):
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
        return self.environment / "bin" / "python"


def cache_directory() -> Path:
    return platformdirs.user_cache_path("perdure") / "openstack"
