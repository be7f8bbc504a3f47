"""How often an observation of an instance writes to the API server."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from instance_scenes import GROUP, ID, REGION, at, event, hook, observed, record, state
from memory_kube import MemoryKube
from temporalio.testing import ActivityEnvironment

from activities.instances.aws_queries import ServedPlaces
from activities.instances.cache import InstanceCache
from activities.instances.observation import LookActivities
from activities.instances.state_verification import Checks
from domain.instances import AWS_MACHINE
from domain.instances.events import EventKind
from domain.instances.instance_lifecycle import InstancePhase, look_at, work_for_instance
from domain.instances.interruption_policy import ReactionPolicy
from domain.instances.observed import InstanceWorld


class CountingKube(MemoryKube):
    patches = 0

    async def patch(self, *patched: Any, **options: Any) -> dict[str, Any]:
        self.patches += 1
        return await super().patch(*patched, **options)


async def observed_until_settled(looks: LookActivities, world: InstanceWorld) -> tuple[InstanceWorld, int]:
    """The world after as many observations as the decisions ask for, and their number."""
    for observations in range(1, 5):
        look = look_at(world, at(10))
        world = look.fold(world, await ActivityEnvironment().run(looks.look, look))
        if not work_for_instance(world, at(10)).patch:
            return world, observations
    raise AssertionError("each observation asks for another one")


async def test_a_hook_is_written_once_and_removed_once_when_its_launch_succeeds() -> None:
    kube = CountingKube()
    checks = Checks(ServedPlaces((), kube), kube, timedelta(hours=1))  # type: ignore[arg-type]
    looks = LookActivities(kube, InstanceCache(kube, kube), checks, ReactionPolicy(), observing=False)  # type: ignore[arg-type]
    spec = {"instanceID": ID, "providerID": f"aws:///{REGION}a/{ID}"}
    await kube.create(AWS_MACHINE, {"metadata": {"name": "m"}, "spec": spec}, "team")
    started = record(hook(5, "launching"), live_at=None)
    launching, observations = await observed_until_settled(looks, observed(started, machine=None, owner=None))
    assert work_for_instance(launching, at(10)).phase is InstancePhase.LAUNCHING
    assert (observations, kube.patches) == (1, 1)
    reported, _ = launching.with_events([event(EventKind.LAUNCH_OK, 9, group=GROUP), state("running", 9)], at(10))
    live, observations = await observed_until_settled(looks, reported)
    assert work_for_instance(live, at(10)).phase is InstancePhase.LIVE
    assert (observations, kube.patches) == (1, 2)
