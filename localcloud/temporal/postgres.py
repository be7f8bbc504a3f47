"""PostgreSQL for Temporal: the system's, else Debian's packages unpacked into the cache, which needs no root.

`python -m localcloud.temporal.postgres --data DIR --password FILE COMMAND...` creates the data directory if it does not
exist, and becomes the server.
"""

from __future__ import annotations

import argparse
import os
import pwd
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

from localcloud import debian
from localcloud.authority import write_private
from localcloud.building import BuildError
from localcloud.progress import Narrator
from localcloud.state import LOOPBACK
from localcloud.temporal.programs import Postgres

PACKAGE = "postgresql"
USER = "temporal"
# The oldest version that Temporal's schema supports.
OLDEST = 12
_PLACES = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin")
_ROOT = Path("/")


def find(cache: Path, narrator: Narrator, system: Path = _ROOT) -> Postgres:
    """Raises BuildError."""
    installed = shutil.which("initdb")
    places = [Path(installed).parent] if installed else []
    for pattern in _PLACES:
        places += sorted(system.glob(pattern), key=_version, reverse=True)
    for place in places:
        if (place / "postgres").is_file() and (place / "initdb").is_file() and _version(place.resolve()) >= OLDEST:
            return Postgres(programs=place, libraries=None)
    home = cache / "postgresql"
    if not home.is_dir():
        narrator.say(f"No PostgreSQL on this computer: unpacking Debian's {PACKAGE} (20 MB) into the cache.")
        # LLVM is for compiling queries, which is switched off; Perl for Debian's own commands.
        debian.unpack(PACKAGE, home, proof=(f"{_PLACES[0]}/postgres", "--version"), without=r"libllvm|lib.*-perl")
    unpacked = next(home.glob(_PLACES[0]), None)
    if unpacked is None:
        raise BuildError(f"{home} contains no server of PostgreSQL; remove it, and it is unpacked again")
    return Postgres(programs=unpacked, libraries=debian.libraries(home))


def environment(found: Postgres) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    if found.libraries is not None:
        variables["LD_LIBRARY_PATH"] = str(found.libraries)
    return variables


def server(found: Postgres, data: Path, port: int, *, fsync: bool) -> list[str]:
    """The server's command line. Without fsync a commit survives a crash of the server, but not of the machine."""
    settings = {
        "port": port,
        "listen_addresses": LOOPBACK,
        "unix_socket_directories": "",
        "max_connections": 200,
        "jit": "off",
        # Debian's server reads the system's time zones, which may be missing.
        "timezone": "GMT",
        "log_timezone": "GMT",
        **({} if fsync else {"fsync": "off", "full_page_writes": "off"}),
    }
    assigned = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return [str(found.programs / "postgres"), "-D", str(data), *assigned]


def password(file: Path) -> str:
    if not file.is_file():
        write_private(file, secrets.token_urlsafe(24).encode())
    return file.read_text()


def as_nobody() -> list[str]:
    """The command prefix that runs PostgreSQL without privileges, since it refuses root; empty if we are not root."""
    if os.geteuid() != 0:
        return []
    nobody = pwd.getpwnam("nobody")
    # It keeps one capability, to enter root's directories.
    return [
        *("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"),
        *("--inh-caps=-all,+dac_override", "--ambient-caps=-all,+dac_override", "--pdeathsig=keep"),
    ]


def _version(place: Path) -> int:
    """The major version in a path of Debian's or Red Hat's programs; `sys.maxsize` if the path has no version."""
    match = re.search(r"postgresql/(\d+)/bin$|pgsql-(\d+)/bin$", str(place))
    return int(match[1] or match[2]) if match else sys.maxsize


def _ensure_data(programs: Path, data: Path, password_file: Path) -> None:
    if data.is_dir():
        drop_stale_lock(data)
        return
    half = data.with_name(f".{data.name}")
    shutil.rmtree(half, ignore_errors=True)
    command = [
        *as_nobody(),
        *(str(programs / "initdb"), "--pgdata", str(half), "--username", USER, "--pwfile", str(password_file)),
        *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"),
    ]
    subprocess.run(command, check=True)
    half.rename(data)


def drop_stale_lock(data: Path) -> None:
    """Remove a killed server's pid file if another program has the pid now; otherwise the server would not start."""
    lock = data / "postmaster.pid"
    if not lock.is_file():
        return
    try:
        holder = Path(f"/proc/{int(lock.read_text().split()[0])}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError, ValueError, IndexError):
        return
    if holder != "postgres":
        lock.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description="Run PostgreSQL for Temporal.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--password", type=Path, required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    _ensure_data(Path(arguments.command[0]).parent, arguments.data, arguments.password)
    command = [*as_nobody(), *arguments.command]
    os.execvp(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
