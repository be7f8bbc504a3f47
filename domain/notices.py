from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any

from domain.identity import Key
from domain.model import Model
from domain.refusal import without_request


class NoticeType(StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"


class Notice(Model):
    """The content of a Kubernetes Event. While successive decisions contain it, it is recorded only once."""

    type: NoticeType
    reason: str
    message: str
    action: str = ""
    about: Key | None = None  # the object of the Event; None for the lifecycle's own object
    # The object's cluster, as `namespace/name` of its Cluster (Cluster API); empty for Perdure's own cluster.
    cluster: str = ""
    # True: every recurrence is recorded as another Event. False: a recurrence is recorded only after the API server has
    # deleted the first Event, even if Perdure was restarted in between.
    each_time: bool = False

    @property
    def digest(self) -> str:
        content = f"{self.about.path if self.about else ''}\n{self.reason}\n{without_request(self.message)}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def normal(reason: str, message: str, **more: Any) -> Notice:
    return Notice(type=NoticeType.NORMAL, reason=reason, message=message, **more)


def warning(reason: str, message: str, **more: Any) -> Notice:
    return Notice(type=NoticeType.WARNING, reason=reason, message=message, **more)


class Reported(Model):
    notices: tuple[Notice, ...] = ()
