from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from temporalio.client import Client

from domain.identity import Key, Kind
from engine.kube import BlockingKube, JsonObject, KubeApi
from engine.settings import Settings

OnWrite = Callable[[Key, Kind, JsonObject], None]


@dataclass(frozen=True)
class Clients:
    """`served` is the client of the cluster that has the Services and Nodes."""

    settings: Settings
    temporal: Client
    kube: KubeApi
    served: KubeApi
    _listeners: list[OnWrite] = field(default_factory=list)

    def on_write(self, listener: OnWrite) -> None:
        self._listeners.append(listener)

    def wrote(self, writer: Key, kind: Kind, answer: JsonObject) -> None:
        for listener in self._listeners:
            listener(writer, kind, answer)

    @cached_property
    def blocking(self) -> BlockingKube:
        return BlockingKube(self.kube, asyncio.get_running_loop())
