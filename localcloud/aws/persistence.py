"""Durable state: moto's backends in a SQLite file, saved in chunks (an account and region) as they change.

A SIGKILL loses at most the changes of the last two seconds. A reference to a backend is pickled as its name, since
backends refer to each other.
"""

from __future__ import annotations

import copyreg
import io
import json
import logging
import pickle
import sqlite3
import threading
import time
from collections import ChainMap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.bindings._rust import openssl
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_der_private_key
from moto import backends as moto_backends
from moto.core.base_backend import AccountSpecificBackend, BackendDict, BaseBackend

from localcloud.aws import organizations, runtime
from localcloud.aws.call import Chunk
from localcloud.aws.contract import ClockReading, Config, Fault
from localcloud.aws.events_contract import EventFault

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.75
_FORMAT = 1
_PRIVATE_KEY_TYPES = (openssl.rsa.RSAPrivateKey, openssl.ec.ECPrivateKey)
_SCHEMA = (
    "create table if not exists chunk "
    "(account text, region text, services text not null, body blob not null, primary key (account, region))",
    "create table if not exists shared (service text primary key, body blob not null)",
    "create table if not exists about (name text primary key, value text not null)",
)


class UnreadableStateError(Exception):
    pass


class StateFile:
    """Saves changes in a thread of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.saved_at: float | None = None  # the real time of the last save
        self.warnings: list[str] = []  # for a person: a file moved aside, services that could not be saved
        self._dirty: set[Chunk] = set()
        self._about_dirty = False
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._save_again_and_again, name="state", daemon=True)

    def load(self) -> bool:
        # A kill before the first save leaves an empty file.
        if not self.path.exists() or self.path.stat().st_size == 0:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return False
        try:
            with runtime.MOTO:
                self._load()
        except Exception as error:  # whatever the error, the whole file is moved aside
            self._set_aside(error)
            return False
        return True

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self.save()

    def changed(self, chunks: set[Chunk]) -> None:
        with self._lock:
            self._dirty |= chunks
        self._wake.set()

    def settings_changed(self) -> None:
        with self._lock:
            self._about_dirty = True
        self._wake.set()

    def save(self) -> None:
        with self._write_lock:
            # Requests wait during pickling, so that the saved chunks are consistent.
            with runtime.MOTO:
                with self._lock:
                    dirty, self._dirty = self._dirty, set()
                    about, self._about_dirty = self._about_dirty, False
                if not dirty and not about:
                    return
                rows = [self._pickle_chunk(*chunk) for chunk in sorted(dirty)]
                shared = [(name, pickle.dumps(extras)) for name, extras in _shared_attributes().items()]
                about_rows = list(_about().items())
            self._write(rows, shared, about_rows)
            self.saved_at = time.time()

    def mark_everything(self) -> None:
        self.changed({(account, region) for _service, account, region, _backend in _every_backend()})
        self.settings_changed()

    def _save_again_and_again(self) -> None:
        while not self._stop.is_set():
            self._wake.wait()
            self._wake.clear()
            self._stop.wait(_PAUSE_SECONDS)
            try:
                self.save()
            except Exception:
                log.exception("state could not be saved to %s; trying again", self.path)
                self._warn("the last attempt to save the state failed")
                with self._lock:
                    self._about_dirty = True
                self._stop.wait(5)
                self.mark_everything()

    def _write(
        self,
        chunks: list[tuple[str, str, str, bytes]],
        shared: list[tuple[str, bytes]],
        about: list[tuple[str, str]],
    ) -> None:
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            connection.execute("begin immediate")
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.executemany("insert or replace into chunk values (?, ?, ?, ?)", chunks)
            connection.executemany("insert or replace into shared values (?, ?)", shared)
            connection.executemany("insert or replace into about values (?, ?)", about)
            connection.execute("commit")
        finally:
            connection.close()

    def _pickle_chunk(self, account: str, region: str) -> tuple[str, str, str, bytes]:
        attributes: dict[str, dict[str, Any]] = {}
        for service, backends in _backend_dicts().items():
            regional = dict.get(backends, account)
            backend = dict.get(regional, region) if regional is not None else None
            if backend is not None:
                attributes[service] = backend.__dict__
        try:
            body = _dumps(attributes)
        except Exception:
            attributes = {service: own for service, own in attributes.items() if self._can_pickle(service, own)}
            body = _dumps(attributes)
        return account, region, json.dumps(sorted(attributes)), body

    def _can_pickle(self, service: str, attributes: dict[str, Any]) -> bool:
        try:
            _dumps(attributes)
        except Exception as error:
            self._warn(f"{service} cannot be saved and is lost at a restart: {error}")
            return False
        return True

    def _load(self) -> None:
        connection = sqlite3.connect(self.path)
        try:
            verdict = connection.execute("pragma quick_check").fetchone()[0]
            if verdict != "ok":
                raise UnreadableStateError(verdict)
            about = dict(connection.execute("select name, value from about").fetchall())
            rows = connection.execute("select account, region, services, body from chunk").fetchall()
            shared = connection.execute("select service, body from shared").fetchall()
        finally:
            connection.close()
        if about.get("format") != str(_FORMAT):
            raise UnreadableStateError(f"it has format {about.get('format')}, this version reads format {_FORMAT}")
        config, reading = Config.model_validate_json(about["config"]), ClockReading.model_validate_json(about["clock"])
        faults = [Fault.model_validate(fault) for fault in json.loads(about["faults"])]
        event_faults = [EventFault.model_validate(fault) for fault in json.loads(about.get("event_faults", "[]"))]
        for account, region, services, _body in rows:
            for service in json.loads(services):
                _empty_backend(service, account, region)
        for account, region, _services, body in rows:
            for service, attributes in pickle.loads(body).items():  # noqa: S301 - our own file
                _empty_backend(service, account, region).__dict__.update(attributes)
        for service, body in shared:
            _backend_dict(service).__dict__.update(pickle.loads(body))  # noqa: S301 - our own file
        runtime.set_config(config)
        runtime.clock.restore(reading, float(about["saved_at"]))
        runtime.faults.restore(faults)
        runtime.event_faults.restore(event_faults)
        self.saved_at = float(about["saved_at"])

    def _set_aside(self, error: Exception) -> None:
        aside = self.path.with_name(f"{self.path.name}.unreadable-{time.strftime('%Y%m%d-%H%M%S')}")
        self.path.rename(aside)
        journal = self.path.with_name(self.path.name + "-journal")
        if journal.exists():
            journal.rename(aside.with_name(aside.name + "-journal"))
        for backends in _backend_dicts().values():
            backends.clear()
        self._warn(
            f"the saved state could not be read ({error}); it was set aside as {aside.name}, the cloud starts empty"
        )

    def _warn(self, warning: str) -> None:
        log.warning("%s", warning)
        if warning not in self.warnings:
            self.warnings.append(warning)


def _about() -> dict[str, str]:
    return {
        "format": str(_FORMAT),
        "config": runtime.config().model_dump_json(),
        "clock": runtime.clock.reading().model_dump_json(),
        "faults": json.dumps([fault.model_dump(mode="json") for fault in runtime.faults.report()]),
        "event_faults": json.dumps([fault.model_dump(mode="json") for fault in runtime.event_faults.report()]),
        "saved_at": str(time.time()),
        "organization": organizations.of_payer().org.id if organizations.of_payer().org else "",  # type: ignore[union-attr]
    }


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.dispatch_table = ChainMap[type, Any](_reducers(), copyreg.dispatch_table)


def _dumps(attributes: object) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer).dump(attributes)
    return buffer.getvalue()


def _reducers() -> dict[type, Callable[[Any], Any]]:
    reducers: dict[type, Callable[[Any], Any]] = {
        type(threading.Lock()): lambda _lock: (threading.Lock, ()),
        type(threading.RLock()): lambda _lock: (threading.RLock, ()),
        AccountSpecificBackend: lambda regional: (_regional_backends, (regional.service_name, regional.account_id)),
    }
    for key_type in _PRIVATE_KEY_TYPES:
        reducers[key_type] = _reduce_private_key
    for service, backends in _backend_dicts().items():
        reducers[backends.backend] = _reducer_of(service)
        reducers[type(backends)] = lambda found: (_backend_dict, (found.service_name,))
    return reducers


def _reduce_private_key(key: Any) -> Any:
    encoded = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return load_der_private_key, (encoded, None)


def _reducer_of(service: str) -> Callable[[BaseBackend], Any]:
    return lambda backend: (_empty_backend, (service, backend.account_id, backend.region_name))


def _empty_backend(service: str, account: str, region: str) -> BaseBackend:
    regional: AccountSpecificBackend[Any] = _backend_dict(service)[account]
    backend: BaseBackend | None = dict.get(regional, region)
    if backend is None:
        kind: type[BaseBackend] = regional.backend
        backend = kind.__new__(kind)
        dict.__setitem__(regional, region, backend)
    return backend


def _regional_backends(service: str, account: str) -> AccountSpecificBackend[Any]:
    return _backend_dict(service)[account]


def _backend_dict(service: str) -> BackendDict[Any]:
    loaded = _backend_dicts().get(service)
    if loaded is not None:
        return loaded
    found: BackendDict[Any] = moto_backends.get_backend(service)  # type: ignore[call-overload]
    return found


def _backend_dicts() -> dict[str, BackendDict[Any]]:
    instances: list[BackendDict[Any]] = list(getattr(BackendDict, "_instances"))  # noqa: B009 - generic class variable
    return {backends.service_name: backends for backends in instances}


def _every_backend() -> list[tuple[str, str, str, BaseBackend]]:
    return [
        (service, account, region, backend)
        for service, backends in _backend_dicts().items()
        for account, regional in list(dict.items(backends))
        for region, backend in list(dict.items(regional))
    ]


_OWN_ATTRIBUTES = frozenset({"backend", "service_name", "_use_boto3_regions", "_additional_regions", "_id"})


def _shared_attributes() -> dict[str, dict[str, Any]]:
    return {
        service: extras
        for service, backends in _backend_dicts().items()
        if (extras := {k: v for k, v in backends.__dict__.items() if k not in _OWN_ATTRIBUTES})
    }
