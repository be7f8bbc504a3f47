"""Auto Scaling with lifecycle hooks that hold instances, and with events; moto never waits for hooks.

Each hook of a transition has its own token and deadline, and the instance proceeds when all are completed. ABANDON of a
termination ends the other waits; ABANDON of a launch terminates the instance. A heartbeat restarts the hook's
timeout, for up to 48 hours or 100 timeouts in all; at the deadline the default result applies
(https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks.html). Scaling in terminates the oldest first.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4

import moto.autoscaling.models as models
import moto.autoscaling.urls as urls
from moto.autoscaling.models import (
    AutoScalingBackend,
    FakeAutoScalingGroup,
    InstanceState,
    LifecycleHook,
    TerminateInstanceActivity,
    autoscaling_backends,
)
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult, EmptyResult

from localcloud.aws import bus, call, happenings, pump, runtime
from localcloud.aws.happenings import Group
from localcloud.aws.lives import subject_of
from localcloud.aws.wire import ErrorAnswer, Refusal

_TIME_OUT = "hook-timeout"
_TRANSITIONS = {"autoscaling:EC2_INSTANCE_LAUNCHING": "launch", "autoscaling:EC2_INSTANCE_TERMINATING": "terminate"}
_WAITING = {"launch": "Pending:Wait", "terminate": "Terminating:Wait"}
_ACTIVE = ("InService", "Pending", "Pending:Wait")
_LONGEST_WAIT_SECONDS = 48 * 3600
_MOST_TIMEOUTS = 100
_ACTIVITIES_RETAINED = 100


def install() -> None:
    autoscaling_backends.backend = PerdureAutoScaling
    urls.url_paths = {"{0}/$": PerdureAutoScalingResponse.dispatch}
    setattr(models, "FakeAutoScalingGroup", PerdureGroup)  # noqa: B010 - mypy takes classes for constants
    pump.deed(_TIME_OUT, lambda account, region, *rest: _backend(account, region).time_out(*rest))


class Hook(LifecycleHook):
    """Gets its values from `change`; moto's hook gets them from the constructor."""

    def __init__(self, name: str, group: str) -> None:
        super().__init__(name, group, None, None, None)
        self.role_arn = self.notification_target_arn = None  # type: ignore[assignment]
        self.notification_metadata: str | None = None

    def change(self, parameters: dict[str, Any]) -> None:
        self.lifecycle_transition = parameters.get("LifecycleTransition") or self.lifecycle_transition
        self.heartbeat_timeout = int(parameters.get("HeartbeatTimeout") or self.heartbeat_timeout)
        self.default_result = parameters.get("DefaultResult") or self.default_result
        self.notification_metadata = parameters.get("NotificationMetadata") or self.notification_metadata
        self.notification_target_arn = parameters.get("NotificationTargetARN") or self.notification_target_arn
        self.role_arn = parameters.get("RoleARN") or self.role_arn
        self.global_timeout = min(_LONGEST_WAIT_SECONDS, _MOST_TIMEOUTS * self.heartbeat_timeout)


@dataclass
class Wait:
    token: str
    hook: str
    group: str
    instance: str
    transition: str
    began: float
    deadline: float


class PerdureGroup(FakeAutoScalingGroup):
    def active_instances(self) -> list[InstanceState]:
        return [state for state in self.instance_states if state.lifecycle_state in _ACTIVE]

    def set_desired_capacity(self, new_capacity: int | None) -> None:
        self.desired_capacity = self.min_size if new_capacity is None else new_capacity
        surplus = len(self.active_instances()) - int(self.desired_capacity or 0)
        if surplus < 0:
            self.replace_autoscaling_group_instances(-surplus, self.get_propagated_tags())
        elif surplus > 0:
            leaving = [state for state in self.active_instances() if not state.protected_from_scale_in]
            for state in leaving[:surplus]:
                self.ours.leave(self, state, "a difference between desired and actual capacity shrinking the capacity")
        if self.name in self.autoscaling_backend.autoscaling_groups:
            self.autoscaling_backend.update_attached_elbs(self.name)
            self.autoscaling_backend.update_attached_target_groups(self.name)

    def replace_autoscaling_group_instances(self, count_needed: int, propagated_tags: dict[str, str]) -> None:
        before = {state.instance_id for state in self.instance_states}
        super().replace_autoscaling_group_instances(count_needed, propagated_tags)
        for state in [state for state in self.instance_states if state.instance_id not in before]:
            self.ours.enter(self, state)

    @property
    def ours(self) -> PerdureAutoScaling:
        return cast(PerdureAutoScaling, self.autoscaling_backend)

    @property
    def description(self) -> Group:
        return Group(name=self.name, arn=self.arn)


