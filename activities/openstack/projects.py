"""The OpenStack projects that this process calls, by the Secrets that LoadBalancers name.

A Secret is read again after a minute, or after five seconds if Keystone has refused its credentials. A new
resourceVersion means new credentials with their own token. All Secrets of one project share its limits
(`call_limits.py`).
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from activities.openstack.call_limits import Guard
from activities.openstack.credentials import read_credentials
from activities.openstack.keystone_connection import CALLS_PER_PROJECT
from activities.openstack.session import Project
from domain.loadbalancers.project import ProjectReference
from engine.errors import Absent, Denied, Invalid
from engine.kube import SECRET, BlockingKube
from engine.kube.json import mapping, text
from engine.settings import Settings

NO_CREDENTIALS = "NoCredentials"

REREAD_SECONDS = 60.0
REREAD_REFUSED_SECONDS = 5.0


@dataclass(slots=True)
class _Known:
    read_at: float
    resource_version: str
    content: Mapping[str, object]
    projects: dict[str, Project]


class Projects:
    def __init__(self, kube: BlockingKube, settings: Settings, *, most: int = 1024) -> None:
        self._kube = kube
        self._settings = settings
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._guards: dict[tuple[str, ...], Guard] = {}

    def project(self, reference: ProjectReference) -> Project:
        """The project; raises Denied if its Secret does not exist, Invalid if the Secret is incomplete."""
        key = (reference.namespace, reference.secret)
        with self._lock:
            known = self._known.get(key)
            fresh = known is not None and not _stale(known, reference.project_id)
        read = None if fresh else self._read(reference)
        with self._lock:
            known = self._settled(key, read) if read is not None else self._known.get(key, known)
            assert known is not None  # noqa: S101 - either it was fresh or it was read
            if reference.project_id not in known.projects:
                known.projects[reference.project_id] = self._opened(reference, known)
            return known.projects[reference.project_id]

    def close(self) -> None:
        with self._lock:
            for known in self._known.values():
                _closed(known)
            self._known.clear()

    def _read(self, reference: ProjectReference) -> _Known:
        try:
            found = self._kube.get(SECRET, reference.namespace, reference.secret)
        except Absent as error:
            raise Denied(
                f"{reference.where} with an OpenStack project's credentials does not exist: create it",
                code=NO_CREDENTIALS,
            ) from error
        version = text(found, "metadata", "resourceVersion")
        return _Known(time.monotonic(), version, mapping(found, "data"), {})

    def _settled(self, key: tuple[str, str], read: _Known) -> _Known:
        """The known entry with its tokens if the Secret's version is unchanged; else `read`, which replaces it."""
        known = self._known.get(key)
        if known is not None and known.resource_version == read.resource_version:
            known.read_at = read.read_at
            read = known
        elif known is not None:
            _closed(known)
        self._known[key] = read
        self._known.move_to_end(key)
        while len(self._known) > self._most:
            _closed(self._known.popitem(last=False)[1])
        return read

    def _opened(self, reference: ProjectReference, known: _Known) -> Project:
        try:
            credentials = read_credentials(
                known.content, reference.where, project_id=reference.project_id, environment=os.environ
            )
        except Invalid:
            known.read_at = -math.inf  # a correction is noticed at once
            raise
        settings = self._settings
        guard = self._guards.setdefault(
            credentials.place,
            Guard(credentials.project, CALLS_PER_PROJECT, settings.worker_openstack_rate_per_project),
        )
        return Project(credentials, guard, settings)


def _stale(known: _Known, project_id: str) -> bool:
    project = known.projects.get(project_id)
    refused = project is not None and project.token.refused
    return time.monotonic() >= known.read_at + (REREAD_REFUSED_SECONDS if refused else REREAD_SECONDS)


def _closed(known: _Known) -> None:
    for project in known.projects.values():
        project.close()
