"""The Kubernetes API, as plain JSON over one aiohttp session per process.

`KubeApi` is the client; `connection.py` finds the cluster and keeps the credentials fresh with the `kubernetes`
package's own loaders; `errors.py` maps every refusal to `engine.errors`; `store.py` is the informer cache, and
`indexer.py` its indexes; `lease.py` elects a leader and sees whether another operator leads; `blocking.py` is the same
client for threads.

Why not the generated client: it costs two to three times as much per request (0.6 ms against 0.2), and typed objects
would drop the fields they do not know.
"""

from domain.built_in_kinds import BUILT_IN, CONFIG_MAP, EVENT, LEASE, NAMESPACE, NODE, POD, SECRET
from engine.kube.api import KubeApi, Listing, WatchEvent
from engine.kube.blocking import BlockingKube
from engine.kube.errors import Expired
from engine.kube.json import JsonObject
from engine.kube.lease import LeaderElection, LeadershipLost, leader_lock_holder, leader_lock_is_live, lease_is_live

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
    "leader_lock_is_live",
    "lease_is_live",
]
