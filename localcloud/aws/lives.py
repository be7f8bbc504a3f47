"""EC2 instances with AWS's intermediate states, which moto skips; each change is an event on the bus.

A repeated stop or termination has no effect. An instance that is stopping or terminated cannot be started, and a
terminated one cannot be stopped (IncorrectInstanceState). Spot requests have the statuses of
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-request-status.html. DescribeInstanceStatus marks scheduled
events that are over with [Completed] or [Canceled].
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from moto.core.utils import utcnow
from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.instances import Instance, InstanceState, Reservation
from moto.ec2.models.spot_requests import SpotInstanceRequest
from moto.ec2.utils import random_spot_request_id

from localcloud.aws import bus, call, happenings, pump, runtime
from localcloud.aws.happenings import Subject
from localcloud.aws.wire import ErrorAnswer, Refusal

_SETTLE = "settle"
_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
_GOING = ("shutting-down", "terminated")
_DOWN = ("stopping", "stopped", *_GOING)

Change = tuple[Instance, InstanceState]


class SpotRequest(SpotInstanceRequest):
    def __init__(self, backend: EC2Backend, instance: Instance) -> None:
        # moto's constructor would launch another instance.
        self.tags: dict[str, str] = {}
        self.ec2_backend, self.instance = backend, instance
        self.id = random_spot_request_id()
        self.state, self._status_code, self.status_message = "active", "fulfilled", ""
        self.price, self.type = "0.010000", "one-time"
        self.valid_from = self.valid_until = self.launch_group = self.availability_zone_group = None
        self.instance_interruption_behaviour = "terminate"
        self.launch_specification: Any = None

    @property
    def status(self) -> dict[str, Any]:
        return {"Code": self._status_code, "Message": self.status_message, "UpdateTime": utcnow()}

    @property
    def create_time(self) -> str:
        return f"{self.instance.launch_time:%Y-%m-%dT%H:%M:%S.000Z}"

    def get_filter_value(self, filter_name: str, method_name: str | None = None) -> Any:
        if filter_name == "instance-id":
            return self.instance.id
        if filter_name == "status-code":
            return self._status_code
        return super().get_filter_value(filter_name, method_name)


class LivingEC2(EC2Backend):
    def all_reservations(self, filters: Any = None) -> list[Reservation]:
        pump.catch_up(self.account_id, self.region_name)
        return super().all_reservations(filters)

    def run_instances(self, *args: Any, **kwargs: Any) -> Reservation:
        reservation: Reservation = super().run_instances(*args, **kwargs)
        spot = kwargs.get("instance_market_options") or self._of_spot_template(kwargs.get("launch_template"))
        for instance in reservation.instances:
            if spot:
                self._request_spot(instance)
            self._pass(instance, "pending", "running")
        return reservation

    def start_instances(self, instance_ids: list[str]) -> list[Change]:
        return self._change(
            instance_ids, ("pending", "running"), super().start_instances, refused=("stopping", *_GOING)
        )

    def stop_instances(self, instance_ids: list[str]) -> list[Change]:
        return self._change(instance_ids, ("stopping", "stopped"), super().stop_instances, refused=_GOING)

    def terminate_instances(self, instance_ids: list[str]) -> list[Change]:
        return self._change(instance_ids, _GOING, super().terminate_instances)

    def spot_request_of(self, instance_id: str) -> SpotInstanceRequest | None:
        requests = self.spot_instance_requests.values()
        return next((request for request in requests if request.instance.id == instance_id), None)

    def settle(self, instance_id: str, through: str, final: str) -> None:
        instance = next((each for each in self.all_instances() if each.id == instance_id), None)
        if instance is not None and instance.state == through:
            _enter(instance, final)

    def _change(
        self, instance_ids: list[str], states: tuple[str, str], theirs: Any, refused: tuple[str, ...] = ()
    ) -> list[Change]:
        instances = self.get_multi_instances_by_id(instance_ids)
        for instance in instances:
            if instance.state in refused:
                raise _incorrect_state(instance)
        before = {instance.id: InstanceState(instance.state, instance.state_code) for instance in instances}
        moving = [instance for instance in instances if instance.state not in _past(states)]
        if moving or not instances:
            theirs([instance.id for instance in moving])
        for instance in moving:
            self._pass(instance, *states)
        return [(instance, before[instance.id]) for instance in instances]

    def _pass(self, instance: Instance, through: str, final: str) -> None:
        settings = runtime.config()
        seconds = {
            "pending": settings.run_instances_seconds,
            "stopping": settings.stop_instances_seconds,
            "shutting-down": settings.terminate_instances_seconds,
        }[through]
        _enter(instance, through)
        if seconds <= 0:
            _enter(instance, final)
        else:
            pump.later(self.account_id, self.region_name, seconds, _SETTLE, instance.id, through, final)

    def _request_spot(self, instance: Instance) -> None:
        request = SpotRequest(self, instance)
        self.spot_instance_requests[request.id] = request
        instance.lifecycle = "spot"
        instance.spot_instance_request_id = request.id  # type: ignore[attr-defined]

    def _of_spot_template(self, launch_template: dict[str, Any] | None) -> bool:
        if not launch_template:
            return False
        options = self._get_template_from_args(launch_template).data.get("InstanceMarketOptions") or {}
        return bool(options.get("MarketType") == "spot")


def install() -> None:
    pump.deed(_SETTLE, lambda account, region, *rest: backend_of(account, region).settle(*rest))


def backend_of(account: str, region: str) -> LivingEC2:
    return cast(LivingEC2, ec2_backends[account][region])


def subject_of(instance: Instance) -> Subject:
    backend = instance.ec2_backend
    zone = instance.placement.zone or f"{backend.region_name}a"
    return Subject(account=backend.account_id, region=backend.region_name, zone=zone, instance=instance.id)


def schedule(instance: Instance, event_id: str, code: str, start: float, end: float | None, closed: str) -> None:
    mark = f"[{closed}] " if closed else ""
    event = {
        "InstanceEventId": event_id,
        "Code": code,
        "Description": f"{mark}The instance is affected by {code}.",
        "NotBefore": datetime.fromtimestamp(start, UTC),
        **({"NotAfter": datetime.fromtimestamp(end, UTC)} if end is not None else {}),
    }
    others = [each for each in getattr(instance, "events", ()) if each["InstanceEventId"] != event_id]
    instance.events = [*others, event]  # type: ignore[attr-defined]
    call.mark_changed()


def _enter(instance: Instance, state: str) -> None:
    instance._state = InstanceState(state, _CODES[state])
    bus.publish(happenings.state_change(subject_of(instance), state))


def _past(states: tuple[str, str]) -> tuple[str, ...]:
    return states if states[0] != "stopping" else _DOWN


def _incorrect_state(instance: Instance) -> Refusal:
    message = f"The instance '{instance.id}' is not in a state from which it can be changed: {instance.state}."
    return Refusal("ec2", ErrorAnswer("IncorrectInstanceState", message))
