"""The Kubernetes API, as plain JSON over one aiohttp session per process.

The generated client costs two to three times as much per request, and its typed objects would drop fields that they do
not know.
"""

from domain.built_in_kinds import BUILT_IN, CONFIG_MAP, EVENT, LEASE, NAMESPACE, NODE, POD, SECRET
from engine.kube.api import KubeApi, Listing, WatchEvent
from engine.kube.blocking import BlockingKube
from engine.kube.errors import Expired
from engine.kube.json import JsonObject
from engine.kube.leader_election import LeaderElection, LeadershipLost, leader_lock_holder, lease_is_live

__all__ = [
    "BUILT_IN",
    "CONFIG_MAP",
    "EVENT",
    "LEASE",
    "NAMESPACE",
    "NODE",
    "POD",
    "SECRET",
    "BlockingKube",
    "Expired",
    "JsonObject",
    "KubeApi",
    "LeaderElection",
    "LeadershipLost",
    "Listing",
    "WatchEvent",
    "leader_lock_holder",
    "lease_is_live",
]
