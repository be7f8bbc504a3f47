"""The agent's passes: read LoadBalancer and machine, serve Envoy, check the machine, report.

    LoadBalancer changed ─┐
    Envoy has answered ───┼──► pass ──► all well: the next pass after `requeue` (30 s)
    time ─────────────────┘         └─► not well: the next pass after 1, 2, 4 ... 30 s

Each pass updates the LoadBalancerMachine, so an update of this object starts no pass; its creation or deletion does. A
pass that sends something new to Envoy waits a moment for the ACK or NACK, so that its report is current.

Without an API server, passes fail, and Envoy continues with its last snapshot. The report is written only if the
machine's resourceVersion is unchanged, so that no condition of another client is lost.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError

from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE
from domain.loadbalancers.machine_health import unmet
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine, Metric
from domain.notices import Notice, normal, warning
from engine.errors import ApiError, Conflict
from engine.kube import JsonObject, KubeApi
from engine.kube.informer_cache import Mirror
from engine.kube.json import mapping
from engine.kube.reflector import Followed
from yawollet import conditions, keepalived, measurements
from yawollet.admin import EnvoyAdmin
from yawollet.conditions import Finding
from yawollet.conversation import Conversation
from yawollet.debugging import ad_hoc_debug
from yawollet.events import EventRecorder
from yawollet.options import Options

_FIRST_PAUSE = timedelta(seconds=1)
_WRITES = 3

FIELD_MANAGER = "yawollet"

log = logging.getLogger(__name__)


class Agent:
    def __init__(
        self, options: Options, api: KubeApi, conversation: Conversation, admin: EnvoyAdmin, host: str, cpus: int
    ) -> None:
        self._options = options
        self._api = api
        self._conversation = conversation
        self._admin = admin
        self._cpus = cpus
        self._events = EventRecorder(api, host)
        self._notices: frozenset[Notice] = frozenset()
        self._refusals: list[str] = []
        self._woken = asyncio.Event()
        self.balancers = Mirror(api, _followed(LOAD_BALANCER, options.namespace, options.load_balancer))
        self.machines = Mirror(api, _followed(LOAD_BALANCER_MACHINE, options.namespace, options.machine))
        self.balancers.listen(self._changed)
        self.machines.listen(self._appeared)

    def wake(self) -> None:
        self._woken.set()

    def _changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if before is None or after is None or _spoken(before) != _spoken(after):
            self.wake()

    def _appeared(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if before is None or after is None:
            self.wake()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for mirror in (self.balancers, self.machines):
                group.create_task(mirror.run())
            group.create_task(self._passes())

    async def _passes(self) -> None:
        failures = 0
        while True:
            self._woken.clear()
            failures = 0 if await self._well() else failures + 1
            pause = self._options.requeue
            if failures:
                pause = min(_FIRST_PAUSE * 2 ** min(failures - 1, 10), pause)
            try:
                async with asyncio.timeout(pause.total_seconds()):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def _well(self) -> bool:
        try:
            fault = await self.make_pass()
        except ApiError as error:
            fault = error.message
        except Exception as error:  # a bug of ours: the agent must still answer Envoy
            log.exception("a pass has failed")
            fault = f"{type(error).__name__}: {error}"
        if fault:
            log.info("the next pass follows soon: %s", fault)
        return not fault

    async def make_pass(self) -> str:
        """Returns why the next must follow soon; empty if all is well."""
        options = self._options
        balancer_object = self.balancers.get(options.namespace, options.load_balancer)
        machine_object = self.machines.get(options.namespace, options.machine)
        if machine_object is None or balancer_object is None:
            return "the LoadBalancer or its machine does not exist, or has not been read yet"
        config = await self._config(balancer_object, machine_object)
        now = _now()
        found, statistics = keepalived.findings(options.stats_file, options.pid_file, now)
        served = self._conversation.delivery.served
        findings = [
            config,
            conditions.envoy_ready(await self._admin.fault()),
            conditions.envoy_up_to_date(served.version if served else None, await self._admin.versions()),
            *found,
        ]
        counted = await self._admin.statistics(measurements.STATISTICS_PATTERN)
        metrics = measurements.metrics(now, counted, statistics, cpus=self._cpus)
        reported = await self._report(machine_object, findings, metrics, now)
        return unmet(reported, now, 2 * options.requeue, stable=False)

    async def _config(self, balancer_object: JsonObject, machine: JsonObject) -> Finding:
        try:
            balancer = LoadBalancer.model_validate(balancer_object)
        except ValidationError as error:
            return conditions.config_ready(changed=False, faults=[f"the LoadBalancer cannot be read: {error}"])
        if notice := await ad_hoc_debug(balancer):
            await self._events.record(machine, notice, _now())
        changed, notices = await self._conversation.serve(balancer, self._options.listen_address, self._cpus)
        refusals = self._conversation.delivery.refusals
        served = self._conversation.delivery.served
        if changed and served is not None:
            message = f"Envoy is updated to new snapshot version: {served.version}"
            await self._events.record(machine, normal("Update", message), _now())
        await self._record_new(machine, notices, refusals)
        return conditions.config_ready(changed=changed, faults=refusals)

    async def _record_new(self, machine: JsonObject, notices: tuple[Notice, ...], refusals: list[str]) -> None:
        refused = tuple(warning("Failed", reason) for reason in refusals)
        for notice in (*notices, *refused):
            if notice not in self._notices:
                await self._events.record(machine, notice, _now())
        self._notices = frozenset((*notices, *refused))

    async def _report(
        self, machine_object: JsonObject, findings: list[Finding], metrics: tuple[Metric, ...], now: datetime
    ) -> LoadBalancerMachine:
        options = self._options
        for attempt in range(_WRITES):
            machine = LoadBalancerMachine.model_validate(machine_object)
            reported = conditions.reported(machine.status.conditions, findings, now)
            status = {
                "conditions": [each.model_dump(mode="json", exclude_none=True) for each in reported],
                "metrics": [each.model_dump(mode="json") for each in metrics],
            }
            try:
                written = await self._api.patch(
                    LOAD_BALANCER_MACHINE,
                    options.namespace,
                    options.machine,
                    {"status": status},
                    subresource="status",
                    resource_version=machine.metadata.resource_version,
                    # The controllers ignore writes of their own field manager, so the agent uses another name.
                    field_manager=FIELD_MANAGER,
                )
            except Conflict:
                if attempt + 1 == _WRITES:
                    raise
                machine_object = await self._api.get(LOAD_BALANCER_MACHINE, options.namespace, options.machine)
                continue
            return LoadBalancerMachine.model_validate(written)
        raise AssertionError("unreachable: the last attempt returns or raises")

    # For readyz.

    def unsynced(self) -> list[str]:
        return [mirror.followed.name for mirror in (self.balancers, self.machines) if not mirror.listed]

    def silent(self) -> list[str]:
        """Why the machine's object does not show a recent, healthy report; empty if it does."""
        machine = self.machines.get(self._options.namespace, self._options.machine)
        if machine is None:
            return ["the LoadBalancerMachine does not exist, or has not been read yet"]
        fault = unmet(LoadBalancerMachine.model_validate(machine), _now(), 2 * self._options.requeue, stable=False)
        return [fault] if fault else []

    def outdated(self) -> list[str]:
        """Why this machine does not have the LoadBalancer's revision; empty if it does."""
        balancer = self.balancers.get(self._options.namespace, self._options.load_balancer)
        machine = self.machines.get(self._options.namespace, self._options.machine)
        if balancer is None or machine is None:
            return ["the LoadBalancer or its machine has not been read yet"]
        wanted = LoadBalancer.model_validate(balancer).revision
        own = LoadBalancerMachine.model_validate(machine).revision
        return [] if wanted == own else [f"the LoadBalancer's revision is {wanted!r}, the machine's {own!r}"]


def _followed(kind: Kind, namespace: str, name: str) -> Followed:
    return Followed(kind, namespace, field_selector=f"metadata.name={name}")


def _spoken(balancer: JsonObject) -> tuple[object, object]:
    metadata = mapping(balancer, "metadata")
    return metadata.get("generation"), metadata.get("annotations")


def _now() -> datetime:
    return datetime.now(UTC)
