"""Where instances are served: an account and region, its queue, and the role by which it is entered.

Written by people as `ACCOUNT/REGION[/QUEUE][@ROLE]`: the queue by its name, as SQS finds its URL by that
(GetQueueUrl), and the role as an ARN where the process's own credentials are of another account. Several queues of one
place are several entries; clusters that the AWS provider set up have one each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from domain.instances.envelope import ACCOUNT, REGION
from domain.instances.topology import PREFIX
from domain.model import Model

_QUEUE = re.compile(r"[A-Za-z0-9_-]{1,80}(?:\.fifo)?", re.ASCII)
_ROLE = re.compile(r"arn:[a-z-]+:iam::[0-9]{12}:role/.+", re.ASCII)

DEAD = "-dead"
# A region's own dead letters, which also hold those of queues that have none, as the AWS provider's.
REGION_DEAD = f"{PREFIX}{DEAD}"


class Place(Model):
    """An account and region with one queue; without `role` the process's own credentials are of the account."""

    account: str
    region: str
    queue: str = PREFIX
    role: str = ""

    @property
    def dead_letters(self) -> str:
        """The name of the queue's dead letters."""
        return f"{self.queue}{DEAD}"

    @property
    def where(self) -> tuple[str, str]:
        """The account and region."""
        return self.account, self.region

    def __str__(self) -> str:
        return f"{self.account}/{self.region}/{self.queue}"


def places(texts: Iterable[str]) -> tuple[Place, ...]:
    """The places that the settings name, each once.

    Raises:
        ValueError: a text is none; it says which.
    """
    found = [place_of(text) for text in texts]
    return tuple({str(place): place for place in found}.values())


def served(found: Sequence[Place]) -> frozenset[tuple[str, str]]:
    """The accounts and regions of some places."""
    return frozenset(place.where for place in found)


def place_of(text: str) -> Place:
    """The place of one text.

    Raises:
        ValueError: it is none.
    """
    path, _, role = text.partition("@")
    account, _, rest = path.partition("/")
    region, _, queue = rest.partition("/")
    queue = queue or PREFIX
    checks = ((account, ACCOUNT), (region, REGION), (queue, _QUEUE), *(((role, _ROLE),) if "@" in text else ()))
    wrong = [value for value, shape in checks if not shape.fullmatch(value)]
    if wrong:
        raise ValueError(f"{text!r} is not of the form ACCOUNT/REGION[/QUEUE][@ROLE]: {wrong[0]!r}")
    return Place(account=account, region=region, queue=queue, role=role)
