"""The watcher's numbers, by kind."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

EVENTS = Counter("perdure_watch_events", "Watch events received.", ["kind"])
ECHOES = Counter("perdure_watch_echoes", "Changes that were an object's own workflow's and woke nobody.", ["kind"])
IGNORED = Counter("perdure_watch_ignored", "Events that changed nothing of interest.", ["kind"])
WAKES = Counter("perdure_watch_wakes", "Wakes that Temporal has.", ["kind"])
RELISTS = Counter("perdure_watch_relists", "Full lists read.", ["kind"])
RECONNECTS = Counter("perdure_watch_reconnects", "Watches that broke or fell silent.", ["kind"])
OBJECTS = Gauge("perdure_watch_objects", "Objects known.", ["kind"])
LAST_EVENT_AGE = Gauge("perdure_watch_last_event_age_seconds", "Seconds since the last sign of the stream.", ["kind"])
LAG = Gauge("perdure_watch_lag_seconds", "Age of the longest-waiting key.", ["kind"])
QUEUE = Gauge("perdure_watch_queue_length", "Keys whose wake Temporal does not have yet.", ["kind"])
LEADER = Gauge("perdure_watch_leader", "1 while this watcher leads.")
