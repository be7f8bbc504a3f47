"""The store: all tenants in one SQLite file, with one transaction per call, one call at a time.

Committed writes survive the death of the process. A power failure may lose the last writes.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from localcloud.threescale import tables
from localcloud.threescale.answers import Page
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.tables import TABLES, first_id

_COMMON = "born REAL NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, attributes TEXT NOT NULL"


@dataclass(frozen=True)
class Record:
    table: str
    values: Mapping[str, JsonValue]

    def __getitem__(self, name: str) -> JsonValue:
        return self.values.get(name)

    @property
    def id(self) -> int:
        return self.number("id")

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return "" if value is None else str(value)

    def number(self, name: str) -> int:
        value = self.values.get(name)
        return int(value) if isinstance(value, int | float | str) else 0

    def object(self, name: str) -> JsonObject:
        value = self.values.get(name)
        return value if isinstance(value, dict) else {}

    def array(self, name: str) -> list[JsonValue]:
        value = self.values.get(name)
        return value if isinstance(value, list) else []


class Store:
    """Records by table. In a condition, None matches records whose field is unset."""

    def __init__(self, path: Path | str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self.clock_skew_seconds = 0.0
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "busy_timeout=5000"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._create()
        self._columns = {
            table: {row["name"] for row in self._connection.execute(f"PRAGMA table_info({table})")} for table in TABLES
        }

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def insert(self, table: str, **values: JsonValue) -> Record:
        columns, attributes = self._split(table, values)
        moment = self.moment()
        row = {"created_at": moment, "updated_at": moment} | columns
        row |= {"born": time.time(), "attributes": json.dumps(attributes)}
        places = ", ".join("?" * len(row))
        cursor = self._connection.execute(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})",  # noqa: S608 - names come from the tables
            tuple(row.values()),
        )
        assert cursor.lastrowid is not None
        return self.get(table, cursor.lastrowid)

    def update(self, record: Record, **changes: JsonValue) -> Record:
        """Change the record. None unsets an attribute. `updated_at` changes only if a value differs."""
        changes = {name: value for name, value in changes.items() if record[name] != value}
        if not changes:
            return record
        columns, attributes = self._split(record.table, changes)
        stored = json.loads(
            self._connection.execute(
                f"SELECT attributes FROM {record.table} WHERE id = ?",  # noqa: S608
                (record.id,),
            ).fetchone()[0]
        )
        row = {"updated_at": self.moment()} | columns | {"attributes": json.dumps(stored | attributes)}
        assignments = ", ".join(f"{name} = ?" for name in row)
        self._connection.execute(
            f"UPDATE {record.table} SET {assignments} WHERE id = ?",  # noqa: S608
            (*row.values(), record.id),
        )
        return self.get(record.table, record.id)

    def delete(self, record: Record) -> None:
        self._connection.execute(f"DELETE FROM {record.table} WHERE id = ?", (record.id,))  # noqa: S608

    def get(self, table: str, identifier: int) -> Record:
        found = self.find(table, id=identifier)
        if found is None:
            raise LookupError(f"no {identifier} among {table}")
        return found

    def find(self, table: str, **where: JsonValue) -> Record | None:
        found = self.all(table, **where)
        return found[0] if found else None

    def all(self, table: str, order: str = "id", /, **where: JsonValue) -> list[Record]:
        condition, arguments = self._condition(table, where)
        statement = f"SELECT * FROM {table} WHERE {condition} ORDER BY {order}"  # noqa: S608
        return [_record(table, row) for row in self._connection.execute(statement, arguments)]

    def page(
        self, table: str, page: Page, born_before: float | None = None, **where: JsonValue
    ) -> tuple[list[Record], Page]:
        condition, arguments = self._condition(table, where)
        if born_before is not None:
            condition, arguments = f"{condition} AND born <= ?", [*arguments, born_before]
        total = self._connection.execute(f"SELECT count(*) FROM {table} WHERE {condition}", arguments).fetchone()[0]  # noqa: S608
        statement = f"SELECT * FROM {table} WHERE {condition} ORDER BY id LIMIT ? OFFSET ?"  # noqa: S608
        rows = self._connection.execute(statement, [*arguments, page.size, (page.number - 1) * page.size])
        return [_record(table, row) for row in rows], Page(page.number, page.size, total)

    def count(self, table: str, **where: JsonValue) -> int:
        condition, arguments = self._condition(table, where)
        row = self._connection.execute(f"SELECT count(*) FROM {table} WHERE {condition}", arguments).fetchone()  # noqa: S608
        return int(row[0])

    def shift(self, table: str, owner: Mapping[str, JsonValue], first: int, last: int | None, by: int) -> None:
        condition, arguments = self._condition(table, owner)
        end, bounds = ("", [first]) if last is None else (" AND position <= ?", [first, last])
        self._connection.execute(
            f"UPDATE {table} SET position = position + ? WHERE {condition} AND position >= ?{end}",  # noqa: S608
            [by, *arguments, *bounds],
        )

    def purge(self, table: str, deleted_before: float) -> None:
        self._connection.execute(f"DELETE FROM {table} WHERE deleted <= ?", (deleted_before,))  # noqa: S608

    def setting(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_setting(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)", (name, value))

    def moment(self) -> str:
        return datetime.fromtimestamp(time.time() + self.clock_skew_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _create(self) -> None:
        with self.transaction():
            self._connection.execute("CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            for table, body in TABLES.items():
                columns, constraints = _parted(body)
                parts = ", ".join(filter(None, (columns, _COMMON, constraints)))
                self._connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {table} (id INTEGER PRIMARY KEY AUTOINCREMENT, {parts})"
                )
                self._connection.execute(
                    "INSERT INTO sqlite_sequence (name, seq) SELECT ?, ?"
                    " WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)",
                    (table, first_id(table) - 1, table),
                )
            for statement in tables.INDEXES:
                self._connection.execute(statement)

    def _split(self, table: str, values: Mapping[str, JsonValue]) -> tuple[dict[str, JsonValue], JsonObject]:
        columns = {name: value for name, value in values.items() if name in self._columns[table]}
        return columns, {name: value for name, value in values.items() if name not in self._columns[table]}

    def _condition(self, table: str, where: Mapping[str, JsonValue]) -> tuple[str, list[JsonValue]]:
        unknown = set(where) - self._columns[table]
        assert not unknown, f"{table} has no column {unknown}"
        parts = [f"{name} IS NULL" if value is None else f"{name} = ?" for name, value in where.items()]
        return " AND ".join(parts or ["1"]), [value for value in where.values() if value is not None]


def _record(table: str, row: sqlite3.Row) -> Record:
    values = {name: row[name] for name in row.keys() if name != "attributes"}  # noqa: SIM118 - a row is not a mapping
    return Record(table, json.loads(row["attributes"]) | values)


def _parted(body: str) -> tuple[str, str]:
    """Columns and constraints are separated, because SQLite wants constraints after all columns."""
    columns, found, constraints = body.partition("UNIQUE (")
    return columns.strip().rstrip(","), f"{found}{constraints}".strip()
