from __future__ import annotations

from enum import StrEnum

from prometheus_client import Counter, Histogram

from domain.instances.actions import Because
from engine.clock import now

LABELS = Counter("perdure_instances_labels", "Labels written on AWSMachines and AWSMachinePools.", ["label"])
REACTIONS = Counter(
    "perdure_instances_reactions",
    "Reactions to instances that AWS reclaims, by cause and result.",
    ["reaction", "cause", "outcome"],
)
# A Spot notice leaves two minutes; a drain may take hours.
REACTION_SECONDS = Histogram(
    "perdure_instances_reaction_seconds",
    "Seconds from the receipt of an event to the end of a reaction to it.",
    ["reaction", "cause"],
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 15, 30, 60, 120, 300, 900, 3600, 14400),
)
NOTIFICATIONS = Counter(
    "perdure_instances_notifications",
    "Notifications of instances that AWS reclaims: sent, retried (the webhook failed for now), failed (given up).",
    ["outcome"],
)
REFUTED = Counter("perdure_instances_refuted", "Events whose cause AWS did not confirm.")
RESYNC = Counter(
    "perdure_instances_resync", "Instances that a sweep found to differ from their recorded state.", ["found"]
)


class Outcome(StrEnum):
    DONE = "done"
    WAITS = "waits"  # until its node group may lose another machine; tried again every 20 seconds
    INCOMPLETE = "incomplete"  # time was over, and Pods were left on the Node, or the replacement was not ready
    FORCED = "forced"  # time was over, and the remaining Pods were deleted
    REFUSED = "refused"  # no replacement could be requested before the deletion, or the instance was not terminated
    LATE = "late"  # Auto Scaling did not wait for the hook's completion any more


_UNTIMED = (Outcome.WAITS, Outcome.REFUSED, Outcome.LATE)


def reacted(reaction: str, because: Because | None, outcome: Outcome = Outcome.DONE, *, timed: bool = True) -> None:
    cause = because.sort if because else ""
    REACTIONS.labels(reaction, cause, outcome).inc()
    if timed and because and outcome not in _UNTIMED:
        REACTION_SECONDS.labels(reaction, cause).observe((now() - because.since).total_seconds())
