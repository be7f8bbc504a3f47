"""A snapshot of Envoy's configuration, and the file that keeps it across restarts.

The file is read first, so an agent that starts without an API server serves what Envoy accepted last. Writes replace
the file by a rename, so it is always complete. An unreadable file, or one of another LoadBalancer, counts as missing:
without a snapshot Envoy keeps its configuration.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from pydantic import ValidationError

from domain.loadbalancers.envoy import CLUSTER_TYPE, LISTENER_TYPE
from domain.model import Model
from domain.schema import Document
from yawollet.messages import resources

log = logging.getLogger(__name__)

Resources = dict[str, Document]  # by name


class Snapshot(Model):
    version: int
    clusters: Resources
    listeners: Resources

    def of(self, type_url: str) -> Resources:
        return {CLUSTER_TYPE: self.clusters, LISTENER_TYPE: self.listeners}[type_url]


class _Saved(Model):
    load_balancer: str
    snapshot: Snapshot


class SnapshotFile:
    def __init__(self, path: Path, load_balancer: str) -> None:
        self._path = path
        self._load_balancer = load_balancer
        self._troubled = False

    def read(self) -> Snapshot | None:
        try:
            saved = _Saved.model_validate_json(self._path.read_bytes())
            for type_url in (CLUSTER_TYPE, LISTENER_TYPE):
                resources(type_url, saved.snapshot.of(type_url).values())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError, ValueError) as error:
            log.warning("%s cannot be read and is ignored: %s", self._path, error)
            return None
        if saved.load_balancer != self._load_balancer:
            log.warning("%s belongs to LoadBalancer %s and is ignored", self._path, saved.load_balancer)
            return None
        return saved.snapshot

    def write(self, snapshot: Snapshot) -> None:
        """A failure is logged once and does not stop serving."""
        saved = _Saved(load_balancer=self._load_balancer, snapshot=snapshot)
        beside = self._path.with_name(f"{self._path.name}.new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("w") as file:
                file.write(saved.model_dump_json())
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as error:
            if not self._troubled:
                log.warning(
                    "%s cannot be written, so a restarted agent must wait for the API server: %s", self._path, error
                )
            self._troubled = True
            return
        self._troubled = False
