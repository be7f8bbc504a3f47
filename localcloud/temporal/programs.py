"""A production Temporal's programs: the user's, those in the cache, or compiled from Temporal's own modules."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import platformdirs

from domain.model import Model
from localcloud.golang import build
from localcloud.golang.build import Recipe
from localcloud.progress import Narrator

MODULE = Path(__file__).parent
SERVER, SQL_TOOL, UI = "temporal-server", "temporal-sql-tool", "temporal-ui-server"
PACKAGES = {
    SERVER: "go.temporal.io/server/cmd/server",
    SQL_TOOL: "go.temporal.io/server/cmd/tools/sql",
    UI: "github.com/temporalio/ui-server/v2/cmd/server",
}
# Google's storage client is built without gRPC, as in Temporal's own builds; stack traces do not need DWARF.
FLAGS = (
    "-trimpath",
    "-buildvcs=false",
    "-mod=readonly",
    "-tags=disable_grpc_modules,grpcnotrace",
    "-gcflags=all=-dwarf=false",
)
CORE_MINUTES = 10
DISK_GB = 3
ASSETS = "PERDURE_LOCAL_TEMPORAL_PROGRAMS"


class Postgres(Model):
    programs: Path
    """The directory with `initdb` and `postgres`."""
    libraries: Path | None
    """The directory of PostgreSQL's unpacked libraries; None if PostgreSQL is installed."""


class ProductionTemporal(Model):
    server: Path
    sql_tool: Path
    ui: Path | None
    """None if the user's programs have no web UI."""
    postgres: Postgres | None
    """None if the user has named a database server."""
    url: str = ""
    """The URL of the user's database server; empty if the local deployment runs one."""


def cache_directory() -> Path:
    return platformdirs.user_cache_path("perdure") / "temporal"


def find_programs(narrator: Narrator, cache: Path | None = None) -> tuple[Path, Path, Path | None]:
    """Return the server, the SQL tool and the web UI, if any. Raises BuildError or ToolchainError."""
    named = _named_by_user(narrator)
    if named is not None:
        return named
    cache = cache or cache_directory()
    home = build.cached(recipe(), cache) or build.build(recipe(), cache, narrator)
    return home / SERVER, home / SQL_TOOL, home / UI


def recipe() -> Recipe:
    server, ui = versions()
    return Recipe(
        what=f"Temporal {server} and its web UI {ui}",
        name=f"{server}-ui-{ui}",
        module=MODULE,
        programs=PACKAGES,
        flags=FLAGS,
        linker_flags="-s -w",
        core_minutes=CORE_MINUTES,
        disk_gb=DISK_GB,
    )


def versions() -> tuple[str, str]:
    text = (MODULE / "go.mod").read_text()
    found = [
        re.search(rf"^\s*{re.escape(name)} (v\S+)", text, re.MULTILINE)
        for name in ("go.temporal.io/server", "github.com/temporalio/ui-server/v2")
    ]
    server, ui = (match[1] for match in found if match)
    return server, ui


def _named_by_user(narrator: Narrator) -> tuple[Path, Path, Path | None] | None:
    assets = os.environ.get(ASSETS)
    path = os.pathsep.join(filter(None, (assets, os.environ.get("PATH"))))
    found = {name: shutil.which(name, path=path) for name in PACKAGES}
    server, sql_tool, ui = (Path(place) if place else None for place in found.values())
    if server is None or sql_tool is None:
        if assets:
            missing = [name for name in (SERVER, SQL_TOOL) if found[name] is None]
            narrator.say(f"{ASSETS} is not used: neither it nor PATH has {', '.join(missing)}.")
        return None
    return server, sql_tool, ui
