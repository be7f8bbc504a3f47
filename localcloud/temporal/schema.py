"""Make Temporal's two databases and bring their schemas to the server's version, by Temporal's own SQL tool.

Run as `python -m localcloud.temporal.schema TOOL [--own FILE]`; the tool's variables (`SQL_HOST`, ...) say where.
The tool passes over what an interrupted run has made, tables and columns, but not rows that it has inserted. The
deployment's own databases (`--own`) are therefore made anew until FILE says that they were finished once; no server has
used them before. A user's databases are never dropped.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

SCHEMAS = "postgresql/v12"


def steps(database: str, *, anew: bool) -> list[list[str]]:
    """The tool's arguments, in order."""
    found: list[list[str]] = []
    for name, schema in ((database, "temporal"), (f"{database}_visibility", "visibility")):
        of_database = ["--database", name]
        if anew:
            found.append([*of_database, "drop-database", "--force"])
        found += [
            [*of_database, "create-database"],
            [*of_database, "setup-schema", "--version", "0.0"],
            [*of_database, "update-schema", "--schema-name", f"{SCHEMAS}/{schema}"],
        ]
    return found


def main() -> None:
    """Carry out the steps; exit as the first that fails."""
    parser = argparse.ArgumentParser(description="Make Temporal's databases.")
    parser.add_argument("tool", type=Path)
    parser.add_argument("--own", type=Path)
    arguments = parser.parse_args()
    own: Path | None = arguments.own
    for step in steps(os.environ["SQL_DATABASE"], anew=own is not None and not own.exists()):
        ended = subprocess.run([arguments.tool, *step], check=False)
        if ended.returncode != 0:
            sys.exit(f"`{arguments.tool.name} {' '.join(step)}` failed with {ended.returncode}")
    if own is not None:
        own.touch()


if __name__ == "__main__":
    main()