class PerdureAutoScaling(AutoScalingBackend):
    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.waits: dict[str, Wait] = {}  # pending hooks by token
        # Recent launches and terminations, newest first, as in DescribeScalingActivities.
        self.activities: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        if name not in ("waits", "activities"):
            raise AttributeError(name)
        self.__dict__[name] = {} if name == "waits" else []
        return self.__dict__[name]

    @property
    def _url_module(self) -> Any:
        return urls

    def enter(self, group: PerdureGroup, state: InstanceState) -> None:
        if not self._begin(group, state, "launch"):
            self._in_service(group, state)

    def leave(self, group: PerdureGroup, state: InstanceState, cause: str) -> None:
        self._end_waits(state.instance_id)
        state.cause = f"At {_now()} the instance was taken out of service in response to {cause}."  # type: ignore[attr-defined]
        if not self._begin(group, state, "terminate"):
            self._terminated(group, state)

    def complete(self, group_name: str, hook: str, result: str, token: str | None, instance_id: str | None) -> None:
        wait = self._wait(group_name, hook, token, instance_id)
        self._finish(wait, result)

    def heartbeat(self, group_name: str, hook: str, token: str | None, instance_id: str | None) -> None:
        wait = self._wait(group_name, hook, token, instance_id)
        found = self.lifecycle_hooks[f"{group_name}_{hook}"]
        wait.deadline = min(runtime.clock.now() + found.heartbeat_timeout, wait.began + found.global_timeout)
        self._watch(wait)

    def time_out(self, token: str) -> None:
        wait = self.waits.get(token)
        if wait is None:
            return
        if wait.deadline > runtime.clock.now():
            self._watch(wait)
            return
        hook = self.lifecycle_hooks.get(f"{wait.group}_{wait.hook}")
        self._finish(wait, hook.default_result if hook is not None else "CONTINUE")

    def terminate_instance(self, instance_id: str, should_decrement: bool) -> TerminateInstanceActivity:
        group, state = self._member(instance_id)
        size = group.desired_capacity
        state.instance.autoscaling_group = group  # type: ignore[attr-defined]
        if should_decrement:
            group.desired_capacity = int(size or 0) - 1
        activity = TerminateInstanceActivity(state.instance, int(size or 0))
        self.leave(group, state, "a user request")
        group.set_desired_capacity(group.desired_capacity)
        return activity

    def notify_terminate_instances(self, instance_ids: list[str]) -> None:
        for group in list(self.autoscaling_groups.values()):
            ids = set(instance_ids)
            lost = [
                s for s in group.instance_states if s.instance_id in ids and s.lifecycle_state != "Terminating:Wait"
            ]
            for state in lost:
                self.leave(cast(PerdureGroup, group), state, "an EC2 health check that found it terminated")
            if lost:
                group.set_desired_capacity(group.desired_capacity)

    def delete_auto_scaling_group(self, group_name: str) -> None:
        hooks = [name for name, hook in self.lifecycle_hooks.items() if hook.auto_scaling_group_name == group_name]
        for name in hooks:
            del self.lifecycle_hooks[name]
        self.waits = {token: wait for token, wait in self.waits.items() if wait.group != group_name}
        super().delete_auto_scaling_group(group_name)

    def put_hook(self, parameters: dict[str, Any]) -> None:
        group, name = parameters["AutoScalingGroupName"], parameters["LifecycleHookName"]
        if group not in self.autoscaling_groups:
            raise _invalid("AutoScalingGroup name not found - null")
        known = self.lifecycle_hooks.get(f"{group}_{name}")
        hook = known if isinstance(known, Hook) else Hook(name, group)
        hook.change(parameters)
        if hook.lifecycle_transition not in _TRANSITIONS:
            raise _invalid("Valid values for LifecycleTransition are EC2_INSTANCE_LAUNCHING and _TERMINATING.")
        self.lifecycle_hooks[f"{group}_{name}"] = hook

    def _begin(self, group: PerdureGroup, state: InstanceState, transition: str) -> bool:
        hooks = [
            hook
            for hook in self.lifecycle_hooks.values()
            if hook.auto_scaling_group_name == group.name
            and _TRANSITIONS.get(str(hook.lifecycle_transition)) == transition
        ]
        now = runtime.clock.now()
        for hook in hooks:
            state.lifecycle_state = _WAITING[transition]
            wait = Wait(
                token=str(uuid4()),
                hook=hook.name,
                group=group.name,
                instance=state.instance_id,
                transition=transition,
                began=now,
                deadline=now + hook.heartbeat_timeout,
            )
            self.waits[wait.token] = wait
            self._watch(wait)
            metadata = getattr(hook, "notification_metadata", None)
            subject = subject_of(state.instance)
            bus.publish(
                happenings.lifecycle_action(subject, group.description, transition, hook.name, wait.token, metadata)
            )
        return bool(hooks)

    def _finish(self, wait: Wait, result: str) -> None:
        self.waits.pop(wait.token, None)
        call.mark_changed()
        group = self.autoscaling_groups.get(wait.group)
        state = next((s for s in group.instance_states if s.instance_id == wait.instance), None) if group else None
        if group is None or state is None:
            return
        ours = cast(PerdureGroup, group)
        if result == "ABANDON":
            self._end_waits(wait.instance)
        if any(other.instance == wait.instance for other in self.waits.values()):
            return
        if wait.transition == "terminate":
            self._terminated(ours, state)
        elif result == "CONTINUE":
            self._in_service(ours, state)
        else:
            self._publish_result(ours, state, "launch", failure="The lifecycle action was abandoned.")
            self.leave(ours, state, "an abandoned lifecycle action")
            ours.set_desired_capacity(ours.desired_capacity)

    def _in_service(self, group: PerdureGroup, state: InstanceState) -> None:
        state.lifecycle_state = "InService"
        self._publish_result(group, state, "launch")

    def _terminated(self, group: PerdureGroup, state: InstanceState) -> None:
        group.instance_states = [each for each in group.instance_states if each is not state]
        if state.instance.state not in ("shutting-down", "terminated"):
            self.ec2_backend.terminate_instances([state.instance_id])
        self._publish_result(group, state, "terminate")

    def _publish_result(self, group: PerdureGroup, state: InstanceState, transition: str, failure: str = "") -> None:
        cause = getattr(state, "cause", f"At {_now()} an instance was started in response to a difference in capacity.")
        began = state.instance.launch_time.timestamp() if transition == "launch" else time.time()
        subject, ended = subject_of(state.instance), time.time()
        happening = happenings.activity_result(
            subject, group.description, transition, began=began, ended=ended, cause=cause, failure=failure
        )
        bus.publish(happening)
        fields = ("ActivityId", "AutoScalingGroupName", "Description", "Cause", "StatusMessage")
        activity = {
            **{name: happening.detail[name] for name in fields},
            "StartTime": datetime.fromtimestamp(began, UTC),
            "EndTime": datetime.fromtimestamp(ended, UTC),
            "StatusCode": "Failed" if failure else "Successful",
            "Progress": 100,
        }
        self.activities = [activity, *self.activities][:_ACTIVITIES_RETAINED]

    def _watch(self, wait: Wait) -> None:
        seconds = max(0.001, wait.deadline - runtime.clock.now())
        pump.later(self.account_id, self.region_name, seconds, _TIME_OUT, wait.token)

    def _end_waits(self, instance_id: str) -> None:
        self.waits = {token: wait for token, wait in self.waits.items() if wait.instance != instance_id}

    def _wait(self, group: str, hook: str, token: str | None, instance_id: str | None) -> Wait:
        for wait in self.waits.values():
            named = wait.token == token if token else wait.instance == instance_id
            if named and (wait.group, wait.hook) == (group, hook):
                return wait
        missing = f"token {token}" if token else f"instance ID {instance_id}"
        raise _invalid(f"No active Lifecycle Action found with {missing}")

    def _member(self, instance_id: str) -> tuple[PerdureGroup, InstanceState]:
        for group in self.autoscaling_groups.values():
            for state in group.instance_states:
                if state.instance_id == instance_id:
                    return cast(PerdureGroup, group), state
        raise _invalid(f"Instance Id not found - No managed instance found for instance ID: {instance_id}")


