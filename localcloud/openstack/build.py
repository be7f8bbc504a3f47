"""Builds OpenStack's environment and empty schemas, once per computer: `find_programs` is the entry point.

A step is complete once its directory has a stamp; an interrupted step is repeated.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from localcloud.building import BuildError, lines_of, only_builder
from localcloud.openstack import configuration, database
from localcloud.openstack.programs import MariaDB, OpenStackPrograms, cache_directory
from localcloud.processes import end_all, identify, tethered
from localcloud.progress import Narrator

LOCK = Path(__file__).with_name("openstack.lock")
STAMP = "finished"

_SERVER_SECONDS = 60.0
# ML2 finds drivers through entry points; `perdure_openstack` has one, and its code is on PYTHONPATH.
_ENTRY_POINTS = """\
[neutron.ml2.mechanism_drivers]
every-host = perdure_openstack.network:EveryHost
"""
_DATABASES = ("keystone", "glance", "placement", "neutron", "nova_api", "nova_cell0", "nova")


def find_programs(narrator: Narrator, cache: Path | None = None) -> OpenStackPrograms:
    """Raises BuildError."""
    cache = cache or cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with only_builder(cache, "OpenStack", narrator):
        mariadb = database.find_mariadb(cache, narrator)
        home = cache / recipe()
        environment, schemas = home / "environment", home / "schemas"
        if not _is_finished(environment) or not _is_finished(schemas):
            narrator.say(
                "Building OpenStack 2026.2 (Keystone, Placement, Glance, Neutron, Nova), once for this computer: about "
                "2 minutes on 2 cores and 700 MB of disk."
            )
        if not _is_finished(environment):
            _make_environment(environment, narrator)
        programs = OpenStackPrograms(environment=environment, schemas=schemas / "data", mariadb=mariadb)
        if not _is_finished(schemas):
            _make_schemas(programs, schemas, narrator)
            narrator.say("Built; later runs start in seconds.")
    return programs


def is_built(cache: Path | None = None) -> bool:
    home = (cache or cache_directory()) / recipe()
    return _is_finished(home / "environment") and _is_finished(home / "schemas")


def recipe() -> str:
    """A digest of all that determines a build: the lock, the migrations and the interpreter."""
    digest = hashlib.sha256(LOCK.read_bytes())
    digest.update("\n".join(" ".join(step) for _, step in _migrations()).encode())
    digest.update(_ENTRY_POINTS.encode())
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"2026.2-python{version}-{platform.machine()}-{digest.hexdigest()[:8]}"


def _make_environment(home: Path, narrator: Narrator) -> None:
    shutil.rmtree(home, ignore_errors=True)
    for _ in _run([sys.executable, "-m", "venv", "--without-pip", str(home)]):
        pass
    total = len(re.findall(r"^[a-z0-9].*==", LOCK.read_text(), re.MULTILINE))
    command = [
        *(sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install"),
        *("--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--root-user-action", "ignore"),
        # `ovs` and `simplegeneric` exist as sources only; both are plain Python without a compiler.
        *("--prefer-binary", "--require-hashes", "-r", str(LOCK)),
    ]
    collected = 0
    for line in _run(command):
        if line.startswith("Collecting "):
            collected += 1
            narrator.advance("packages downloaded", min(collected, total), total)
        elif line.startswith("Installing collected packages"):
            narrator.say("  unpacking and compiling them")
    _write_entry_points(home)
    (home / STAMP).touch()


def _write_entry_points(environment: Path) -> None:
    (site,) = environment.glob("lib/python3*/site-packages")
    described = site / "perdure_openstack-1.dist-info"
    described.mkdir(exist_ok=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: perdure_openstack\nVersion: 1\n")
    (described / "entry_points.txt").write_text(_ENTRY_POINTS)


def _make_schemas(programs: OpenStackPrograms, home: Path, narrator: Narrator) -> None:
    shutil.rmtree(home, ignore_errors=True)
    data = home / "data"
    database.make_empty(programs.mariadb, data)
    with (
        tempfile.TemporaryDirectory(prefix="perdure-schemas-") as scratch,
        _server(programs.mariadb, data, Path(scratch) / "mariadb.sock", home / "server.log") as listening,
    ):
        layout = configuration.Layout(home=Path(scratch), socket=listening, urls=configuration.NOWHERE)
        configuration.write(layout, programs)
        variables = configuration.environment(layout, os.environ)
        migrations = _migrations()
        for done, (command, arguments) in enumerate(migrations):
            narrator.advance("schemas made", done, len(migrations))
            program = [str(programs.environment / "bin" / command), *_settings_of(command, layout.settings)]
            for _ in _run([*program, *arguments], variables):
                pass
        narrator.advance("schemas made", len(migrations), len(migrations))
    (home / STAMP).touch()


def _migrations() -> list[tuple[str, list[str]]]:
    """The commands of the migrations. The cells' connections are templates, which Nova fills in from nova.conf."""
    return [
        ("python", ["-m", "perdure_openstack.databases", *_DATABASES]),
        ("keystone-manage", ["db_sync"]),
        (
            "keystone-manage",
            [
                *("bootstrap", "--bootstrap-password", configuration.PASSWORD),
                *("--bootstrap-region-id", configuration.REGION),
            ],
        ),
        ("placement-manage", ["db", "sync"]),
        ("glance-manage", ["db_sync"]),
        ("neutron-db-manage", ["upgrade", "heads"]),
        ("nova-manage", ["api_db", "sync"]),
        ("nova-manage", ["cell_v2", "map_cell0", "--database_connection", _cell("nova_cell0")]),
        (
            "nova-manage",
            [
                *("cell_v2", "create_cell", "--name", "cell1", "--transport-url", "fake://"),
                *("--database_connection", _cell("nova")),
            ],
        ),
        ("nova-manage", ["db", "sync"]),
    ]


def _cell(name: str) -> str:
    return f"{{scheme}}://{{username}}@{{hostname}}/{name}?{{query}}"


def _settings_of(command: str, settings: Path) -> list[str]:
    files = {
        "keystone-manage": "keystone.conf",
        "placement-manage": "placement.conf",
        "glance-manage": "glance-api.conf",
        "neutron-db-manage": "neutron.conf",
        "nova-manage": "nova.conf",
    }
    return ["--config-file", str(settings / files[command])] if command in files else []


@contextlib.contextmanager
def _server(mariadb: MariaDB, data: Path, listening: Path, log: Path) -> Iterator[Path]:
    command = database.server(mariadb, data, listening, "--innodb-flush-method=nosync")
    with log.open("wb") as output:
        process = subprocess.Popen(
            tethered(command),
            env=database.environment(mariadb),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + _SERVER_SECONDS
        while not _accepts(listening):
            if process.poll() is not None or time.monotonic() > deadline:
                raise BuildError(f"{mariadb.program} does not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        yield listening
    finally:
        identity = identify(process.pid, "mariadbd")
        if identity is not None:
            end_all([identity], _SERVER_SECONDS)
        process.wait()


def _accepts(listening: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(listening))
        except OSError:
            return False
    return True


def _run(command: list[str], variables: Mapping[str, str] | None = None) -> Iterator[str]:
    called = " ".join([Path(command[0]).name, *command[1:4]])
    return lines_of(command, called=called, variables=variables)


def _is_finished(step: Path) -> bool:
    return (step / STAMP).is_file()
