"""Which Pods of a Node a drain evicts, and how long it waits for them.

As with kubectl's drain, Pods of DaemonSets, mirror Pods and ended Pods stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from domain.decision import earliest
from domain.instances.constants import DO_NOT_DISRUPT
from domain.instances.interruption_policy import Budgets, Draining
from domain.resource import KubeModel, ObjectMeta, timestamp

# A Pod that is overdue by this much is unlikely to end by itself: a finalizer keeps it, or its kubelet is unreachable.
_OVERDUE = timedelta(seconds=30)
# The longest wait for a Pod whose kubelet is unreachable: else a lifecycle hook would be held for hours. Cluster API,
# too, waits five minutes.
_UNREACHABLE = timedelta(minutes=5)
# In seconds. A Pod may ask for more than a timedelta can hold.
_LONGEST_GRACE = 10**9
_MIRROR_POD = "kubernetes.io/config.mirror"
_ENDED = ("Succeeded", "Failed")


class PodSpec(KubeModel):
    termination_grace_period_seconds: int = 30  # Kubernetes' default


class PodStatus(KubeModel):
    phase: str = ""


class Pod(KubeModel):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def evictable(self) -> bool:
        meta = self.metadata
        stays = _MIRROR_POD in meta.annotations or any(each.kind == "DaemonSet" for each in meta.owner_references)
        return not stays and self.status.phase not in _ENDED

    @property
    def grace(self) -> timedelta:
        given = 0 if self.metadata.deleting else self.spec.termination_grace_period_seconds
        return timedelta(seconds=min(given, _LONGEST_GRACE))

    @property
    def request_not_to_disrupt(self) -> str:
        """A message if an annotation asks not to disrupt the Pod; empty otherwise."""
        asks = next((name for name in DO_NOT_DISRUPT if self.metadata.annotations.get(name) == "true"), "")
        return f"Pod {self.name} asks not to be disrupted ({asks})" if asks else ""

    def overdue(self, now: datetime) -> str:
        ends = self.metadata.deletion_timestamp
        if ends is None or now - ends < _OVERDUE:
            return ""
        finalizers = ", ".join(self.metadata.finalizers)
        waits = f", and has the finalizers {finalizers}" if finalizers else ""
        return f"Pod {self.name} should have ended at {timestamp(ends)}{waits}"

    def given_up(self, now: datetime) -> bool:
        """Whether the drain of a Node whose kubelet is unreachable stops waiting for the Pod."""
        ends = self.metadata.deletion_timestamp
        return ends is not None and now - ends > _UNREACHABLE


def end_of_drain(how: Draining, since: datetime, until: datetime | None, left: Sequence[Pod]) -> datetime | None:
    """When the drain's time is over; None if the time is unlimited.

    With `Force`, the remaining Pods are deleted at that time. That time is earlier than `until` by the Pods' longest
    grace period, but at most by half of the time from `since` to `until`.
    """
    if until is not None and how.budgets is Budgets.FORCE:
        grace = max(pod.grace for pod in left) if how.pod_grace is None else how.pod_grace
        until -= min(grace, max(until - since, timedelta()) / 2)
    return earliest([until, since + how.node_grace if how.node_grace is not None else None])
