"""What the activities of every area are made from."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property

from temporalio.client import Client

from engine.kube import BlockingKube, KubeApi
from engine.settings import Settings


@dataclass(frozen=True)
class Clients:
    """One per worker.

    Attributes:
        settings: of the process.
        temporal: the connection to Temporal.
        kube: the cluster with the custom resources.
        served: the cluster whose Services and Nodes are served; mostly the same.
    """

    settings: Settings
    temporal: Client
    kube: KubeApi
    served: KubeApi

    @cached_property
    def blocking(self) -> BlockingKube:
        """`kube` for activities that run on a thread; asked for within the worker's event loop."""
        return BlockingKube(self.kube, asyncio.get_running_loop())
