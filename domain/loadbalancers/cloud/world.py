"""A world with objects in an OpenStack project: what was seen of them, for what, and what steps have changed since.

The cluster is observed whenever the object is woken, the cloud only when the object is not what it was when the cloud
was last seen (`looks.py`), and after a step that failed. What a step brings is folded into what was seen.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple, Self

from domain.loadbalancers.cloud.changes import Brought
from domain.loadbalancers.object_world import ObjectKnown, ObjectWorld
from domain.loadbalancers.project import ProjectReference

IN_OPENSTACK = "openstack."  # how the activities there begin
LEAVING = "leaving"  # what the cloud was seen for, of an object that is being deleted


class CloudKnown(ObjectKnown):
    """What a workflow knows beside the custom resource; losing it costs a look at the cloud.

    Attributes:
        settled: what the cloud was found whole for, see `CloudWorld.look`.
        blocked_since: since when something in the cloud stands in the way that no call has refused.
        told: when the Event of this digest was written.
    """

    settled: str = ""
    blocked_since: datetime | None = None
    told: dict[str, datetime] = {}


class Judged(NamedTuple):
    """What was seen: whether nothing is left to do and the status says so, and what stands in the way."""

    whole: bool
    problem: str


class CloudWorld(ObjectWorld):
    """What the decision about a LoadBalancer or a machine sees.

    Attributes:
        cloud: the candidates in the cloud; None where they have not been seen.
        seen: what they were seen for; they may show less than there is if it is not `look`.
        seen_at: when.
        changes: how many steps have ended since the workflow began; a look during which one ends shows perhaps less.
        stale: a step has failed since, and may have had its effect.
    """

    cloud: Any = None
    seen: str = ""
    seen_at: datetime | None = None
    changes: int = 0
    stale: bool = False
    known: CloudKnown = CloudKnown()

    # --- what each kind says ---

    @property
    def look(self) -> str:
        """All of the object that its objects in the cloud rest on."""
        raise NotImplementedError

    @property
    def project(self) -> ProjectReference:
        """Where its objects in the cloud are."""
        raise NotImplementedError

    def judged(self) -> Judged | None:
        """What was seen; None where nothing is to be said of it."""
        raise NotImplementedError

    def after(self, brought: Brought) -> Any:
        """The cloud after a step."""
        raise NotImplementedError

    # --- events ---

    def recall(self, before: Self) -> Self:
        """The cloud stays as it was seen, unless a step has failed or something stands in the way there."""
        kept = ["changes"]
        if not (before.stale or before.known.blocked_since):
            kept += ["cloud", "seen", "seen_at"]
        return super().recall(before).model_copy(update={name: getattr(before, name) for name in kept})

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        """This world after a write of the object: for the cloud it is as it was."""
        world = super().written(patch, resource_version, gone=gone)
        if not world.exists:
            return world
        if self.seen == self.look:
            world = world.model_copy(update={"seen": world.look})
        settled = world.look if self.known.settled == self.look else self.known.settled
        return world.learn(settled=settled)._noted()

    def brought(self, brought: Brought) -> Self:
        """This world after a step in the cloud."""
        world = self.model_copy(update={"changes": self.changes + 1})
        if self.cloud is None:
            return world
        return world.model_copy(update={"cloud": self.after(brought)})._noted()

    def looked(self, cloud: Any, at: datetime) -> Self:
        """This world after a look at the cloud."""
        seen = {"cloud": cloud, "seen": self.look, "seen_at": at, "stale": False}
        return self.model_copy(update=seen)._noted()

    def _noted(self) -> Self:
        judged = self.judged() if self.cloud is not None and self.seen == self.look else None
        if judged is None:
            return self
        since = (self.known.blocked_since or self.seen_at) if judged.problem else None
        world = self
        if judged.whole:  # nothing is refused any more
            refusals = {slot: each for slot, each in self.refusals.items() if not slot.startswith(IN_OPENSTACK)}
            world = self.model_copy(update={"refusals": refusals})
        return world.learn(settled=self.look if judged.whole else "", blocked_since=since)
