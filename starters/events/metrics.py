from __future__ import annotations

from prometheus_client import Counter, Gauge

from engine.metrics import Histogram

RECEIVED = Counter("perdure_events_received", "Messages received; a redelivered one counts again.", ["queue"])
REDELIVERED = Counter("perdure_events_redelivered", "Messages received more than once.", ["queue"])
MESSAGES = Counter("perdure_events_messages", "Messages by how they were handled.", ["queue", "verdict"])
EVENTS = Counter("perdure_events_handled", "Events by result, and messages without an event by reason.", ["outcome"])
DEAD = Counter(
    "perdure_events_dead_letters", "Messages moved to the dead-letter queue, by reason.", ["queue", "reason"]
)
FAILED_CALLS = Counter(
    "perdure_events_failed_calls", "Failed calls to SQS, or failed entries of batch calls.", ["queue", "call"]
)
HAND_OVERS = Counter("perdure_events_hand_overs", "Hand-overs to instances' workflows.", ["result"])
GROUP_WAKES = Counter("perdure_events_group_wakes", "Wakes sent to groups' workflows.")

# A Spot notice lasts two minutes; a hand-over takes tens of milliseconds.
LAG = Histogram(
    "perdure_events_lag_seconds",
    "From an event's own time until it is recorded and its label is written.",
    buckets=(0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600),
)
HANDLING = Histogram(
    "perdure_events_handling_seconds",
    "From the receipt of a message until the decision about it.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
IN_WORK = Gauge("perdure_events_in_work", "Messages in progress.", ["queue"])
OLDEST = Gauge("perdure_events_oldest_age_seconds", "Age of the oldest message received in the last minute.", ["queue"])
INDEXED = Gauge("perdure_events_indexed", "AWSMachines, AWSMachinePools and Nodes in the index.")
