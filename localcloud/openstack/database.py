"""MariaDB for OpenStack: the system's, else Debian's packages unpacked into the cache, without root.

The server listens only on a Unix socket in a private directory, without passwords. `python -m
localcloud.openstack.database --schemas DIR --data DIR COMMAND...` gives a new deployment a copy of `build`'s schemas
and becomes the server.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from localcloud import debian
from localcloud.building import BuildError
from localcloud.openstack.programs import MariaDB
from localcloud.progress import Narrator

PACKAGE = "mariadb-server-core"

# sun_path of sockaddr_un holds 108 bytes including the final zero.
_LONGEST_SOCKET_PATH = 100
_SYSTEM_TABLES = ("mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql")
_PLACES = ("/usr/sbin", "/usr/local/sbin", "/usr/libexec")


def find_mariadb(cache: Path, narrator: Narrator) -> MariaDB:
    """Raises BuildError."""
    path = os.pathsep.join((os.environ.get("PATH", ""), *_PLACES))
    installed = shutil.which("mariadbd", path=path)
    if installed is not None:
        return _described(Path(installed).resolve(), None)
    home = cache / "mariadb"
    if not home.is_dir():
        narrator.say(f"No mariadbd on PATH: unpacking Debian's {PACKAGE} (8 MB) into the cache.")
        debian.unpack(PACKAGE, home, proof=["usr/sbin/mariadbd", "--no-defaults", "--version"])
    return _described(home / "usr" / "sbin" / "mariadbd", debian.libraries(home))


def environment(mariadb: MariaDB) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MYSQL", "MARIADB"))}
    if mariadb.libraries is not None:
        variables["LD_LIBRARY_PATH"] = str(mariadb.libraries)
    return variables


def server(mariadb: MariaDB, data: Path, socket: Path, *options: str) -> list[str]:
    """The server's command line. A commit survives a crash of the server and, after a second, a power failure."""
    return [
        *_common(mariadb, data),
        *(f"--socket={socket}", f"--pid-file={data}/mariadbd.pid", "--skip-networking", "--skip-grant-tables"),
        *("--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=128M", "--skip-log-bin"),
        # Level 2 would log every probe.
        *("--max-connections=500", "--performance-schema=off", "--log-warnings=1", *options),
    ]


def make_empty(mariadb: MariaDB, data: Path) -> None:
    data.mkdir(parents=True)
    script = "create database mysql;\nuse mysql;\n"
    script += "".join((mariadb.share / name).read_text() for name in _SYSTEM_TABLES)
    command = [*_common(mariadb, data), "--bootstrap", "--log-warnings=0", "--max-allowed-packet=8M"]
    result = subprocess.run(
        [*command, "--innodb-flush-method=nosync"],
        input=script,
        env=environment(mariadb),
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise BuildError(f"{mariadb.program} could not create its tables:\n{result.stderr[-2000:]}")


def socket_of(data: Path) -> Path:
    """The path of the socket: beside the data, or in a private directory if that path is too long."""
    beside = data / "mariadb.sock"
    if len(os.fsencode(beside)) <= _LONGEST_SOCKET_PATH:
        return beside
    name = hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
    runtime = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(runtime) / f"perdure-{os.getuid()}-{name}" / "mariadb.sock"


def _common(mariadb: MariaDB, data: Path) -> list[str]:
    return [
        *(str(mariadb.program), "--no-defaults"),
        *(("--user=root",) if os.getuid() == 0 else ()),  # it refuses to run as root unless asked to
        *(f"--basedir={mariadb.share.parent.parent}", f"--lc-messages-dir={mariadb.share}"),
        *(f"--datadir={data}", "--innodb-log-file-size=32M"),
    ]


def _described(program: Path, libraries: Path | None) -> MariaDB:
    shares = [program.parent.parent / "share" / name for name in ("mysql", "mariadb")]
    share = next((place for place in shares if (place / _SYSTEM_TABLES[0]).is_file()), None)
    if share is None:
        raise BuildError(f"{program} comes without {_SYSTEM_TABLES[0]}; looked in {', '.join(map(str, shares))}")
    return MariaDB(program=program, share=share, libraries=libraries)


def _ensure_data(schemas: Path, data: Path) -> None:
    origin = data.with_name("made-from")
    if data.is_dir():
        if origin.read_text() != schemas.parent.name:
            sys.exit(f"{data} was made by another version of OpenStack; `perdure down --wipe` removes it")
        return
    half = data.with_name(f".{data.name}")
    shutil.rmtree(half, ignore_errors=True)
    shutil.copytree(schemas, half)
    origin.write_text(schemas.parent.name)
    half.rename(data)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run MariaDB on a copy of OpenStack's schemas.")
    parser.add_argument("--schemas", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    _ensure_data(arguments.schemas, arguments.data)
    arguments.socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.execv(arguments.command[0], arguments.command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main()
