from __future__ import annotations

from pathlib import Path

import platformdirs

from domain.model import Model


class MariaDB(Model):
    program: Path
    share: Path
    """The directory with MariaDB's messages and the definitions of its system tables."""
    libraries: Path | None
    """The directory of MariaDB's unpacked libraries; None if MariaDB is installed."""


class OpenStackPrograms(Model):
    environment: Path
    """A virtual environment with the services of `openstack.lock`."""
    schemas: Path
    """A data directory of MariaDB with the services' empty tables."""
    mariadb: MariaDB

    @property
    def python(self) -> Path:
        return self.environment / "bin" / "python"


def cache_directory() -> Path:
    return platformdirs.user_cache_path("perdure") / "openstack"