class PerdureAutoScalingResponse(AutoScalingResponse):
    @property
    def _ours(self) -> PerdureAutoScaling:
        return cast(PerdureAutoScaling, self.autoscaling_backend)

    def call_action(self) -> Any:
        pump.catch_up(self.current_account, self.region)
        return super().call_action()

    def put_lifecycle_hook(self) -> ActionResult:
        self._ours.put_hook(self._get_params())
        return EmptyResult()

    def complete_lifecycle_action(self) -> ActionResult:
        result = self._get_param("LifecycleActionResult")
        if result not in ("CONTINUE", "ABANDON"):
            raise _invalid("LifecycleActionResult must be one of CONTINUE and ABANDON")
        hook, token, instance_id = self._named()
        self._ours.complete(self._get_param("AutoScalingGroupName"), hook, result, token, instance_id)
        return EmptyResult()

    def describe_scaling_activities(self) -> ActionResult:
        group, most = self._get_param("AutoScalingGroupName"), self._get_int_param("MaxRecords", 100)
        found = [each for each in self._ours.activities if group in (None, each["AutoScalingGroupName"])]
        return ActionResult({"Activities": found[:most]})

    def record_lifecycle_action_heartbeat(self) -> ActionResult:
        self._ours.heartbeat(self._get_param("AutoScalingGroupName"), *self._named())
        return EmptyResult()

    def _named(self) -> tuple[str, str | None, str | None]:
        token, instance_id = self._get_param("LifecycleActionToken"), self._get_param("InstanceId")
        if not token and not instance_id:
            raise _invalid("Either LifecycleActionToken or InstanceId must be specified")
        return self._get_param("LifecycleHookName"), token, instance_id


def _backend(account: str, region: str) -> PerdureAutoScaling:
    return cast(PerdureAutoScaling, autoscaling_backends[account][region])


def _invalid(message: str) -> Refusal:
    return Refusal("autoscaling", ErrorAnswer("ValidationError", message))


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
