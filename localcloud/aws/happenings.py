"""The events of EC2, Auto Scaling, Spot and Health, in AWS's shapes; imports no moto.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instance-state-changes.html,
.../spot-instance-termination-notices.html, .../rebalance-recommendations.html,
https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-event-reference.html,
https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html. Spot's ARNs have a zone instead
of the region and no account, Auto Scaling reports success as `InProgress`, and Health has RFC 1123 dates and numbers as
strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, JsonValue

Detail = dict[str, JsonValue]

EC2, AUTO_SCALING, HEALTH = "aws.ec2", "aws.autoscaling", "aws.health"
_TRANSITIONS = {"launch": "autoscaling:EC2_INSTANCE_LAUNCHING", "terminate": "autoscaling:EC2_INSTANCE_TERMINATING"}


class Happening(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    account: str
    region: str
    source: str
    detail_type: str
    detail: Detail
    resources: tuple[str, ...] = ()

    def envelope(self, event_id: str, at: float) -> Detail:
        return {
            "version": "0",
            "id": event_id,
            "detail-type": self.detail_type,
            "source": self.source,
            "account": self.account,
            "time": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self.region,
            "resources": list(self.resources),
            "detail": self.detail,
        }


class Subject(BaseModel):
    model_config = ConfigDict(frozen=True)

    account: str
    region: str
    zone: str
    instance: str

    @property
    def arn(self) -> str:
        return f"arn:aws:ec2:{self.region}:{self.account}:instance/{self.instance}"


class Group(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    arn: str


# --- EC2 ---


def state_change(subject: Subject, state: str) -> Happening:
    detail: Detail = {"instance-id": subject.instance, "state": state}
    return _of(subject, EC2, "EC2 Instance State-change Notification", detail, [subject.arn])


def spot_interruption(subject: Subject, action: str) -> Happening:
    detail: Detail = {"instance-id": subject.instance, "instance-action": action}
    return _of(subject, EC2, "EC2 Spot Instance Interruption Warning", detail, [_zonal(subject)])


def rebalance(subject: Subject) -> Happening:
    detail: Detail = {"instance-id": subject.instance}
    return _of(subject, EC2, "EC2 Instance Rebalance Recommendation", detail, [_zonal(subject)])


def capacity_reservation(subject: Subject, action: str) -> Happening:
    detail: Detail = {"instance-id": subject.instance, "instance-action": action}
    return _of(subject, EC2, "EC2 Capacity Reservation Instance Interruption Warning", detail, [_zonal(subject)])


# --- Auto Scaling ---


def lifecycle_action(
    subject: Subject, group: Group, transition: str, hook: str, token: str, metadata: str | None = None
) -> Happening:
    launching = transition == "launch"
    detail: Detail = {
        "LifecycleActionToken": token,
        "AutoScalingGroupName": group.name,
        "LifecycleHookName": hook,
        "EC2InstanceId": subject.instance,
        "LifecycleTransition": _TRANSITIONS[transition],
        **({"NotificationMetadata": metadata} if metadata is not None else {}),
        "Origin": "EC2" if launching else "AutoScalingGroup",
        "Destination": "AutoScalingGroup" if launching else "EC2",
    }
    return _of(subject, AUTO_SCALING, f"EC2 Instance-{transition} Lifecycle Action", detail, [group.arn])


def activity_result(
    subject: Subject, group: Group, transition: str, *, began: float, ended: float, cause: str, failure: str = ""
) -> Happening:
    activity, launching = str(uuid4()), transition == "launch"
    verb = "Launching a new" if launching else "Terminating"
    detail: Detail = {
        "StatusCode": "Failed" if failure else "InProgress",
        "StatusMessage": failure,
        "Description": f"{verb} EC2 instance: {subject.instance}",
        "AutoScalingGroupName": group.name,
        "ActivityId": activity,
        "RequestId": activity,
        "Details": {"Availability Zone": subject.zone},
        "StartTime": _milliseconds(began),
        "EndTime": _milliseconds(ended),
        "EC2InstanceId": subject.instance,
        "Cause": cause,
        "Origin": "EC2" if launching else "AutoScalingGroup",
        "Destination": "AutoScalingGroup" if launching else "EC2",
    }
    outcome = f"EC2 Instance {transition.capitalize()} {'Unsuccessful' if failure else 'Successful'}"
    return _of(subject, AUTO_SCALING, outcome, detail, [group.arn, subject.arn])


# --- Health ---


def health_event(
    subjects: Sequence[Subject],
    code: str,
    event: str,
    communication: str,
    *,
    start: float,
    end: float | None,
    updated: float,
    status: str,
    entity_status: str,
) -> Happening:
    """One message of a Health event about instances of one account and region. Times are seconds since the epoch.

    `event` identifies the Health event in its ARN, `communication` identifies the message.
    """
    first = subjects[0]
    arn = f"arn:aws:health:{first.region}::event/EC2/{code}/{code}_{event}"
    described = f"EC2 has scheduled {code} for {', '.join(subject.instance for subject in subjects)}."
    detail: Detail = {
        "eventArn": arn,
        "service": "EC2",
        "eventTypeCode": code,
        "eventTypeCategory": "scheduledChange" if code.endswith(("_SCHEDULED", "_EXPEDITED")) else "issue",
        "eventScopeCode": "ACCOUNT_SPECIFIC",
        "communicationId": f"{communication}-1",
        "startTime": _rfc(start),
        **({"endTime": _rfc(end)} if end is not None else {}),
        "lastUpdatedTime": _rfc(updated),
        "statusCode": status,
        "eventRegion": first.region,
        "eventDescription": [{"language": "en_US", "latestDescription": described}],
        "affectedEntities": [
            {"entityValue": subject.arn, "lastUpdatedTime": _rfc(updated), "status": entity_status}
            for subject in subjects
        ],
        "affectedAccount": first.account,
        "page": "1",
        "totalPages": "1",
        "backupEvent": "false",
        "personas": ["OPERATIONS"],
        "actionability": "ACTION_REQUIRED",
    }
    return _of(first, HEALTH, "AWS Health Event", detail, [subject.instance for subject in subjects])


def _of(subject: Subject, source: str, detail_type: str, detail: Detail, resources: Sequence[str]) -> Happening:
    return Happening(
        account=subject.account,
        region=subject.region,
        source=source,
        detail_type=detail_type,
        detail=detail,
        resources=tuple(resources),
    )


def _zonal(subject: Subject) -> str:
    return f"arn:aws:ec2:{subject.zone}:instance/{subject.instance}"


def _rfc(at: float) -> str:
    return format_datetime(datetime.fromtimestamp(at, UTC), usegmt=True)


def _milliseconds(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
