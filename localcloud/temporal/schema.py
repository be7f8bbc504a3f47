"""Creates Temporal's two databases and updates their schemas to the server's version, with Temporal's own SQL tool.

Run as `python -m localcloud.temporal.schema TOOL [--own FILE]`; the tool's variables (`SQL_HOST`, ...) name the server.
The tool cannot resume an interrupted run: the deployment's own databases (`--own`) are recreated until FILE exists,
which is created after a complete run. A user's databases are never dropped.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

SCHEMAS = "postgresql/v12"


def steps(database: str, *, recreated: bool) -> list[list[str]]:
    found: list[list[str]] = []
    for name, schema in ((database, "temporal"), (f"{database}_visibility", "visibility")):
        of_database = ["--database", name]
        if recreated:
            found.append([*of_database, "drop-database", "--force"])
        found += [
            [*of_database, "create-database"],
            [*of_database, "setup-schema", "--version", "0.0"],
            [*of_database, "update-schema", "--schema-name", f"{SCHEMAS}/{schema}"],
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Create Temporal's databases and update their schemas.")
    parser.add_argument("tool", type=Path)
    parser.add_argument("--own", type=Path)
    arguments = parser.parse_args()
    own: Path | None = arguments.own
    for step in steps(os.environ["SQL_DATABASE"], recreated=own is not None and not own.exists()):
        ended = subprocess.run([arguments.tool, *step], check=False)
        if ended.returncode != 0:
            sys.exit(f"`{arguments.tool.name} {' '.join(step)}` failed with {ended.returncode}")
    if own is not None:
        own.touch()


if __name__ == "__main__":
    main()
