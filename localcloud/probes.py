"""Readiness probes of services; each sends a request as a client would."""

from __future__ import annotations

import socket
import ssl
import struct
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_TIMEOUT_SECONDS = 3.0
# How much of an error's body is reported; Perdure's processes write one reason per line.
_LONGEST_REASON_BYTES = 500
# Version 3.0 of PostgreSQL's protocol.
_POSTGRES_PROTOCOL = 3 << 16
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Probe(Protocol):
    def failure(self) -> str | None:
        pass


@dataclass(frozen=True)
class HttpProbe:
    url: str
    words: tuple[str, ...] = ()
    authority: Path | None = None
    certificate: tuple[Path, Path] | None = None
    """The client certificate and its key, for a server that requires one."""

    def failure(self) -> str | None:
        context = ssl.create_default_context(cafile=str(self.authority)) if self.authority else None
        if context is not None and self.certificate is not None:
            context.load_cert_chain(*self.certificate)
        opener = _opener
        if context is not None:
            opener = urllib.request.build_opener(
                urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
            )
        try:
            with opener.open(self.url, timeout=_TIMEOUT_SECONDS) as answer:
                body = answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            with error:
                content = error.read(_LONGEST_REASON_BYTES).decode(errors="replace")
            reasons = "; ".join(line.strip() for line in content.splitlines() if line.strip())
            return f"{self.url} answers {error.code}" + (f": {reasons}" if reasons else "")
        except OSError as error:
            return f"{self.url} does not answer: {getattr(error, 'reason', error)}"
        absent = [word for word in self.words if word not in body]
        return f"{self.url} does not name {', '.join(absent)} yet" if absent else None


@dataclass(frozen=True)
class SocketProbe:
    path: Path

    def failure(self) -> str | None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_TIMEOUT_SECONDS)
            try:
                connection.connect(str(self.path))
                greeting = connection.recv(1)
            except OSError as error:
                return f"{self.path} does not answer: {error}"
        return None if greeting else f"{self.path} sends no greeting"


@dataclass(frozen=True)
class PostgresProbe:
    """A probe like `pg_isready`: PostgreSQL is ready for sessions once it sends an authentication request."""

    host: str
    port: int
    user: str

    def failure(self) -> str | None:
        place = f"{self.host}:{self.port}"
        parameters = b"".join(part.encode() + b"\0" for part in ("user", self.user, "database", "postgres", ""))
        startup = struct.pack("!ii", len(parameters) + 8, _POSTGRES_PROTOCOL) + parameters
        try:
            with socket.create_connection((self.host, self.port), timeout=_TIMEOUT_SECONDS) as connection:
                connection.sendall(startup)
                answer = connection.recv(_LONGEST_REASON_BYTES)
        except OSError as error:
            return f"{place} does not answer: {error}"
        if answer.startswith(b"R"):
            return None
        # An error has a type, a length, then fields of a letter and a text each; M is the message.
        message = next((part[1:] for part in answer[5:].split(b"\0") if part.startswith(b"M")), b"nothing")
        return f"{place} says: {message.decode(errors='replace')}"
