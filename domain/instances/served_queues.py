"""The accounts and regions where instances are served, each with its queue and the role that Perdure assumes.

docs/instances.md has a table of the entries of PERDURE_INSTANCES_QUEUES. For `clusters` see `queues_from_clusters.py`.
A second queue of an account and region needs a second entry. In an entry with `=`, the first account's events
arrive in the second account's queue. An entry's role gives access to its first account, and is needed if the process's
own credentials belong to another account.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from domain.instances.event_envelope import ACCOUNT, REGION
from domain.instances.event_topology import PREFIX, dead_letters_of
from domain.model import Model

QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}(?:\.fifo)?", re.ASCII)
_ROLE = re.compile(r"arn:[a-z-]+:iam::[0-9]{12}:role/.+", re.ASCII)


class Place(Model):
    account: str  # 12 digits
    region: str
    queue: str = PREFIX  # the name of its own queue
    role: str = ""  # the ARN of the role to assume; empty if the process's own credentials belong to the account
    shares: str = ""  # the ACCOUNT/REGION/QUEUE where its events arrive; empty if it has its own queue
    senders: frozenset[str] = frozenset()  # the other accounts whose events arrive in its queue

    @property
    def dead_letters(self) -> str:
        return dead_letters_of(self.queue)

    @property
    def where(self) -> tuple[str, str]:
        return self.account, self.region

    @property
    def entry(self) -> str:
        return f"{self}@{self.role}" if self.role else str(self)

    def __str__(self) -> str:
        return f"{self.account}/{self.region}{f'={self.shares}' if self.shares else f'/{self.queue}'}"


def places(texts: Iterable[str]) -> tuple[Place, ...]:
    """The places of the entries, without duplicates.

    Raises ValueError if an entry is invalid, or if the queue that an entry shares (`=ACCOUNT/REGION/QUEUE`) has no
    entry.
    """
    found = {str(place): place for place in map(place_of, texts)}
    senders: dict[str, set[str]] = {}
    for place in found.values():
        if place.shares:
            if place.shares not in found:
                raise ValueError(f"{str(place)!r} shares the queue {place.shares!r}, which no other entry names")
            senders.setdefault(place.shares, set()).add(place.account)
    return tuple(
        place.model_copy(update={"senders": frozenset(senders.get(name, ()))}) for name, place in found.items()
    )


def with_queues(found: Iterable[Place]) -> tuple[Place, ...]:
    return tuple(place for place in found if not place.shares)


def served(found: Sequence[Place]) -> frozenset[tuple[str, str]]:
    return frozenset(place.where for place in found)


def place_of(text: str) -> Place:
    path, at, role = text.partition("@")
    own, equals, shared = path.partition("=")
    account, region, queue = _parts(text, own)
    if at and not _ROLE.fullmatch(role):
        raise _wrong(text, role)
    if not equals:
        return Place(account=account, region=region, queue=queue, role=role)
    if "/" in own.partition("/")[2]:
        raise _wrong(text, own)
    return Place(account=account, region=region, role=role, shares="/".join(_parts(text, shared)))


def _parts(text: str, path: str) -> tuple[str, str, str]:
    account, _, rest = path.partition("/")
    region, _, queue = rest.partition("/")
    found = (account, region, queue or PREFIX)
    for part, shape in zip(found, (ACCOUNT, REGION, QUEUE_NAME), strict=True):
        if not shape.fullmatch(part):
            raise _wrong(text, part)
    return found


def _wrong(text: str, part: str) -> ValueError:
    return ValueError(f"{text!r} is not of the form ACCOUNT/REGION[=ACCOUNT/REGION][/QUEUE][@ROLE]: {part!r}")
