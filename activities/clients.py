"""What the activities of every area are made from."""

from __future__ import annotations

from dataclasses import dataclass

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
        blocking: `kube` for activities that run on a thread.
    """

    settings: Settings
    temporal: Client
    kube: KubeApi
    served: KubeApi
    blocking: BlockingKube
