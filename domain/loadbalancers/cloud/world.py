"""The observed state of an object that has cloud objects in an OpenStack project.

The cluster is observed at each wake, the cloud only if that is due (`observation_due.py`). Results of steps are folded
into the observation.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from domain.loadbalancers.cloud.folded_results import Brought
from domain.loadbalancers.object_world import ObjectMemory, ObjectWorld
from domain.loadbalancers.project import ProjectReference

IN_OPENSTACK = "openstack."  # prefix of OpenStack activities
LEAVING = "leaving"  # the fingerprint of an object that is being deleted


class CloudMemory(ObjectMemory):
    """What a lifecycle remembers about the cloud. If this is lost, the cloud is observed once more."""

    settled: str = ""  # the fingerprint (`CloudWorld.look`) for which the cloud was complete
    unanswered_at: datetime | None = None  # when a creation last had no answer
    blocked_since: datetime | None = None  # since when the cloud has had a problem other than a refused call


class CloudWorld(ObjectWorld):
    cloud: Any = None  # the cloud objects that may belong to the custom resource; None if not observed
    seen: str = ""  # the fingerprint for which `cloud` was observed; if `look` differs, `cloud` may be outdated
    seen_at: datetime | None = None
    changes: int = 0  # the number of completed steps; an observation during a step may be stale
    stale: bool = False  # a step has failed since the observation, and may have taken effect
    known: CloudMemory = CloudMemory()

    @property
    def look(self) -> str:
        """A fingerprint of all inputs of the cloud objects."""
        raise NotImplementedError

    @property
    def project(self) -> ProjectReference:
        return ProjectReference.of(self.resource)  # type: ignore[arg-type]

    @property
    def current(self) -> Any:
        """The cloud objects (`cloud`); None unless they were observed after the custom resource's last change."""
        return self.cloud if self.cloud is not None and self.seen == self.look else None

    @property
    def plan(self) -> Any:
        """The plan for the observed cloud objects; None without an observation, and for an object being deleted."""
        raise NotImplementedError

    def after(self, brought: Brought) -> Any:
        raise NotImplementedError

    def recall(self, before: Self) -> Self:
        """This world with the earlier observation of the cloud. The observation is dropped if a step has failed since,
        or if the cloud has a problem.
        """
        names = ["changes"]
        if not (before.stale or before.known.blocked_since):
            names += ["cloud", "seen", "seen_at"]
        return super().recall(before).model_copy(update={name: getattr(before, name) for name in names})

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        world = super().written(patch, resource_version, gone=gone)
        if not world.exists:
            return world
        if self.seen == self.look:
            world = world.model_copy(update={"seen": world.look})
        settled = world.look if self.known.settled == self.look else self.known.settled
        return world.learn(settled=settled)._noted()

    def brought(self, brought: Brought) -> Self:
        world = self.model_copy(update={"changes": self.changes + 1})
        if self.cloud is None:
            return world
        return world.model_copy(update={"cloud": self.after(brought)})._noted()

    def with_cloud(self, cloud: Any, at: datetime) -> Self:
        seen = {"cloud": cloud, "seen": self.look, "seen_at": at, "stale": False}
        return self.model_copy(update=seen)._noted()

    def _noted(self) -> Self:
        plan = self.plan if self.current is not None else None
        if plan is None:  # for a deletion the observation counts whatever the cloud lacks
            return self.learn(blocked_since=None) if self.resource.metadata.deleting else self
        since = (self.known.blocked_since or self.seen_at) if plan.problem else None
        world, whole = self, plan.settled and not plan.status
        if whole:  # earlier refusals no longer apply
            refusals = {slot: each for slot, each in self.refusals.items() if not slot.startswith(IN_OPENSTACK)}
            world = self.model_copy(update={"refusals": refusals})
        return world.learn(settled=self.look if whole else "", blocked_since=since)
