"""Which Temporal a local deployment runs: `--temporal`, else PERDURE_LOCAL_TEMPORAL, else the development server."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from localcloud.progress import Narrator
from localcloud.temporal import postgres
from localcloud.temporal.programs import ProductionTemporal, cache_directory, find_programs

VARIABLE = "PERDURE_LOCAL_TEMPORAL"
DEVELOPMENT, POSTGRES = "development", "postgres"


class UnknownChoice(ValueError):  # noqa: N818
    pass


@dataclass(frozen=True)
class Database:
    host: str
    port: int
    user: str
    password: str
    name: str
    attributes: tuple[tuple[str, str], ...] = ()
    """The parameters of the URL's query, such as `sslmode`."""

    @property
    def visibility(self) -> str:
        return f"{self.name}_visibility"


def chosen(option: str | None) -> str:
    """Raises UnknownChoice if the value is invalid."""
    text = option or os.environ.get(VARIABLE) or DEVELOPMENT
    name, _, url = text.partition("=")
    if name not in (DEVELOPMENT, POSTGRES) or (url and name == DEVELOPMENT):
        raise UnknownChoice(f"--temporal and {VARIABLE} take {DEVELOPMENT}, {POSTGRES} or {POSTGRES}=URL; not {text!r}")
    if url:
        database_of(url)
    return text


def find(choice: str, narrator: Narrator) -> ProductionTemporal | None:
    """The production Temporal's programs; None if the choice is the development server.

    Raises BuildError or ToolchainError.
    """
    name, _, url = choice.partition("=")
    if name == DEVELOPMENT:
        return None
    server, sql_tool, ui = find_programs(narrator)
    found = None if url else postgres.find(cache_directory(), narrator)
    return ProductionTemporal(server=server, sql_tool=sql_tool, ui=ui, postgres=found, url=url)


def of(temporal: ProductionTemporal | None) -> str:
    if temporal is None:
        return DEVELOPMENT
    return f"{POSTGRES}={temporal.url}" if temporal.url else POSTGRES


def database_of(url: str) -> Database:
    """The parts of `postgres://user:password@host:port/name?sslmode=require`; raises UnknownChoice for other forms."""
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError as error:
        raise UnknownChoice(f"the database's URL cannot be read: {error}") from None
    if parts.scheme not in ("postgres", "postgresql") or not parts.hostname or not parts.username:
        raise UnknownChoice("the database's URL is not of the form postgres://USER:PASSWORD@HOST:PORT/NAME")
    return Database(
        host=parts.hostname,
        port=port,
        user=unquote(parts.username),
        password=unquote(parts.password or ""),
        name=unquote(parts.path.strip("/")) or "temporal",
        attributes=tuple(parse_qsl(parts.query)),
    )
