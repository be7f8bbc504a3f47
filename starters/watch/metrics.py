"""The watcher's metrics. The metrics of list and watch streams are in `engine.kube.reflector`."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

ECHOES = Counter("perdure_watch_echoes", "Changes by an object's own workflow, which wake no workflow.", ["kind"])
IGNORED = Counter("perdure_watch_ignored", "Events that changed nothing on which wakes depend.", ["kind"])
WAKES = Counter("perdure_watch_wakes", "Wakes that Temporal has accepted.", ["kind"])
LAST_EVENT_AGE = Gauge(
    "perdure_watch_last_event_age_seconds", "Seconds since the stream last sent something.", ["kind"]
)
UNSERVED = Gauge(
    "perdure_watch_unserved_seconds",
    "Seconds for which the API server has sent neither a list nor a stream; 0 while the stream runs.",
    ["kind"],
)
LAG = Gauge("perdure_watch_lag_seconds", "Seconds for which the oldest queued key has waited for its wake.", ["kind"])
QUEUE = Gauge("perdure_watch_queue_length", "Keys whose wake Temporal has not accepted yet.", ["kind"])
LEADER = Gauge("perdure_watch_leader", "1 while this watcher leads.")
