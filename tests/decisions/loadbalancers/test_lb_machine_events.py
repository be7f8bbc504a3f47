"""The Events of a machine's pass, and what it does for a machine that no set owns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from driven import Driven
from lb_objects import balancer, condition, healthy, machine, machine_set
from memory_kube import MemoryKube
from temporalio.client import Client

from activities.kube import KubeActivities
from activities.loadbalancers.cache import LoadBalancerCache
from activities.loadbalancers.cloud_steps import CloudActivities
from activities.loadbalancers.machines import MachineActivities
from activities.loadbalancers.pass_context import PassContext
from activities.loadbalancers.replaced_operator import LEASES
from activities.openstack.projects import Projects
from activities.replaced_operator import HELD_FOR
from domain.decision import Decision
from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.constants import GIVEN_UP_ANNOTATION, MACHINE_FINALIZER, MARKED_AT_ANNOTATION
from domain.loadbalancers.machine.lifecycle import decide_machine
from domain.loadbalancers.machine.world import MachineWorld, ObserveMachine
from domain.loadbalancers.machine_health import CONFIG_READY, CONFIG_REJECTED, DEFAULT_TIMINGS, ENVOY_READY, MARKED
from domain.resource import parse_timestamp, timestamp
from domain.runner import State
from engine.errors import Invalid
from engine.kube import EVENT, LEASE, BlockingKube, KubeApi
from engine.kube.informer_cache import Store
from engine.kube.reflector import Followed
from engine.settings import Settings

NAME = "web--shop-aaaa-00001"
NO_SECRET = "Secret lbs/cloud does not exist"


class NoProjects:
    """Whose credentials are gone."""

    def project(self, _: object) -> Any:
        raise Invalid(NO_SECRET)


class Installation:
    """One machine in an API server of its own, at first without its LoadBalancer."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        api, store = cast(KubeApi, self.kube), cast(Store, self.kube)
        cache = LoadBalancerCache(api, store)
        for kind in (LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET):
            self.kube.follow(Followed(kind)).listed = True
        ground = PassContext(api, cast(BlockingKube, None), cast(Projects, NoProjects()), Settings(), cache)
        of_area = (*MachineActivities(ground).all(), *CloudActivities(ground).all())
        self._activities = (*of_area, *KubeActivities(api, cast(Client, None), wrote=cache.wrote).all())
        self._life: Driven[MachineWorld] | None = None

    async def begun(self, conditions: Any = None, **changes: Any) -> None:
        changes["metadata"] = {"finalizers": [MACHINE_FINALIZER], **changes.get("metadata", {})}
        body = machine(NAME, conditions, **changes).model_dump(mode="json", exclude_none=True)
        await self.kube.create(LOAD_BALANCER_MACHINE, body, "lbs")

    async def served(self) -> None:
        body = balancer().model_dump(mode="json", exclude_none=True)
        await self.kube.create(LOAD_BALANCER, body, "lbs")

    async def another(self, conditions: Any) -> None:
        body = machine("another", conditions).model_dump(mode="json", exclude_none=True)
        await self.kube.create(LOAD_BALANCER_MACHINE, body, "lbs")

    async def owned(self) -> Any:
        """The metadata of a machine of a set, which is there."""
        body = machine_set().model_dump(mode="json", exclude_none=True)
        made = (await self.kube.create(LOAD_BALANCER_SET, body, "lbs"))["metadata"]
        owner = {"kind": LOAD_BALANCER_SET.name, "name": made["name"], "uid": made["uid"]}
        return {"ownerReferences": [owner], "labels": body["spec"]["selector"]["matchLabels"]}

    async def annotated(self, annotations: Any) -> None:
        await self.kube.patch(LOAD_BALANCER_MACHINE, "lbs", NAME, {"metadata": {"annotations": annotations}})

    async def gone(self) -> bool:
        return "deletionTimestamp" in (await self.machine())["metadata"]

    async def machine(self) -> Any:
        return await self.kube.get(LOAD_BALANCER_MACHINE, "lbs", NAME)

    async def passed(self) -> Decision:
        """One turn of its lifecycle, with the memory of the turn before."""
        if self._life is None:
            uid = (await self.machine())["metadata"]["uid"]
            key = Key(kind=LOAD_BALANCER_MACHINE.name, namespace="lbs", name=NAME, uid=uid)

            def observation(state: State[MachineWorld]) -> ObserveMachine:
                return ObserveMachine(key=key, memory=state.world.known, outdated=state.outdated)

            self._life = Driven(MachineWorld(key=key), decide_machine, observation, self._activities)
        return await self._life.turn(datetime.now(UTC))

    async def look_again(self) -> datetime | None:
        """When it is observed again if nothing happens."""
        return (await self.passed()).deadline

    async def events(self) -> list[tuple[str, str, str]]:
        events = (await self.kube.list(EVENT, "lbs")).items
        return [(each["involvedObject"]["kind"], each["reason"], each["message"]) for each in events]


