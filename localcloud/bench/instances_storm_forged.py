"""Row i of `perdure bench instances`: forged messages about things that have not happened.

Most messages are sent in the names of two accounts: the instance's, and a foreign one that the queue does not serve.
Rebalance recommendations and capacity reservation notices, which EC2 cannot confirm, use the foreign account only.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

from localcloud.aws import happenings
from localcloud.aws.happenings import Group, Happening, Subject
from localcloud.bench.instances_storm_fleet import Member
from localcloud.services import REGION

_STRANGER = "999999999999"
_HOUR = 3600.0
_CODES = (
    "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
    "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED",
    "AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED",
)
# How long a forged label may stay, in seconds. EC2 may list a scheduled event up to a quarter of an hour after its
# notice. A hibernation is over if EC2 reports the instance as running ten minutes after the two minutes' notice. The
# bulk query asks EC2 every ten minutes.
_LABEL_FADES = {"health": 26 * 60.0, "hibernate": 24 * 60.0}

Make = Callable[[Subject, str], Happening]


def _health(code: str) -> Make:
    def make(subject: Subject, _: str) -> Happening:
        now, event = time.time(), uuid4().hex
        said = {"start": now + _HOUR, "end": None, "updated": now, "status": "upcoming", "entity_status": "PENDING"}
        return happenings.health_event([subject], code, event, uuid4().hex, **said)  # type: ignore[arg-type]

    return make


def _spot(action: str) -> Make:
    return lambda subject, _: happenings.spot_interruption(subject, action)


def _state(state: str) -> Make:
    return lambda subject, _: happenings.state_change(subject, state)


def _hook(transition: str) -> Make:
    def make(subject: Subject, group: str) -> Happening:
        arn = f"arn:aws:autoscaling:{REGION}:{subject.account}:autoScalingGroup:{uuid4()}:autoScalingGroupName/{group}"
        hook = "join" if transition == "launch" else "drain"
        return happenings.lifecycle_action(subject, Group(name=group, arn=arn), transition, hook, str(uuid4()))

    return make


_CONFIRMED: dict[str, Make] = {
    **{f"spot {action}": _spot(action) for action in ("terminate", "stop", "hibernate")},
    **{state: _state(state) for state in ("stopping", "stopped", "shutting-down", "terminated")},
    **{f"health {code}": _health(code) for code in _CODES},
    **{f"{transition} hook": _hook(transition) for transition in ("terminate", "launch")},
}
_UNCONFIRMED: dict[str, Make] = {
    "rebalance": lambda subject, _: happenings.rebalance(subject),
    "capacity reservation": lambda subject, _: happenings.capacity_reservation(subject, "terminate"),
}


@dataclass
class Forged:
    """A forged message. Nothing else happens to its `member`, which is not in the Auto Scaling group `group`."""

    kind: str
    member: Member
    group: str
    sent_at: float = 0.0

    @property
    def bodies(self) -> list[str]:
        accounts = (_STRANGER,) if self.kind in _UNCONFIRMED else (self.member.account, _STRANGER)
        make = (_CONFIRMED | _UNCONFIRMED)[self.kind]
        subjects = (_subject(self.member, account) for account in accounts)
        return [json.dumps(make(each, self.group).envelope(str(uuid4()), time.time())) for each in subjects]

    def label_stays(self, now: float) -> bool:
        fades = next((each for name, each in _LABEL_FADES.items() if name in self.kind), 0.0)
        return now < self.sent_at + fades


def forgeries(members: Sequence[Member], count: int, dice: random.Random) -> Iterator[Forged]:
    for cluster in sorted({each.cluster for each in members}):
        own = [each for each in members if each.cluster == cluster]
        for kind in (*_CONFIRMED, *_UNCONFIRMED):
            for member in dice.choices(own, k=count):
                yield Forged(kind, member, f"{cluster}-0")


def _subject(member: Member, account: str) -> Subject:
    return Subject(account=account, region=REGION, zone=f"{REGION}a", instance=member.instance)