@pytest.mark.parametrize("server", ["server-1", None])
async def test_a_machine_that_cannot_be_deleted_reports_why_once(server: str | None) -> None:
    on = Installation()
    await on.begun(status={"serverID": server})
    await on.kube.delete(LOAD_BALANCER_MACHINE, "lbs", NAME)
    await on.passed()
    decision = await on.passed()
    assert (decision.gone, decision.why) == (False, NO_SECRET)
    assert await on.events() == [("LoadBalancerMachine", "Failed", NO_SECRET)]


# --- a machine that no set looks after ---


def since(**span: float) -> str:
    return timestamp(datetime.now(UTC) - timedelta(**span))


MARK = {"type": MARKED, "status": "True"}
TIMEOUT = {"yawol.stackit.cloud/creationTimeout": "0s"}
GIVEN_UP = {GIVEN_UP_ANNOTATION: "No valid host was found"}


async def test_a_machine_without_a_set_that_does_not_boot_is_marked_and_then_deleted() -> None:
    on = Installation()
    await on.begun(metadata={"annotations": TIMEOUT})
    await on.passed()
    marked = await on.machine()
    assert [each["type"] for each in marked["status"]["conditions"]] == [MARKED]
    moment = parse_timestamp(marked["metadata"]["annotations"][MARKED_AT_ANNOTATION])
    assert moment is not None
    assert await on.look_again() == moment + DEFAULT_TIMINGS.grace
    await on.annotated({MARKED_AT_ANNOTATION: since(minutes=2)})
    await on.passed()
    assert await on.gone()


async def test_a_machine_without_a_set_whose_server_is_in_error_is_deleted() -> None:
    on = Installation()
    await on.begun(metadata={"annotations": GIVEN_UP})
    await on.passed()
    assert await on.gone()


async def test_a_machine_removed_from_its_set_is_observed_when_its_report_expires() -> None:
    on = Installation()
    await on.begun(healthy(beat=since(seconds=10)), metadata={**await on.owned(), "labels": {}})
    beat = parse_timestamp((await on.machine())["status"]["conditions"][0]["lastHeartbeatTime"])
    assert beat is not None
    assert await on.look_again() == beat + DEFAULT_TIMINGS.window + timedelta(seconds=1)


async def test_a_machine_of_a_set_is_left_to_it() -> None:
    on = Installation()
    await on.begun(metadata={**await on.owned(), "annotations": GIVEN_UP})
    await on.passed()
    assert not await on.gone()


async def test_while_the_whole_fleet_is_silent_a_machine_without_a_set_stays() -> None:
    on = Installation()
    dead = [*healthy(beat=since(minutes=9)), {**MARK, "lastTransitionTime": since(minutes=3)}]
    await on.served()
    await on.begun(dead)
    await on.passed()
    assert not await on.gone()
    await on.another(healthy(beat=since(seconds=5)))
    await on.passed()
    assert await on.gone()


async def test_a_silent_machine_without_set_and_load_balancer_goes_though_no_other_reports() -> None:
    on = Installation()
    await on.begun([*healthy(beat=since(minutes=9)), {**MARK, "lastTransitionTime": since(minutes=3)}])
    await on.passed()
    assert await on.gone()


async def test_a_machine_without_a_set_whose_configuration_is_at_fault_stays() -> None:
    on = Installation()
    fault = condition(CONFIG_READY, "False", beat=since(seconds=5), since=since(minutes=9), reason=CONFIG_REJECTED)
    mark = {**MARK, "lastTransitionTime": since(minutes=3)}
    await on.served()
    await on.begun([fault, *healthy(beat=since(seconds=5))[1:], mark])
    moment = datetime.now(UTC)
    again = await on.look_again()
    assert not await on.gone()
    assert again is not None
    assert again >= moment + DEFAULT_TIMINGS.window
    unready = condition(ENVOY_READY, "False", beat=since(seconds=5), since=since(minutes=9))
    conditions = [*healthy(beat=since(seconds=5))[:1], unready, *healthy(beat=since(seconds=5))[2:], mark]
    await on.kube.patch(
        LOAD_BALANCER_MACHINE, "lbs", NAME, {"status": {"conditions": conditions}}, subresource="status"
    )
    await on.passed()
    assert await on.gone()


async def test_a_machine_without_a_set_is_observed_again_while_yawol_leads_the_sets() -> None:
    on = Installation()
    spec = {"holderIdentity": "yawol-1", "leaseDurationSeconds": 60, "renewTime": since(seconds=1)}
    lease = {"metadata": {"name": LEASES[LOAD_BALANCER_SET.name]}, "spec": spec}
    await on.kube.create(LEASE, lease, Settings().loadbalancers_yawol_namespace)
    await on.begun(metadata={"annotations": GIVEN_UP})
    moment = datetime.now(UTC)
    again = await on.look_again()
    assert not await on.gone()
    assert again is not None
    assert HELD_FOR <= again - moment < 2 * HELD_FOR
